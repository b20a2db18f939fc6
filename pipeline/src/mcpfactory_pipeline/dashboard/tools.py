"""The tools of a server: what each is, what it costs, and the schemas that models see. Pure: facts in, views out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_codegen.text import count_tokens
from mcpfactory_pipeline.dashboard.facts import ServerDetail
from mcpfactory_pipeline.dashboard.values import Pager, paged, shorten
from mcpfactory_pipeline.workspace.coverage import operation_name

__all__ = ["ToolView", "ToolsPage", "tools_of", "tools_page"]

_SIZE: Final = 8  # tools with their schemas of a page
_TEXT: Final = 2_000  # characters of a description that are shown


@dataclass(frozen=True, slots=True)
class ToolView:
    """One tool; `share` is its part of the largest tool's tokens, 0 to 100. The schemas are those of `tools/list`.

    `can_try` says whether the dashboard can call it: by an operation of the API document, or without a document as it is. Adopted servers
    are started in ways of their own, and are not tried.
    """

    name: str
    title: str
    operation: str
    arguments: tuple[str, ...]
    tokens: int
    share: int
    description: str
    hints: tuple[str, ...]
    input: Mapping[str, Any]
    output: Mapping[str, Any]
    can_try: bool


@dataclass(frozen=True, slots=True)
class ToolsPage:
    """Tools of a server with their schemas. `listed` says whether they are known: others are asked by `inspect`."""

    workspace: str
    server: str
    listed: bool
    tokens: int
    pager: Pager
    tools: tuple[ToolView, ...]


def tools_page(detail: ServerDetail, *, page: str = "1") -> ToolsPage:
    """Return the tools of a server, in the order in which it lists them."""
    tools = tools_of(detail)
    shown, pager = paged(tools, page, _SIZE)
    return ToolsPage(
        detail.facts.workspace, detail.facts.name, bool(tools), sum(tool.tokens for tool in tools), pager, shown
    )


def tools_of(detail: ServerDetail) -> tuple[ToolView, ...]:
    """Every tool of the server's own report, with what its manifest says; without a report those that the newest candidate listed."""
    if not isinstance(detail.report.get("tools"), list):
        named = [tool for tool in detail.contract if isinstance(tool.get("name"), str)]
        counted = [(tool, count_tokens(tool)) for tool in named]
        most = max((tokens for _, tokens in counted), default=0) or 1
        own = bool(detail.facts.template)
        return tuple(
            _tool({"name": tool["name"], "tokens": tokens, "arguments": _arguments(tool)}, tool, most, own=own)
            for tool, tokens in counted
        )
    listed = [tool for tool in detail.report["tools"] if isinstance(tool, dict)]
    shown = {tool.get("name"): tool for tool in detail.manifest.get("tools", ()) if isinstance(tool, dict)}
    largest = max((int(tool.get("tokens", 0)) for tool in listed), default=0) or 1
    return tuple(_tool(tool, shown.get(tool.get("name"), {}), largest) for tool in listed)


def _arguments(tool: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the arguments of a tool that no API document describes."""
    schema = tool.get("inputSchema")
    names = schema.get("properties") if isinstance(schema, dict) else None
    return {str(name): {} for name in names} if isinstance(names, dict) else {}


def _tool(tool: Mapping[str, Any], shown: Mapping[str, Any], largest: int, *, own: bool = False) -> ToolView:
    operation = tool.get("operation")
    return ToolView(
        name=str(tool.get("name", "")),
        title=str(shown.get("title") or ""),
        operation=operation_name(operation) if isinstance(operation, dict) else "",
        arguments=tuple(
            f"{name} ({bound['in']})" if bound.get("in") else str(name)
            for name, bound in (tool.get("arguments") or {}).items()
        ),
        tokens=int(tool.get("tokens", 0)),
        share=round(100 * int(tool.get("tokens", 0)) / largest),
        description=shorten(str(shown.get("description", "")), _TEXT),
        hints=tuple(str(key) for key, value in (shown.get("annotations") or {}).items() if value is True),
        input=shown.get("inputSchema") or {},
        output=shown.get("outputSchema") or {},
        can_try=own or isinstance(operation, dict),
    )
