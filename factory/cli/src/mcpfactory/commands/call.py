from __future__ import annotations

import asyncio
import json
import os
from typing import Annotated, Any, Final, NamedTuple

import typer

from mcpfactory import complete, output
from mcpfactory.options import AsJson, Demo, Mode, Name, workspace_in
from mcpfactory_runtime.errors import Exit
from mcpfactory_runtime.schemas.walk import properties_of, required_of

_MAX_SUGGESTIONS: Final = 5  # names that are suggested for one that was mistyped
_LEAST: Final = 3  # characters of a part of a name that is suggested
_MODES: Final = ("full", "search")
_WARNING: Final = "warning: "  # how a server begins a line on stderr for the person who started it
_INVALID: Final = "Invalid arguments"  # prefix of the runtime's message about invalid arguments


def call(
    name: Name,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Tool to call", autocompletion=complete.tools)],
    arg: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            "-a",
            metavar="NAME=VALUE",
            help="Tool argument; JSON unless the tool expects a string (repeatable)",
        ),
    ] = None,
    args: Annotated[str, typer.Option(metavar="JSON", help="All arguments as one JSON object")] = "",
    as_json: AsJson = False,
    mode: Mode = "full",
    demo: Demo = False,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the response", min=0.001)] = 60.0,
) -> None:
    """Call a tool of a server and print the result."""
    from mcpfactory_pipeline.workspace.upstream import refuse_among_many

    if mode not in _MODES:
        output.fail(f"unknown mode {mode!r}", "use --mode full or --mode search", Exit.USAGE)
    typed = _parse_arguments(arg or [], args)
    space = workspace_in()
    server = space.server(name)
    refuse_among_many(space, server, os.environ)
    _warn_of_drift(space, server)
    offer = {"MCPFACTORY_MODE": mode, "MCPFACTORY_PROFILE": "full", "MCPFACTORY_DIALECT": "standard"}
    offer |= {"MCPFACTORY_DEMO": "1"} if demo else {}
    result = asyncio.run(_call(server, offer, tool, typed, timeout))
    if as_json:
        output.data(result)
    else:
        for block in result.get("content", []):
            output.line(_block_text(block))
    if result.get("isError"):
        raise typer.Exit(Exit.NO)


class _TypedArguments(NamedTuple):
    """Arguments from the command line: the JSON object, and pairs of name and text."""

    whole: dict[str, Any]
    pairs: list[tuple[str, str]]


def _parse_arguments(pairs: list[str], whole: str) -> _TypedArguments:
    """Return the typed arguments; end the command if they are invalid, before the server is started."""
    try:
        arguments = json.loads(whole) if whole else {}
    except json.JSONDecodeError as error:
        output.fail(f"--args is not JSON: {error}", """--args '{"name": "value"}'""")
    if not isinstance(arguments, dict):
        output.fail("--args must be a JSON object", """--args '{"name": "value"}'""")
    for pair in pairs:
        if "=" not in pair:
            output.fail(f"--arg {pair!r} has no value", "--arg NAME=VALUE", Exit.USAGE)
    return _TypedArguments(arguments, [(name, text) for name, _, text in (pair.partition("=") for pair in pairs)])


def _warn_of_drift(space: Any, server: Any) -> None:
    """Warn, before anything is sent to a server, if it is known to have drifted from its adopted version."""
    if server.adopted is None:
        return
    from mcpfactory_pipeline.decisions.drift import drift_sentence, offered_drift
    from mcpfactory_pipeline.state.store import Store

    for one in offered_drift(space, server, Store(space).state(server.name)):
        output.warning(drift_sentence(server, one))
        output.hint(one.command)


async def _call(
    server: Any, offer: dict[str, str], tool: str, typed: _TypedArguments, timeout: float
) -> dict[str, Any]:
    from mcpfactory_codegen.text import nearest
    from mcpfactory_pipeline.launch.command import find_tool_failure
    from mcpfactory_pipeline.launch.connection import connect_server
    from mcpfactory_pipeline.workspace.coverage import inspection_report
    from mcpfactory_runtime import McpError
    from mcpfactory_runtime.schemas.values import value_from_text

    async with connect_server(server, offer, timeout=timeout) as client:
        tools = {listed["name"]: listed for listed in await client.list_tools()}
        if tool not in tools:
            contained = (known for known in sorted(tools) if len(tool) >= _LEAST and tool.lower() in known.lower())
            near = [name for name in dict.fromkeys([nearest(tool, tools), *contained]) if name][:_MAX_SUGGESTIONS]
            start = "" if inspection_report(server.folder) else " --start"
            guess = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
            output.fail(
                f"{server.name} has no tool {tool!r}",
                f"{guess}mcpfactory inspect {server.name}{start} lists all",
                Exit.NOT_FOUND,
            )
        schema = tools[tool]["inputSchema"]
        declared = properties_of(schema)
        arguments = typed.whole | {name: value_from_text(declared.get(name), text) for name, text in typed.pairs}
        try:
            result: dict[str, Any] = await client.call_tool(tool, arguments)
        except McpError as error:
            output.fail(f"{server.name} returned error {error.code}: {error}", code=Exit.NO)
    for line in client.stderr.splitlines():
        if line.startswith(_WARNING):  # an address that was not moved, say
            output.warning(line.removeprefix(_WARNING))
    if result.get("isError") and (failure := find_tool_failure(client.stderr, server.name, server.folder)) is not None:
        output.error(str(failure), failure.hint)  # the caller gets an internal error; the owner, where it is
    elif result.get("isError") and str(next(iter(result.get("content") or [{}])).get("text", "")).startswith(_INVALID):
        output.hint(f"{tool} takes {_describe_arguments(schema)}")
    return result


def _describe_arguments(schema: dict[str, Any]) -> str:
    required = required_of(schema)
    names = [f"{name} (required)" if name in required else name for name in properties_of(schema)]
    return ", ".join(names) or "no arguments"


def _block_text(block: dict[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block["text"])
        case "resource_link":
            return f"{block.get('name', '')} <{block['uri']}>"
        case "resource":
            resource = block["resource"]
            return str(resource.get("text", f"{resource['uri']}: {len(resource.get('blob', ''))} characters of base64"))
        case kind:
            return f"{kind}: {block.get('mimeType', '')}, {len(block.get('data', ''))} characters of base64"
