from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mcpfactory import output
from mcpfactory.options import AsJson, OptionalName, selected_workspace
from mcpfactory.output import print_tool_groups
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

_Start = Annotated[
    bool,
    typer.Option(
        "--start",
        help="Start the server in a sandbox if no report lists the tools",
    ),
]


_Client = Annotated[
    str,
    typer.Option(
        "--client", "-c", metavar="CLIENT", help="Show the tools that this client, such as gemini, would refuse"
    ),
]


def inspect(name: OptionalName = "", start: _Start = False, client: _Client = "", as_json: AsJson = False) -> None:
    """Show a server's tools, arguments and token cost.

    Without NAME, list all servers. Server code runs only with --start, and only if the server has no report. With
    --client, --start also checks tools that are not generated.
    """
    if not name:
        _list(as_json=as_json)
        return
    if client:
        _print_refusals(selected_workspace().server(name), client, start=start, as_json=as_json)
        return
    from mcpfactory_codegen.servers.overview import overview
    from mcpfactory_pipeline.base.text import pluralize
    from mcpfactory_pipeline.workspace.coverage import inspection_report, operation_name

    server = selected_workspace().server(name)
    shown = inspection_report(server.folder) or _started_report(server, start=start)
    view = overview(server.name, shown)
    if as_json:
        output.data({**shown, "overview": view.to_json()})
        return
    tools = shown["tools"]
    tokens = sum(tool["tokens"] for tool in tools)
    output.line(f"{server.name}: {pluralize(len(tools), 'tool')}, {pluralize(tokens, 'token')} in tools/list")
    output.line()
    output.table(("TOOL", "OPERATION", "ARGUMENTS", "TOKENS"), [_tool_row(tool) for tool in tools])
    _print_most_expensive(tools)
    if workflows := shown.get("workflows"):
        output.line()
        output.table(("WORKFLOW", "TOOLS"), [(one["name"], ", ".join(one["steps"])) for one in workflows])
    if len(profiles := shown.get("offer", {}).get("profiles", {})) > 1:
        offer = shown["offer"]
        output.line()
        output.line(f"offered: mode {offer['mode']}, profile {offer['profile']}")
        output.line()
        output.table(
            ("PROFILE", "TOOLS", "TOKENS"),
            [(profile, str(one["tools"]), str(one["tokens"])) for profile, one in profiles.items()],
        )
    if shown["skipped"]:
        output.line()
        output.table(("LEFT OUT", "REASON"), [(operation_name(op), op["reason"]) for op in shown["skipped"]])
    _print_settings(shown, server.name)
    _print_texts(shown)
    if shown.get("offer", {}).get("mode") != "search":
        print_tool_groups(
            shown.get("groups", []), shown.get("tokens", 0), 'mode = "search" below [server] in mcpfactory.toml'
        )


def _print_refusals(server: WorkspaceServer, client: str, *, start: bool, as_json: bool) -> None:
    from mcpfactory_pipeline.base.text import pluralize, printable_line
    from mcpfactory_runtime.schemas.client_limits import CLIENTS
    from mcpfactory_runtime.schemas.client_refusals import find_refusals

    if client not in CLIENTS:
        output.fail(f"unknown client {client!r}", f"use one of {', '.join(CLIENTS)}", Exit.NOT_FOUND)
    tools = [] if start else _generated_tools(server)
    tools = tools or _started_report(server, start=start)["listed"]
    found = list(find_refusals(tools, client))
    if as_json:
        refusals = [{**one._asdict(), "limit": {"text": one.limit.text, **one.limit._asdict()}} for one in found]
        output.data({"client": client, "tools": len(tools), "refusals": refusals})
        return
    output.line(f"{client} refuses {pluralize(len(found), 'part')} of {pluralize(len(tools), 'tool')}")
    if found:
        output.line()
        rows = [
            (one.tool or "-", printable_line(one.place) or "-", printable_line(one.found), one.limit.text)
            for one in found
        ]
        output.table(("TOOL", "PLACE", "REFUSED", "LIMIT"), rows)
        output.line()
        for limit in dict.fromkeys(one.limit for one in found):
            output.line(f"{limit.subject}: {limit.source} ({limit.date})")
        if any(one.limit.subject == "tools" for one in found):
            output.note("hint: list fewer tools with a profile, or with mode search")
    if not start:
        output.note(
            f"note: only generated tools are checked; mcpfactory inspect {server.name} --client {client} --start checks all"
        )


def _generated_tools(server: WorkspaceServer) -> list[dict[str, Any]]:
    """Return the generated tools as the server lists them by default; empty without a manifest."""
    from mcpfactory_codegen.servers.report_file import read_json_object
    from mcpfactory_runtime.schemas.client_dialects import adapt_tool
    from mcpfactory_runtime.schemas.client_limits import DEFAULT_DIALECT, dialect_limits

    manifest = read_json_object(server.folder.joinpath("src", *server.package.split("."), "_generated/manifest.json"))
    limits = dialect_limits(manifest.get("dialect", DEFAULT_DIALECT))
    return [adapt_tool(tool, limits) for tool in manifest.get("tools", [])]


