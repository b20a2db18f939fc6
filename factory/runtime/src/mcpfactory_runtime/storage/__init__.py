"""Storage that the processes of a server share (memory, a file or Redis), and the stores of tasks and sessions."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlencode

from mcpfactory_runtime.storage.base import MemoryStore, SharedStore

_SCHEMES: Final = ("memory:", "sqlite:///PATH", "redis://HOST:PORT/NUMBER", "rediss://…", "valkey://…", "unix://PATH")


def create_store(address: str) -> SharedStore:
    """Return the unopened store at an address."""
    scheme, _, rest = address.partition(":")
    if address == "memory:":
        return MemoryStore()
    if scheme == "sqlite" and rest.startswith("///") and rest[3:]:
        from mcpfactory_runtime.storage.sqlite import SqliteStore  # noqa: PLC0415 - loaded on demand

        return SqliteStore(rest[3:])
    if scheme in ("redis", "rediss", "valkey", "valkeys", "unix") and rest.startswith("//"):
        from mcpfactory_runtime.storage.redis import RedisStore  # noqa: PLC0415 - likewise

        place, _, query = address.partition("?")
        options = dict(parse_qsl(query))
        prefix = options.pop("prefix", "mcp")
        place = place.replace("valkey", "redis", 1) if scheme.startswith("valkey") else place
        return RedisStore(f"{place}?{urlencode(options)}" if options else place, f"{prefix}:")
    # The address may contain a password, so the message omits the address.
    raise ValueError(f"invalid store address (scheme {scheme!r})\nhint: use one of {', '.join(_SCHEMES)}")
