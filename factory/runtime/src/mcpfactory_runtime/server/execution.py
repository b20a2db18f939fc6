"""Execution of a tool call, from the unchecked arguments to the result in the form of the newest revision."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, McpError
from mcpfactory_runtime.server.errors import InputRequired, ToolError, exception_text, is_keyboard_interrupt
from mcpfactory_runtime.server.results import READ_BY_CODE
from mcpfactory_runtime.server.signature import ArgumentsError, InjectedParameter
from mcpfactory_runtime.server.threads import in_thread
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.registry import Around, Registry, Tool


log = logging.getLogger(__name__)
# Path of a file in which tests record the names of called tools.
_RECORD: Final = os.environ.get("MCPFACTORY_TOOL_RECORD", "")


async def run_tool(
    tool: Tool, arguments: Json, make_context: Callable[[], InjectedParameter], around: Around | None = None
) -> Json:
    """Run a tool, and return the result without projection and envelope. Failures become results with `isError`."""
    try:
        if around is not None:
            return await around(tool, arguments, make_context(), run_handler)
        return await run_handler(tool, arguments, make_context)
    except (McpError, InputRequired, asyncio.CancelledError):
        raise
    except BaseException as error:  # log the handler's exception, and return an error result
        if is_keyboard_interrupt(error):
            raise
        return _failure(tool, error)


def _failure(tool: Tool, error: BaseException) -> Json:
    """Return the error result, and log exceptions whose text is not for the model."""
    if isinstance(error, ToolError | ArgumentsError):
        return {"content": [{"type": "text", "text": exception_text(error)}], "isError": True}
    log.error("tool %s failed", tool.name, exc_info=error)
    text = f"The tool {tool.name} failed because of an internal error; see the server's log."
    return {"content": [{"type": "text", "text": text}], "isError": True}


def is_fast_path_tool(tool: Tool) -> bool:
    """Return True if the tool can run in any thread, without the event loop."""
    plain = tool.handler is not None and tool.context is None and tool.load is None and tool.timeout is None
    return plain and not tool.is_async and not tool.inline and not _RECORD


def run_fast_path(tool: Tool, arguments: Json) -> Json:
    """Run a fast-path tool in this thread, and return the result."""
    handler = tool.handler
    assert handler is not None
    try:
        return tool.convert(handler(**tool.bind(arguments)))
    except McpError:
        raise
    except asyncio.CancelledError:
        log.exception("tool %s was cancelled", tool.name)
        raise McpError(INTERNAL_ERROR, "The handler was cancelled") from None
    except BaseException as error:  # noqa: BLE001 - reported to the model and the log
        return _failure(tool, error)


def run_in_middleware(registry: Registry, tool: Tool, arguments: Json, context: InjectedParameter) -> Awaitable[Json]:
    """Run a tool inside the server's middleware."""
    if registry.around is None:
        return run_handler(tool, arguments, lambda: context)
    return registry.around(tool, arguments, context, run_handler)


async def run_handler(tool: Tool, arguments: Json, make_context: Callable[[], InjectedParameter]) -> Json:
    """Check the arguments, call the handler, and convert the return value to a result."""
    if tool.load is not None:
        tool.load(tool)
    bound = tool.bind(arguments)
    if tool.context is not None:
        bound[tool.context] = make_context()
    handler = tool.handler
    assert handler is not None
    if _RECORD:
        _record_tool(Path(_RECORD), tool.name)
    if tool.inline:
        return tool.convert(handler(**bound))
    running = handler(**bound) if tool.is_async else in_thread(handler, bound)
    return tool.convert(await (running if tool.timeout is None else _in_time(running, tool.name, tool.timeout)))


async def _in_time(running: Awaitable[Any], name: str, seconds: float) -> Any:
    """Await a handler, and cancel the handler after the timeout. A handler in a thread continues to run."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await running
    except TimeoutError:
        if not limit.expired():  # the handler raised the TimeoutError
            raise
        raise ToolError(f"Tool {name} timed out after {seconds:g} s.") from None


def _record_tool(file: Path, name: str) -> None:
    with suppress(OSError), file.open("ab", buffering=0) as stream:
        stream.write(json.dumps(name).encode() + b"\n")


async def call_other(
    registry: Registry, name: str, arguments: Json, context: InjectedParameter, principal: str | None = None
) -> Any:
    """Call another tool of the server, and return the structured content of the result.

    If the result has no structured content, return the text. The result is never shortened. The tool need not be
    listed. The tool's argument checks, defaults and hooks apply. If `principal` is given, the principal needs the
    tool's scopes.
    """
    tool = registry.tool(name)
    if tool is None:
        raise ToolError(f"This server has no tool {name!r}.")
    if principal is not None:
        _check_scopes(tool, arguments, principal)
    token = READ_BY_CODE.set(True)
    try:
        result = await run_tool(tool, arguments, lambda: context, registry.around)
    finally:
        READ_BY_CODE.reset(token)
    texts = [block["text"] for block in result.get("content", ()) if block.get("type") == "text"]
    if result.get("isError"):
        raise ToolError("\n".join(texts))
    return result["structuredContent"] if result.get("structuredContent") is not None else "\n".join(texts)


def _check_scopes(tool: Tool, arguments: Json, principal: str) -> None:
    target = None if tool.resolve_target is None else tool.resolve_target(arguments)
    needed = (*tool.scopes, *(() if target is None else target.scopes))
    lacking = set(needed) - getattr(principal, "scopes", frozenset())
    if not lacking:
        return
    if not principal:
        raise ToolError(
            f"Tool {tool.name!r} needs the scopes {', '.join(dict.fromkeys(needed))}, and this server has no "
            "authorization.\nhint: pass auth= to http_app or run_http, or set MCPFACTORY_AUTH_*"
        )
    raise ToolError(f"The access token lacks: {' '.join(one for one in dict.fromkeys(needed) if one in lacking)}")
