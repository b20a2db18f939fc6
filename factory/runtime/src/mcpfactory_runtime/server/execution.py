"""One tool call carried out: arguments → handler → result in the newest form. Who asked, and how, is not known here."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.registry import Tool
from mcpfactory_runtime.server.schema.signature import ArgumentsError
from mcpfactory_runtime.server.threads import in_thread

__all__ = ["run_tool"]

Json = dict[str, Any]

log = logging.getLogger("mcpfactory_runtime")


async def run_tool(tool: Tool, arguments: Json, make_context: Callable[[], Context]) -> Json:
    """Return the result of a tool, neither projected nor in its envelope; what the model should see of failures is part of it.

    Raises:
        McpError: the handler raised it.
        InputRequired: the handler has to ask first (a BaseException).
    """
    try:
        if tool.load is not None:
            tool.load(tool)
        bound = tool.bind(arguments)
        if tool.context is not None:
            bound[tool.context] = make_context()
        handler = tool.handler
        assert handler is not None
        return tool.convert(await (handler(**bound) if tool.is_async else in_thread(handler, bound)))
    except (ToolError, ArgumentsError) as error:
        return {"content": [{"type": "text", "text": str(error) or type(error).__name__}], "isError": True}
    except McpError:
        raise
    except (Exception, SystemExit):
        log.exception("tool %s failed", tool.name)
        text = f"The tool {tool.name} failed because of an internal error; the server's log says more."
        return {"content": [{"type": "text", "text": text}], "isError": True}
