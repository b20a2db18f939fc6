"""Commands that start a server: run, login and call."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterable, Mapping
from contextlib import suppress
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, NoReturn

import typer

from mcpfactory import completion, output
from mcpfactory.options import AsJson, Channel, Demo, Host, Http, Mode, Name, Port, Profile, Root, selected_workspace
from mcpfactory_runtime.errors import Exit
from mcpfactory_runtime.schemas.walk import items_schema_of, properties_of, required_of, types_of, without_null
from mcpfactory_runtime.server.generated.catalog import MODES

if TYPE_CHECKING:
    from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

_MAX_SUGGESTIONS: Final = 5  # maximum number of similar tools that an error message suggests
_MIN_LENGTH: Final = 3  # minimum characters of a word to search for; shorter words match too many tools
_WARNING: Final = "warning: "  # prefix of lines on a server's stderr that must be shown to the user
_FULL: Final = "full"  # profile with all tools
_INVALID: Final = "Invalid arguments"  # start of the runtime's message about invalid arguments


def run(
    name: Name,
    http: Http = False,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    open_: Annotated[
        bool,
        typer.Option("--open", help="With --http: allow all callers on a non-loopback address, without authorization"),
    ] = False,
    mode: Mode = "",
    profile: Profile = "",
    dialect: Annotated[
        str,
        typer.Option(
            metavar="DIALECT",
            help="Adapt the tool list to these clients [default: plain]",
        ),
    ] = "",
    demo: Demo = False,
    channel: Channel = "",
    workspace: Root = None,
) -> None:
    """Start a server on stdio or over HTTP."""
    from mcpfactory_pipeline.launch.start_command import server_command, server_environ
    from mcpfactory_pipeline.workspace.api_addresses import refuse_shared_in_workspace

    space = selected_workspace(workspace)
    server = space.server(name)
    refuse_shared_in_workspace(space, server, os.environ)
    chosen = [
        f"--{key}={value}" for key, value in (("mode", mode), ("profile", profile), ("dialect", dialect)) if value
    ]
    web = ["--http", "--host", host, "--port", str(port), *(["--open"] if open_ else [])] if http else []
    command = (
        _offered(space, server, channel, chosen + web) if channel else server_command(server, *chosen, *web, web=http)
    )
    environ = server_environ(server) | ({"MCPFACTORY_DEMO": "1"} if demo else {})
    if os.name == "nt":  # on Windows, a program cannot replace its own process
        sys.exit(subprocess.run(command, env=environ, check=False).returncode)
    sys.stdout.flush()
    os.execve(command[0], command, environ)  # noqa: S606 - the server replaces this process


def _offered(workspace: Workspace, server: WorkspaceServer, channel: str, options: list[str]) -> list[str]:
    from mcpfactory_pipeline.launch.adopted_commands import adopted_channel_command

    if server.adopted is None or options:
        output.usage_error(
            "--channel requires an adopted server and cannot be combined with other options",
            f"mcpfactory run {server.name}, or mcpfactory install {server.name} --from {channel} --client CLIENT",
        )
    return adopted_channel_command(workspace, server, channel)


def login(
    name: Name,
    scheme: Annotated[
        str, typer.Option(metavar="SCHEME", help="Log in with this security scheme, if the API has several")
    ] = "",
    scope: Annotated[
        list[str] | None,
        typer.Option(metavar="SCOPE", help="Request this scope instead of the scopes of all tools (repeatable)"),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="PORT", help="Receive the browser's login response on this local port")
    ] = 33418,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the login URL instead of opening a browser")
    ] = False,
    device: Annotated[bool, typer.Option("--device", help="Log in on another device by typing a code")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Log out and delete the stored login")] = False,
) -> None:
    """Log in to the API of a server (OAuth 2).

    The user logs in with a browser or a code. The tokens are stored for this server.
    """
    if forget:
        _run_own_command(name, "logout", f"--scheme={scheme}")
    switches = ["--no-browser"] * no_browser + ["--device"] * device
    scopes = [f"--scope={one}" for one in scope or ()]
    _run_own_command(name, "login", f"--scheme={scheme}", f"--port={port}", *scopes, *switches)


def _run_own_command(name: str, *arguments: str) -> NoReturn:
    """Run a command of the server's program, with the server's settings and libraries."""
    from mcpfactory_pipeline.launch.start_command import server_command, server_environ
    from mcpfactory_pipeline.workspace.api_addresses import refuse_shared_in_workspace

    workspace = selected_workspace()
    server = workspace.server(name)
    refuse_shared_in_workspace(workspace, server, os.environ)
    done = subprocess.run(server_command(server, *arguments), env=server_environ(server), check=False)
    sys.exit(done.returncode)


def call(
    name: Name,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Tool to call", autocompletion=completion.tools)],
    arg: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            "-a",
            metavar="NAME=VALUE",
            help="Pass this tool argument (repeatable; a repeated NAME makes a list); VALUE is JSON, text or @FILE",
        ),
    ] = None,
    args: Annotated[
        str, typer.Option(metavar="JSON", help="Pass all tool arguments as one JSON object, or @FILE")
    ] = "",
    as_json: AsJson = False,
    mode: Mode = "full",
    profile: Profile = "",
    demo: Demo = False,
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Stop waiting for the response after this number of seconds", min=0.001),
    ] = 60.0,
) -> None:
    """Call a tool of a server and print the result."""
    from mcpfactory_pipeline.workspace.api_addresses import refuse_shared_in_workspace

    if mode not in MODES:
        output.usage_error(f"unknown mode {mode!r}", "use --mode full or --mode search")
    typed = _parse_arguments(arg or [], args)
    space = selected_workspace()
    server = space.server(name)
    refuse_shared_in_workspace(space, server, os.environ)
    _warn_of_drift(space, server)
    profile = profile or os.environ.get("MCPFACTORY_PROFILE") or server.config.server.profile or _FULL
    offer = {"MCPFACTORY_MODE": mode, "MCPFACTORY_PROFILE": profile, "MCPFACTORY_DIALECT": "standard"}
    offer |= {"MCPFACTORY_DEMO": "1"} if demo else {}
    result = asyncio.run(_call(server, offer, tool, typed, timeout))
    if as_json:
        output.data(result)
    else:
        for block in result.get("content", []):
            output.line(_block_text(block))
    if result.get("isError"):
        _hint_credentials(server, " ".join(_block_text(block) for block in result.get("content", [])))
        raise typer.Exit(Exit.NEGATIVE)


def _hint_credentials(server: Any, error: str) -> None:
    """Print how to set or check the credentials whose variables an error names."""
    from mcpfactory_pipeline.base.errors import StageError
    from mcpfactory_pipeline.workspace.api_addresses import security_scheme_statuses
    from mcpfactory_pipeline.workspace.coverage import inspection_report

    with suppress(StageError):
        data = (inspection_report(server.folder) or {}).get("credentials") or {"schemes": ()}
        statuses, words = security_scheme_statuses(server.name, data, os.environ), re.findall(r"\w+", error)
        for row, status in zip(data["schemes"], statuses, strict=True):
            if named := " and ".join(variable for variable in row["variables"] if variable in words):
                check = f"check the value of {named}; mcpfactory doctor {server.name} lists the credentials"
                output.hint(status.hint or check)


class _File(NamedTuple):
    path: Path
    content: bytes

    def text(self) -> str:
        """Return the content as text, or end the command."""
        try:
            return self.content.decode("utf-8")
        except UnicodeDecodeError:
            output.fail(f"{self.path} is not UTF-8 text", "give a text file, because the argument is not a file")


class _TypedArguments(NamedTuple):
    whole: dict[str, Any]
    pairs: list[tuple[str, str | _File]]


def _parse_arguments(pairs: list[str], whole: str) -> _TypedArguments:
    """Return the typed arguments, or end the command if they are invalid."""
    given = _given(whole)
    try:
        arguments = json.loads(given if isinstance(given, str) else given.text()) if whole else {}
    except json.JSONDecodeError as error:
        output.fail(f"--args is not JSON: {error}", """--args '{"name": "value"}'""")
    if not isinstance(arguments, dict):
        output.fail("--args must be a JSON object", """--args '{"name": "value"}'""")
    for pair in pairs:
        if "=" not in pair:
            output.usage_error(f"--arg {pair!r} has no value", "--arg NAME=VALUE")
    typed = [(name, _given(text)) for name, _, text in (pair.partition("=") for pair in pairs)]
    return _TypedArguments(arguments, typed)


def _given(text: str) -> str | _File:
    """Return the file of `@FILE`, or the text, where `@@` stands for `@`."""
    if not text.startswith("@") or text.startswith("@@"):
        return text.removeprefix("@")
    path = Path(text[1:])
    try:
        return _File(path, path.read_bytes())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        output.fail(f"{path} cannot be read: {reason}", f"check the path; for the text {text!r}, write '@{text}'")


def _merge_pairs(schema: Mapping[str, Any], pairs: Iterable[tuple[str, str | _File]]) -> dict[str, Any]:
    """Return the values of the arguments of an input schema. The values of a repeated array argument are one array."""
    values: dict[str, Any] = {}
    for name, given in pairs:
        wanted = without_null(properties_of(schema).get(name), schema)
        value = _argument_value(wanted, given)
        if name in values and "array" not in types_of(wanted):
            output.usage_error(f"--arg {name} was given twice: the argument is not a list", "give one value")
        values[name] = values[name] + value if name in values else value
    return values


def _argument_value(schema: Any, given: str | _File) -> Any:
    """Return the value of an argument. A file argument gets the content and name of the file."""
    items = items_schema_of(schema) if "array" in types_of(schema) else None
    known = properties_of(items or schema)
    if isinstance(given, str) or "base64" not in known:
        return _parsed_value(schema, given if isinstance(given, str) else given.text())
    file = {"base64": b64encode(given.content).decode(), "filename": given.path.name}
    kind = guess_type(given.path.name)[0] or ""
    if kind in known.get("content_type", {}).get("enum", ()):
        file["content_type"] = kind
    return file if items is None else [file]


def _parsed_value(schema: Any, text: str) -> Any:
    """Return the value of a text. If the schema wants an array, a single item becomes an array."""
    from mcpfactory_runtime.schemas.value_validation import has_json_type, parse_argument_text

    value, kinds = parse_argument_text(schema, text), types_of(schema)
    if "array" in kinds and not has_json_type(value, kinds):
        return [parse_argument_text(items_schema_of(schema), text)]
    return value


def _warn_of_drift(space: Any, server: Any) -> None:
    """Warn about known drift of an adopted server before the first request to the server."""
    if server.adopted is None:
        return
    from mcpfactory_pipeline.decisions.drift import default_channel_drift_blockers, drift_sentence
    from mcpfactory_pipeline.state.store import Store

    for one in default_channel_drift_blockers(space, server, Store(space).state(server.name)):
        output.warning(drift_sentence(server, one))
        output.hint(one.command)


async def _call(
    server: Any, offer: dict[str, str], tool: str, typed: _TypedArguments, timeout: float
) -> dict[str, Any]:
    from mcpfactory_codegen.text import closest_match
    from mcpfactory_pipeline.launch.server_connection import connect_server
    from mcpfactory_pipeline.launch.start_command import find_tool_failure
    from mcpfactory_pipeline.workspace.coverage import inspection_report
    from mcpfactory_runtime import McpError

    async with connect_server(server, offer, timeout=timeout) as client:
        tools = {listed["name"]: listed for listed in await client.list_tools()}
        if tool not in tools:
            report, profile = inspection_report(server.folder), offer["MCPFACTORY_PROFILE"]
            if profile != _FULL and tool in {known["name"] for known in (report or {}).get("tools", ())}:
                again = f"mcpfactory call {server.name} {tool} --profile {_FULL}"
                output.fail(f"{server.name}: the profile {profile!r} does not offer {tool}", again, Exit.NOT_FOUND)
            contained = (known for known in sorted(tools) if len(tool) >= _MIN_LENGTH and tool.lower() in known.lower())
            near = [name for name in dict.fromkeys([closest_match(tool, tools), *contained]) if name][:_MAX_SUGGESTIONS]
            start = "" if report else " --start"
            guess = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
            output.fail(
                f"{server.name} has no tool {tool!r}",
                f"{guess}mcpfactory inspect {server.name}{start} lists all",
                Exit.NOT_FOUND,
            )
        schema = tools[tool]["inputSchema"]
        arguments = typed.whole | _merge_pairs(schema, typed.pairs)
        try:
            result: dict[str, Any] = await client.call_tool(tool, arguments)
        except McpError as error:
            output.fail(f"{server.name} returned error {error.code}: {error}", code=Exit.NEGATIVE)
    for line in client.stderr.splitlines():
        if line.startswith(_WARNING):
            output.warning(line.removeprefix(_WARNING))
    if result.get("isError") and (failure := find_tool_failure(client.stderr, server.name, server.folder)) is not None:
        # show where the tool failed, because the response hides the location
        output.error(str(failure), failure.hint)
    elif result.get("isError") and str(next(iter(result.get("content") or [{}])).get("text", "")).startswith(_INVALID):
        output.hint(f"{tool} takes {_describe_arguments(schema)}{_describe_invalid(schema, arguments)}")
    return result


def _describe_invalid(schema: dict[str, Any], arguments: dict[str, Any]) -> str:
    """Return an example for each invalid argument as shell words."""
    from mcpfactory_pipeline.checks.samples import sample_value
    from mcpfactory_runtime.schemas.references import UnusableSchemaError
    from mcpfactory_runtime.schemas.validation import compile_schema

    shown = ""
    with suppress(UnusableSchemaError):  # an adopted server can accept schemas that we do not
        for name, part in properties_of(schema).items():
            alone = {**schema, "properties": {name: part}, "required": [name]}
            if name in arguments and not compile_schema(alone).accepts({name: arguments[name]}):
                sample = json.dumps(sample_value(part, schema), ensure_ascii=False)
                shown += f"\n  for example: -a {shlex.quote(f'{name}={sample}')}"
    return shown


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
