"""Records that programs read: the answers of commands with `--json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

__all__ = ["JsonRecord"]


class JsonRecord:
    """A base of dataclasses whose fields are plain data."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return asdict(self)  # type: ignore[call-overload,no-any-return] # who derives from it is a dataclass
