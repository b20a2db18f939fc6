"""The cache of a dashboard: what was found of each server, for the next one. A server whose files have the times and sizes that they had is not read again.

Nothing is decided by it: whatever is done is checked by the files themselves. It is data (JSON), sealed by its first line with
a secret of whoever wrote it: which bytes it has, of which workspace and of which parts of the factory it is. Where something is otherwise it
counts as empty, and nobody is told.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json, to_json

from mcpfactory_pipeline.base.files import read_regular, replace_file
from mcpfactory_pipeline.dashboard.facts import ServerFacts
from mcpfactory_pipeline.dashboard.stamps import Stamps
from mcpfactory_pipeline.views.inbox import InboxItem

__all__ = ["CachedServer", "read_cache", "write_cache"]

_FORMAT: Final = 2
_LARGEST: Final = 1 << 28  # bytes
_SETTLED: Final = (
    2 * 10**9
)  # nanoseconds that a file must not have changed for before it was read: a later change has another time


@dataclass(frozen=True, slots=True)
class CachedServer:
    """What was found of a server, with the files on which that rests and their stamps. `read_at` is when, in nanoseconds, 0 for what must not be kept."""

    paths: tuple[str, ...]
    stamps: Stamps
    facts: ServerFacts
    read_at: int = 0

    @property
    def settled(self) -> bool:
        """Whether no file can have changed again without another stamp."""
        return all(stamp is None or stamp[0] < self.read_at - _SETTLED for stamp in self.stamps)


def read_cache(file: Path, root: Path, of: str, secret: bytes) -> dict[str, CachedServer]:
    """Return what is kept of the servers of a workspace, by name; nothing where it is damaged, not `of` the same, or sealed by another secret or none."""
    if not secret:
        return {}
    try:
        seal, _, body = read_regular(file, _LARGEST).partition(b"\n")
        if not hmac.compare_digest(seal, _seal(secret, of, body)):
            return {}
        content: dict[str, dict[str, Any]] = from_json(body)
        return {name: _server(f"{root}/", known) for name, known in content.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def write_cache(file: Path, root: Path, of: str, servers: Mapping[str, CachedServer], secret: bytes) -> None:
    """Keep what was found of servers, whole or not at all. Where it cannot be written, or sealed, nothing is kept: that is no harm."""
    if not secret:
        return
    kept = {name: _data(f"{root}/", one) for name, one in sorted(servers.items()) if one.settled}
    body = to_json(kept)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(
            file, _seal(secret, of, body) + b"\n" + body
        )  # two dashboards write two files, and one of them stays


def _seal(secret: bytes, of: str, body: bytes) -> bytes:
    return hmac.new(secret, b"%d %s " % (_FORMAT, of.encode()) + body, hashlib.sha256).hexdigest().encode()


def _data(root: str, one: CachedServer) -> dict[str, Any]:
    facts = {field.name: getattr(one.facts, field.name) for field in fields(one.facts)}
    return {
        "paths": [path.removeprefix(root) if path.startswith(root) else f"/{path}" for path in one.paths],
        "stamps": one.stamps,
        "read_at": one.read_at,
        "facts": {**facts, "items": [item.to_json() for item in one.facts.items]},
    }


def _server(root: str, data: dict[str, Any]) -> CachedServer:
    paths = tuple(root + path if not path.startswith("/") else path[1:] for path in data["paths"])
    stamps = tuple(None if stamp is None else (stamp[0], stamp[1], stamp[2], stamp[3]) for stamp in data["stamps"])
    if len(paths) != len(stamps):
        raise ValueError("as many stamps as files")
    facts = data["facts"]
    lists = {name: tuple(facts[name]) for name in ("owners", "logs")}
    items = tuple(InboxItem(**item) for item in facts["items"])
    approved = {channel: tuple(people) for channel, people in facts["approved"].items()}
    return CachedServer(
        paths, stamps, ServerFacts(**{**facts, **lists, "items": items, "approved": approved}), int(data["read_at"])
    )