def _list(*, as_json: bool) -> None:
    from mcpfactory_pipeline.views.status import list_servers

    rows = list_servers(selected_workspace())
    if as_json:
        output.data(rows)
    elif rows:
        output.table(("SERVER", "TEMPLATE", "TOOLS", "FROM"), [_server_row(row) for row in rows])
    else:
        output.note("no server yet; hint: mcpfactory new --from-openapi FILE")


def _server_row(row: dict[str, Any]) -> tuple[str, ...]:
    problem = row.get("problem")
    origin = f"error: {problem['message']}; hint: {problem['hint']}" if problem else row["source"] or "-"
    return row["server"], row["template"] or "-", "-" if row["tools"] is None else str(row["tools"]), origin


def _print_settings(shown: dict[str, Any], name: str) -> None:
    from mcpfactory_pipeline.workspace.api_addresses import api_addresses, describe_need

    if address := shown.get("address"):
        output.line()
        for place in api_addresses(address, os.environ, server=name):
            output.line(place.message)
            if place.hint:
                output.line(f"  hint: {place.hint}")
        if not address.get("rootless"):
            output.line(f"set {address['prefix']}_BASE_URL to use another address")
    if shown["environment"]:
        output.line()
        output.table(
            ("ENVIRONMENT", "", ""),
            [(v["name"], describe_need(shown, v), v["description"]) for v in shown["environment"]],
        )


_MOST: Final = 5
_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


def _print_texts(shown: dict[str, Any]) -> None:
    from mcpfactory_pipeline.base.text import printable_line

    if "instructions" not in shown:
        return
    output.line()
    output.line(f"instructions: {printable_line(shown['instructions']) or '-'}")
    for tool in shown["listed"]:
        output.line()
        output.line(printable_line(tool["name"]))
        for place, text in _texts_of({key: part for key, part in tool.items() if key != "name"}):
            output.line(f"  {printable_line(place)}: {printable_line(text)}")


def _texts_of(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield (place, text) for each text of a listed tool, with "" for a missing text."""
    if isinstance(value, str) and value not in _TYPES:
        yield place, value
    elif isinstance(value, dict):
        for name, part in value.items():
            here = f"{place}.{name}".lstrip(".")
            yield from list(_texts_of(part, here)) or [(here, "")]  # also show member names
    elif isinstance(value, list):
        for part in value:
            yield from _texts_of(part, place)


def _print_most_expensive(tools: list[dict[str, Any]]) -> None:
    expensive = sorted(tools, key=lambda tool: -tool["tokens"])[:_MOST]
    whole, part = sum(tool["tokens"] for tool in tools), sum(tool["tokens"] for tool in expensive)
    if len(tools) > 2 * _MOST and part:
        output.line()
        shown = ", ".join(f"{tool['name']} {tool['tokens']}" for tool in expensive)
        output.line(f"most tokens: {shown} ({100 * part // whole} % of all)")


def _arguments(tool: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a listed tool, without request locations."""
    from mcpfactory_runtime.schemas.walk import properties_of

    return {argument: {} for argument in properties_of(tool.get("inputSchema"))}


def _tool_row(tool: dict[str, Any]) -> tuple[str, ...]:
    from mcpfactory_pipeline.base.text import printable_line
    from mcpfactory_pipeline.workspace.coverage import operation_name

    operation = tool["operation"]
    arguments = ", ".join(printable_line(_argument_cell(*one)) for one in tool["arguments"].items())
    return (tool["name"], operation_name(operation) if operation else "-", arguments or "-", str(tool["tokens"]))


def _argument_cell(name: str, bound: dict[str, Any]) -> str:
    """Return an argument with its place in the request, and with its name there, if that name differs."""
    other = "" if bound.get("name", name) == name else f" {bound['name']}"
    return f"{name}({bound['in']}{other})" if "in" in bound else name


def _started_report(server: WorkspaceServer, *, start: bool) -> dict[str, Any]:
    """Start the server to make its report, or end the command if `start` is False."""
    if not start and server.adopted is not None:
        output.fail(
            f"{server.name} was adopted ({server.adopted.origin}): its tools are known only when it runs",
            f"mcpfactory inspect {server.name} --start starts it",
            Exit.BAD_INPUT,
        )
    if not start:
        output.fail(
            f"{server.name} has no report: its tools are known only when its code runs",
            f"mcpfactory inspect {server.name} --start runs that code: package {server.package}, "
            f"with {'its own .venv' if (server.folder / '.venv').exists() else 'what its pyproject.toml declares'}",
            Exit.BAD_INPUT,
        )
    output.note(f"note: {server.name} has no report: running its code")
    with TemporaryDirectory(prefix="mcpfactory-inspect-", ignore_cleanup_errors=True) as home:
        return asyncio.run(_report_of_running(server, Path(home)))


async def _report_of_running(server: WorkspaceServer, home: Path) -> dict[str, Any]:
    from mcpfactory_codegen.text import estimate_tokens
    from mcpfactory_pipeline.launch.server_connection import connect_server

    async with connect_server(server, home=home) as client:
        instructions, tools = client.instructions or "", await client.list_tools()
    rows = [
        {"name": tool["name"], "operation": None, "arguments": _arguments(tool), "tokens": estimate_tokens(tool)}
        for tool in tools
    ]
    texts = {"instructions": instructions, "listed": tools}
    return {"tools": rows, "skipped": [], "environment": [], "problems": [], **texts}
