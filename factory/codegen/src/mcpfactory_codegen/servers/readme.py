"""What templates know about a server that is generated from a document; Markdown is escaped here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from mcpfactory_codegen.describe.tools import ApiTool
from mcpfactory_codegen.ir import Api
from mcpfactory_codegen.naming import Names
from mcpfactory_codegen.servers.config import ServerConfig, quoted
from mcpfactory_codegen.servers.report import environment
from mcpfactory_codegen.text import one_line

__all__ = ["markdown", "template_data"]

_ROWS: Final = 60
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|!~$&])")


def template_data(config: ServerConfig, api: Api, names: Names, tools: Sequence[ApiTool]) -> dict[str, Any]:
    """Answers to the questions of the template `openapi`. `*_quoted` are literals of Python and TOML; `*_markdown`, `*_table` Markdown."""
    title = one_line(api.title, 80) or config.name
    description = f"MCP server for {title}"
    instructions = one_line(api.description, 400)
    return {
        "name": config.name,
        "package": config.package,
        "distribution": config.name.removesuffix("-mcp") + "-mcp",
        "title": title,
        "description": description,
        "title_quoted": quoted(title),
        "description_quoted": quoted(description),
        "instructions_quoted": quoted(instructions),
        "document": config.document,
        "title_markdown": markdown(title),
        "about_markdown": markdown(one_line(api.description, 600)),
        "tools_count": len(tools),
        "tools_table": _tools_table(tools),
        "environment_table": _environment_table(environment(api, names, tools)),
        "base_url": api.base_url,
        "address_variable": f"{names.prefix}_BASE_URL",
        "example_tool": next((tool.name for tool in tools if not tool.input_schema.get("required")), ""),
    }


def markdown(text: str) -> str:
    """Text that Markdown shows as it is, on one line, also inside a table."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _tools_table(tools: Sequence[ApiTool]) -> str:
    rows = [f"| `{tool.name}` | {markdown(one_line(tool.title, 80))} |" for tool in tools[:_ROWS]]
    more = f"\n\nand {len(tools) - _ROWS} more" if len(tools) > _ROWS else ""
    return "\n".join(["| tool | what it does |", "|---|---|", *rows]) + more if rows else ""


def _environment_table(rows: Sequence[dict[str, Any]]) -> str:
    lines = [
        f"| `{row['name']}` | {'yes' if row['required'] else 'no'} | {markdown(row['description'])} |" for row in rows
    ]
    return "\n".join(["| variable | required | what it holds |", "|---|---|---|", *lines]) if lines else ""
