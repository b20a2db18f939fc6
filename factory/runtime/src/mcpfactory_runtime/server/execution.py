"""Execution of a tool call (arguments → handler → result in the newest form), for any caller and transport."""

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
# Tests set this path to a file that lists the tools that ran.
_RECORD: Final = os.environ.get("MCPFACTORY_TOOL_RECORD", "")


async def run_tool(
    tool: Tool, arguments: Json, make_context: Callable[[], InjectedParameter], around: Around | None = None
) -> Json:
    """Run a tool, and return its result without projection and envelope. Failures become results with `isError`.

    Args:
        tool: the tool.
        arguments: the unchecked arguments.
        make_context: creates the context if it is needed.
        around: the server's middleware.

    Raises:
        McpError: the handler raised it.
        InputRequired: the handler must ask the client first (a BaseException).
    """
    try:
        if around is not None:
            return await around(tool, arguments, make_context(), run_handler)
        return await run_handler(tool, arguments, make_context)
    except (McpError, InputRequired, asyncio.CancelledError):
        raise
    except BaseException as error:  # any other exception of a handler is logged, and becomes a result
        if is_keyboard_interrupt(error):
            raise
        return _failure(tool, error)


def _failure(tool: Tool, error: BaseException) -> Json:
    """Return the error result for an exception.

    Exceptions whose text is not meant for the model are logged. Never raises.
    """
    if isinstance(error, ToolError | ArgumentsError):
        return {"content": [{"type": "text", "text": exception_text(error)}], "isError": True}
    log.error("tool %s failed", tool.name, exc_info=error)
    text = f"The tool {tool.name} failed because of an internal error; see the server's log."
    return {"content": [{"type": "text", "text": text}], "isError": True}


def is_fast_path_tool(tool: Tool) -> bool:
    """Return True if a call of the tool needs only the handler and a thread."""
    plain = tool.handler is not None and tool.context is None and tool.load is None and tool.timeout is None
    return plain and not tool.is_async and not tool.inline and not _RECORD


def run_fast_path(tool: Tool, arguments: Json) -> Json:
    """Run a tool in this thread, and return its result. `is_fast_path_tool` must be True for the tool.

    Raises:
        McpError: the handler raised it, or the handler was canceled.
    """
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
    """Run a tool inside the server's middleware; exceptions propagate unchanged."""
    if registry.around is None:
        return run_handler(tool, arguments, lambda: context)
    return registry.around(tool, arguments, context, run_handler)


async def run_handler(tool: Tool, arguments: Json, make_context: Callable[[], InjectedParameter]) -> Json:
    """Check the arguments, call the handler outside any middleware, and convert its return value to a result."""
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
    """Await a handler; after the timeout, cancel the handler and fail.

    A handler in a thread continues to run after the timeout.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await running
    except TimeoutError:
        if not limit.expired():  # the handler raised the TimeoutError
            raise
        raise ToolError(f"Tool {name} timed out after {seconds:g} s.") from None


def _record_tool(file: Path, name: str) -> None:
    """Append a tool's name to a file as a line of JSON; ignore write errors."""
    with suppress(OSError), file.open("ab", buffering=0) as stream:
        stream.write(json.dumps(name).encode() + b"\n")


async def call_other(
    registry: Registry, name: str, arguments: Json, context: InjectedParameter, principal: str | None = None
) -> Any:
    """Return the complete structured content of another tool's result, or the text if it has no structured content.

    The called tool belongs to the same server, and need not be listed. To hide the tools of a workflow from a model,
    omit these tools from the profile. The called tool's schema checks the arguments. The called tool's defaults and
    hooks apply. Over HTTP, the caller (`principal`) needs the tool's scopes; without a principal, scopes are not
    checked.

    Raises:
        ToolError: the tool failed (with its own message), does not exist, or needs scopes that the access token lacks.
        McpError: the tool itself raised this error.
        InputRequired (a BaseException): the tool must ask the client first.
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
    """Check the scopes of a call by another tool, as `transports/http/authentication.py` checks client calls.

    Raises:
        ToolError: the caller's access token lacks scopes, or is missing.
    """
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
