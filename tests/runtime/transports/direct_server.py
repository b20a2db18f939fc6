"""The server of the tests of direct calls: it tells which thread runs a handler, and can be made to wait."""

from __future__ import annotations

import threading
from traceback import walk_stack
from typing import Any

from mcpfactory_runtime import Server, ToolError
from mcpfactory_runtime.transports import direct_calls

server = Server("direct", version="1")
opened = threading.Event()


@server.tool
def where() -> str:
    """Return `direct` in a thread that has the stream, otherwise the name of the thread."""
    direct = any(frame.f_globals["__name__"] == direct_calls.__name__ for frame, _ in walk_stack(None))
    return "direct" if direct else threading.current_thread().name


@server.tool
def count() -> int:
    """Take some tenths of a millisecond."""
    return sum(range(30_000))


@server.tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@server.tool
async def add_async(a: int, b: int) -> int:
    """Add, on the event loop."""
    return a + b


@server.tool
def wait() -> str:
    """Wait until somebody opens."""
    opened.wait()
    return threading.current_thread().name


@server.tool(name="open")
def open_() -> str:
    """Let those go on who wait."""
    opened.set()
    return "opened"


@server.tool
async def open_async() -> str:
    """The same, on the event loop."""
    opened.set()
    return "opened"


@server.tool
def fail(how: str) -> str:
    """Fail."""
    raise {"tool": ToolError("as it was meant"), "bug": KeyError("x"), "exit": SystemExit(3)}[how]


@server.tool
def odd() -> Any:
    """Return what has no JSON form."""
    return {"a": float("nan"), "b": "\ud800"}


@server.tool
def much(size: int) -> str:
    """Return many characters."""
    return "x" * size


if __name__ == "__main__":
    server.run()
