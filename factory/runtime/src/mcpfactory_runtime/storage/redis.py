"""Store in Redis or Valkey, for processes on several machines.

A space has two keys: a hash with the entries, and a sorted set with their order. Redis Cluster is not supported.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from mcpfactory_runtime.storage.base import Changes, ExpectedEntry, SharedStore, StoreError

try:
    from redis import asyncio as redis
    from redis.exceptions import RedisError
except ImportError as error:
    raise StoreError("the store needs the library redis\nhint: pip install 'mcpfactory-runtime[redis]'") from error

Value = TypeVar("Value")

_MAX_MESSAGES: Final = 1024  # maximum messages per read of a mailbox
_CONNECTIONS: Final = 64
_TIMEOUT: Final = 10.0  # maximum seconds for a response
_SCRIPTS: Final = dict(
    re.findall(r"^--- (\w+)\n(.*?)(?=^---|\Z)", Path(__file__).with_suffix(".lua").read_text("utf-8"), re.M | re.S)
)


class RedisStore(SharedStore):
    """Store in Redis or Valkey.

    The address is `redis://[[user]:password@]host:port/number`, `rediss://…` for TLS, or `unix://path`. Keys begin with
    the prefix.
    """

    def __init__(self, address: str, prefix: str = "mcp:") -> None:
        self._address = address
        self._prefix = prefix
        self._client: Any = None
        self._scripts: dict[str, Any] = {}

    async def open(self) -> None:
        """Connect, and check that the server responds."""
        await self._do(self._connected().ping())

    async def aclose(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        self._scripts.clear()
        if client is not None:
            await client.aclose()

    async def get(self, space: str, key: str) -> bytes | None:
        """Return an entry, or None."""
        found: bytes | None = await self._do(self._connected().hget(self._names(space)[0], key))
        return found

    async def scan(self, space: str, prefix: str = "", after: str = "", limit: int = 0) -> list[tuple[str, bytes]]:
        """Return entries in the order of their keys."""
        first = f"({after}" if after >= prefix and after else f"[{prefix}"
        last = b"(" + prefix.encode() + b"\xff" if prefix else b"+"
        flat = await self._run("scan", self._names(space), [first, last, limit or -1])
        return [(key.decode(), value) for key, value in zip(flat[::2], flat[1::2], strict=True)]

    async def write(
        self, space: str, changes: Changes, *, seconds: float, expected: ExpectedEntry | None = None
    ) -> bool:
        """Change a space by a script, because Redis runs scripts atomically."""
        arguments: list[Any] = [max(int(seconds * 1000), 1)]
        if expected is None:
            arguments += ["", "", ""]
        else:
            arguments += ["missing" if expected.value is None else "equal", expected.key, expected.value or b""]
        for key, value in changes:
            if value is not None:
                arguments += ["put", key, value]
            else:
                arguments += ["clear", key[:-1], ""] if key.endswith("*") else ["remove", key, ""]
        return bool(await self._run("write", self._names(space), arguments))

    async def drop(self, space: str) -> None:
        """Delete a space."""
        await self._do(self._connected().delete(*self._names(space)))

    async def send(self, mailbox: str, data: bytes, *, seconds: float) -> None:
        """Add a message to a mailbox."""
        await self._run("send", [self._mailbox(mailbox)], [max(int(seconds * 1000), 1), data])

    async def receive(self, mailbox: str, wait: float) -> list[bytes]:
        """Take the messages of a mailbox, and occupy a connection while waiting."""
        client, name = self._connected(), self._mailbox(mailbox)
        first = await self._do(client.blpop([name], timeout=max(wait, 0.01)))
        if first is None:
            return []
        try:
            return [first[1], *(await self._do(client.lpop(name, _MAX_MESSAGES)) or ())]
        except StoreError:  # the next call reports the error
            return [first[1]]

    # -- the connection ------------------------------------------------------------------------------------------

    def _names(self, space: str) -> tuple[str, str]:
        return f"{self._prefix}s:{space}", f"{self._prefix}o:{space}"

    def _mailbox(self, mailbox: str) -> str:
        return f"{self._prefix}m:{mailbox}"

    def _connected(self) -> Any:
        if self._client is None:
            try:
                self._client = redis.Redis.from_url(
                    self._address,
                    max_connections=_CONNECTIONS,
                    socket_connect_timeout=_TIMEOUT,
                    # The timeout exceeds any wait for a mailbox. The default of redis-py differs between versions.
                    socket_timeout=_TIMEOUT,
                    health_check_interval=15,
                )
            except ValueError as error:  # the library's message may contain the password
                raise StoreError("the address of the store is invalid\nhint: use redis://HOST:PORT/NUMBER") from error
        return self._client

    async def _run(self, script: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        client = self._connected()
        if script not in self._scripts:
            self._scripts[script] = client.register_script(_SCRIPTS[script])
        return await self._do(self._scripts[script](keys=keys, args=arguments))

    async def _do(self, work: Awaitable[Value]) -> Value:
        try:
            return await work
        except (RedisError, OSError, TimeoutError) as error:
            raise StoreError(
                f"store: {error}\nhint: check that Redis or Valkey is reachable from here, and that the "
                "password is right"
            ) from error
