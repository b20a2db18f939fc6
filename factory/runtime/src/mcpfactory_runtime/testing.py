"""Tools for tests of servers in memory: connect a client, replace dependencies, compare answers.

>>> async with connect(server) as client:
...     result = await client.call_tool("add", {"a": 1, "b": 2})
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Set
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.client import Client
from mcpfactory_runtime.protocol.jsonrpc import LineReader
from mcpfactory_runtime.schemas.validation import compile_schema
from mcpfactory_runtime.server.dependencies import override
from mcpfactory_runtime.server.session import Session

if TYPE_CHECKING:
    from mcpfactory_runtime.server.interfaces import ServerInterface
    from mcpfactory_runtime.server.server import Server

__all__ = ["compile_schema", "connect", "differences", "override"]


class MemoryStream:
    """The client's end of a connection. The server handles sent bytes at once, and bytes from the server are queued."""

    def __init__(self, server: ServerInterface) -> None:
        self._lines = LineReader(server.max_message_size)
        self._sent: asyncio.Queue[bytes] = asyncio.Queue()
        self.session = Session(server, lambda data: self._sent.put_nowait(data + b"\n"))
        self.session.private = True

    async def send(self, data: bytes) -> None:
        """Send bytes to the server, which need not be complete lines."""
        for line in self._lines.feed(data):
            self.session.feed(line)

    async def receive(self) -> bytes:
        """Return the server's next bytes, or b"" after the end of the stream."""
        return await self._sent.get()

    async def aclose(self) -> None:
        """Close the stream, and cancel running handlers."""
        await self.session.close(0)
        self._sent.put_nowait(b"")


@asynccontextmanager
async def serve_memory(server: ServerInterface) -> AsyncIterator[MemoryStream]:
    """Run a server for one client in this process."""
    async with server.running():
        stream = MemoryStream(server)
        try:
            yield stream
        finally:
            await stream.aclose()


@asynccontextmanager
async def connect(server: Server, revision: str = "", **options: Any) -> AsyncIterator[Client]:
    """Run the server in memory, and yield a connected client, which uses the protocol of stdio.

    Args:
        server: the server under test.
        revision: protocol revision to use. The default is the newest.
        options: arguments of `mcpfactory_runtime.client.Client`, such as elicitation, sampling, roots and notified.
    """
    async with serve_memory(server) as stream, Client.connect_memory(stream, revision=revision, **options) as client:
        yield client


_DAY: Final = r"\d{4}-\d\d-\d\d"
_TIME: Final = r"\d\d:\d\d(:\d\d)?"
_FORMS: Final = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("digits", r"\d+"),
        ("a decimal number", r"-?\d+\.\d+"),
        ("a date", _DAY),
        ("a date and time that ends in Z", rf"{_DAY}T{_TIME}Z"),
        ("a date and time with fractions of a second, that ends in Z", rf"{_DAY}T{_TIME}\.\d+Z"),
        ("a date and time with an offset like +0000", rf"{_DAY}T{_TIME}[+-]\d{{4}}"),
        ("a date and time with an offset like +00:00", rf"{_DAY}T{_TIME}(\.\d+)?[+-]\d\d:\d\d"),
        ("a date as in mails (RFC 2822)", rf"[A-Z][a-z]{{2}}, \d\d [A-Z][a-z]{{2}} \d{{4}} {_TIME} [+-]\d{{4}}"),
        ("a phone number (E.164)", r"\+\d{6,15}"),
        ("a UUID", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
        ("a URL", r"https?://\S+"),
        ("a path", r"/\S*"),
        ("a word in capitals", r"[A-Z][A-Z0-9_]+"),
    )
)
"""Formats of strings, narrowest first."""


def differences(documented: Any, answered: Any) -> list[str]:
    """Return one sentence for each structural difference between `answered` and `documented`, with the JSON path.

    Each member of a documented object must exist with the same JSON type. Additional members are ignored. A string must
    have the format of the documented string, such as digits, a date or a URL. A documented empty string permits any
    string, and a documented null permits any value. If a documented list has items, the answered list must not be
    empty. The last documented item also describes all further items.

    Args:
        documented: example of the answer as JSON. A set permits its values, and a compiled pattern permits matching
            strings.
        answered: the actual answer.
    """
    return [f"{place.lstrip('.') or 'the answer'}: {what}" for place, what in _differences(documented, answered, "")]


def _differences(documented: Any, answered: Any, place: str) -> Iterator[tuple[str, str]]:
    match documented:
        case None:
            return
        case Mapping() if isinstance(answered, Mapping):
            for name, value in documented.items():
                if name in answered:
                    yield from _differences(value, answered[name], f"{place}.{name}")
                else:
                    yield f"{place}.{name}", f"is missing; documented is {_form(value)}"
        case list() if isinstance(answered, list):
            if documented and not answered:
                yield place, f"is an empty list; documented is one of {_form(documented[0])}"
            for number, value in enumerate(answered if documented else ()):
                yield from _differences(documented[min(number, len(documented) - 1)], value, f"{place}[{number}]")
        case _ if not _matches(documented, answered):
            yield (
                place,
                f"is {_form(answered)}: {answered!r:.80}; documented is {_form(documented)}: {documented!r:.80}",
            )


def _matches(documented: Any, answered: Any) -> bool:
    match documented:
        case Set():
            return answered in documented
        case re.Pattern():
            return isinstance(answered, str) and documented.fullmatch(answered) is not None
        case "":
            return isinstance(answered, str)
        case float():
            return isinstance(answered, int | float) and not isinstance(answered, bool)
    return _form(documented) in (_form(answered), "a text") and isinstance(answered, type(documented))


def _form(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int():
            return "a whole number"
        case float():
            return "a number"
        case str():
            return next((name for name, pattern in _FORMS if pattern.fullmatch(value)), "a text")
        case re.Pattern():
            return "a text of a pattern"
        case Set():
            return "a value of an enumeration"
        case list():
            return "a list"
    return "an object"
