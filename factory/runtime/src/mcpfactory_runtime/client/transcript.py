"""What was exchanged, message by message: evidence for checks, and help when something goes wrong."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Entry", "Transcript"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One message. `message` is the decoded JSON, text that was none, or None for an HTTP exchange without a body.

    `http` has `status` and `headers` of the response for what was received over HTTP; request headers that carry
    credentials are never kept.
    """

    direction: Literal["sent", "received"]
    message: Any
    http: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON data."""
        entry: dict[str, Any] = {"direction": self.direction, "message": self.message}
        return {**entry, "http": self.http} if self.http else entry


class Transcript:
    """The latest entries, oldest first."""

    def __init__(self, limit: int = 10_000) -> None:
        self._entries: deque[Entry] = deque(maxlen=limit)

    def sent(self, message: Any) -> None:
        """Note a message of ours."""
        self._entries.append(Entry("sent", message))

    def received(self, message: Any, http: dict[str, Any] | None = None) -> None:
        """Note a message of the server's."""
        self._entries.append(Entry("received", message, http or {}))

    def extend(self, entries: Iterable[Entry]) -> None:
        """Take over the entries of another."""
        self._entries.extend(entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, at: int) -> Entry:
        return self._entries[at]

    def to_list(self) -> list[dict[str, Any]]:
        """Return the entries as JSON data."""
        return [entry.to_dict() for entry in self._entries]
