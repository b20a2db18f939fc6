"""Page that tries a tool: a form from the input schema, and the result of one call to the candidate's server."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError, StageError
from mcpfactory_pipeline.build.candidate_environment import find_validated_python
from mcpfactory_pipeline.channels.candidate import find_artifact
from mcpfactory_pipeline.checks.call_plan import api_variables, read_stub_cases, required_variables
from mcpfactory_pipeline.dashboard.actions import FormInput
from mcpfactory_pipeline.dashboard.candidates import DisplayedFact
from mcpfactory_pipeline.dashboard.facts import ServerDetail, shorten
from mcpfactory_pipeline.isolation.levels import clean_environ
from mcpfactory_pipeline.launch.start_command import convert_client_error, package_command
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer
from mcpfactory_runtime import McpError
from mcpfactory_runtime.client import ConnectionLostError, ProtocolError, connect_stdio
from mcpfactory_runtime.schemas.value_validation import parse_argument_text
from mcpfactory_runtime.schemas.walk import properties_of, required_of, types_of
from mcpfactory_runtime.upstream.stub import RecordedRequest, StubUpstream

_TIMEOUT: Final = 20.0  # seconds; timeout of a call
_TEXT: Final = 20_000  # maximum number of characters of a response or a request body
_CHOICES: Final = 60


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request from the tool to its API."""

    method: str
    target: str
    headers: tuple[DisplayedFact, ...]
    body: str


@dataclass(frozen=True, slots=True)
class ToolCallResult:
    """Outcome of a call.

    Attributes:
        compact: arguments as JSON on one line.
        test: the call as a declared test.
        file: path for a new file with the declared test.
        command: command that makes the same call to the real API.
    """

    arguments: str
    compact: str
    requests: tuple[SentRequest, ...]
    result: str
    error: bool
    problem: str
    test: str
    file: str
    command: str


@dataclass(frozen=True, slots=True)
class ToolCallPage:
    """Page that tries a tool.

    `raw` contains all arguments as JSON, and takes precedence over the fields. `stub` is True if a stub API answers.
    """

    workspace: str
    server: str
    tool: str
    about: str
    candidate: str
    stub: bool
    inputs: tuple[FormInput, ...]
    raw: str
    problem: str
    hint: str
    tried: ToolCallResult | None
    ticket: str


def tool_call_page(
    workspace: Workspace,
    detail: ServerDetail,
    tool: str,
    given: Mapping[str, Any] | None,
    tried: ToolCallResult | None = None,
) -> ToolCallPage:
    """Return the page for a tool. By default, the tool's test case provides the values."""
    name = detail.facts.name
    shown = _tool_of(detail, tool)
    case, problem, hint = None, "", ""
    try:
        server = workspace.server(name)
        case, _ = _case(server, tool), _python(workspace, server)
    except StageError as error:
        problem, hint = str(error), error.hint
    values = dict(given) if given is not None else _values(case["arguments"] if case else {})
    schema = shown.get("inputSchema")
    required = required_of(schema)
    inputs = tuple(
        _input(key, kind if isinstance(kind, dict) else {}, key in required, str(values.get(f"arg.{key}", "")))
        for key, kind in properties_of(schema).items()
    )
    return ToolCallPage(
        workspace=workspace.name,
        server=name,
        tool=tool,
        about=str(shown.get("description", ""))[:2000],
        candidate=detail.state.candidate or "",
        stub=case is not None,
        inputs=inputs,
        raw=str(values.get("raw", "")),
        problem=problem,
        hint=hint,
        tried=tried,
        ticket="",
    )


def parse_tool_arguments(detail: ServerDetail, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments: `arguments` of a JSON request, `raw` JSON of a form, or the form's fields `arg.<name>`.

    If the schema permits a string, the value stays a text. With any other schema, the value is parsed as JSON if
    possible. Only the server validates the arguments.
    """
    schema = _tool_of(detail, tool).get("inputSchema")
    if isinstance(given.get("arguments"), dict):
        return dict(given["arguments"])
    if raw := str(given.get("raw", "")).strip():
        try:
            found = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"the arguments are not JSON: {error}", hint='write an object such as {"name": "value"}'
            ) from error
        if not isinstance(found, dict):
            raise ConfigError("the arguments are not a JSON object", hint='write an object such as {"name": "value"}')
        return found
    kinds = properties_of(schema)
    texts = {key: str(given.get(f"arg.{key}", "")) for key in kinds}
    return {key: parse_argument_text(kinds[key], text) for key, text in texts.items() if text}


def run_tool_call(
    workspace: Workspace, detail: ServerDetail, tool: str, arguments: Mapping[str, Any]
) -> ToolCallResult:
    """Start the candidate's server, call the tool once with the stub API, and stop the server."""
    server = workspace.server(detail.facts.name)
    case, python = _case(server, tool), _python(workspace, server)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        environ = {
            **clean_environ(home),
            **dict.fromkeys(required_variables(server.folder), "stand-in"),
            "MCPFACTORY_MODE": "full",
            "MCPFACTORY_PROFILE": "full",
            "MCPFACTORY_DIALECT": "standard",
        }
        command = package_command(python, server.package, server.folder)
        addresses = api_variables(server.folder).variables_for_address("") if case else {}
        about: dict[str, Any] = {"case": case, "tool": tool, "arguments": arguments}
        requests, result, problem = asyncio.run(
            _call(command, home=home, environ=environ, addresses=addresses, **about)
        )
    error = bool((result or {}).get("isError"))
    compact = _sendable(json.dumps(arguments, ensure_ascii=False))
    return ToolCallResult(
        arguments=_pretty(arguments),
        compact=compact,
        requests=tuple(map(_sent, requests)),
        result=_pretty(result) if result is not None else "",
        error=error,
        problem=problem,
        test=_declared(tool, arguments, case, error=error) if result is not None else "",
        file=_unused(server.folder, tool),
        command=shlex.join(["mcpfactory", "call", server.name, tool, "--args", compact]),
    )


def _unused(folder: Path, tool: str) -> str:
    plain = re.sub(r"[^\w.-]", "_", tool)
    names = (f"tests/{plain}{number or ''}.yaml" for number in range(1000))
    return next((name for name in names if not (folder / name).exists()), f"tests/{plain}.yaml")


def _declared(tool: str, arguments: Mapping[str, Any], case: Mapping[str, Any] | None, *, error: bool) -> str:
    test = {
        "name": f"{tool} as tried",
        "tool": tool,
        "arguments": dict(arguments),
        **({"status": "error"} if error else {}),
        "snapshot": True,
        **({"upstream": [without_request_parameters(case)]} if case else {}),
    }
    return _sendable(yaml.safe_dump({"tests": [test]}, sort_keys=False, allow_unicode=True, width=120))


async def _call(
    command: Sequence[str],
    *,
    home: Path,
    environ: Mapping[str, str],
    addresses: Mapping[str, str],
    case: Mapping[str, Any] | None,
    tool: str,
    arguments: Mapping[str, Any],
) -> tuple[Sequence[RecordedRequest], dict[str, Any] | None, str]:
    """Return the requests to the stub API, the result, and the reason for a missing result."""
    async with StubUpstream() as stub:
        if case is not None:
            stub.expect(without_request_parameters(case))
        own = {**environ, **{name: f"{stub.base_url}{folder}" for name, folder in addresses.items()}}
        result, problem = None, ""
        try:
            async with (
                asyncio.timeout(2 * _TIMEOUT),
                connect_stdio(
                    command, env=own, cwd=home, inherit=False, start_new_session=True, timeout=_TIMEOUT
                ) as client,
            ):
                result = await client.call_tool(tool, dict(arguments))
        except (ConnectionLostError, ProtocolError, OSError, TimeoutError) as error:
            mistake = convert_client_error(error)
            problem = f"{mistake}\nhint: {mistake.hint}"
        except McpError as error:
            problem = f"the server answered with error {error.code}: {error}"
        return stub.requests, result, problem


def without_request_parameters(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return a test case that matches every request with the same method."""
    return {"request": {"method": case["request"]["method"]}, "response": case["response"]}


def _sent(request: RecordedRequest) -> SentRequest:
    target = request.path + (f"?{request.query}" if request.query else "")
    headers = tuple(DisplayedFact(*one) for one in request.headers)
    return SentRequest(request.method, target, headers, request.body.decode(errors="replace")[:_TEXT])


def _case(server: WorkspaceServer, tool: str) -> Mapping[str, Any] | None:
    if server.source is None:
        return None
    cases = read_stub_cases(server.cases) if server.cases.is_file() else []
    own = [case for case in cases if case.get("tool") == tool]
    if not own:
        raise StageError(
            f"{tool} cannot be tried: the API document has no example response for this tool",
            hint=f"call the real API with 'mcpfactory call {server.name} {tool}'",
        )
    if "path" not in own[0]["request"]:
        raise StageError(
            f"{tool} cannot be tried: the stub API cannot replace the separate server URL of the API operation",
            hint=f"call the real API with 'mcpfactory call {server.name} {tool}'",
        )
    return own[0]


def _python(workspace: Workspace, server: WorkspaceServer) -> Path:
    candidate = find_artifact(workspace, Store(workspace).state(server.name))
    python = find_validated_python(candidate) if candidate else None
    if python is None:
        raise StageError(
            f"the newest candidate of {server.name} is not installed on this machine",
            hint=f"mcpfactory pipeline run {server.name} --until validate --force",
        )
    return python


def _tool_of(detail: ServerDetail, tool: str) -> Mapping[str, Any]:
    tools = [one for one in (*detail.manifest.get("tools", ()), *detail.contract) if isinstance(one, dict)]
    found = next((one for one in tools if one.get("name") == tool), None)
    if found is None:
        raise NotFoundError(
            f"{detail.facts.name} has no tool {tool!r}", hint="find the tool on the tools page of the server"
        )
    return found


def _values(arguments: Mapping[str, Any]) -> dict[str, str]:
    return {f"arg.{key}": value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}


def _input(name: str, schema: Mapping[str, Any], required: bool, value: str) -> FormInput:
    choices = _choices(schema)
    kinds = {*types_of(schema)} - {"null"}
    plain = "text" if kinds in ({"string"}, {"integer"}, {"number"}) else "json"
    kind = "choice" if choices else plain
    if choices and value not in choices:
        value = ""
    about = str(schema.get("description", ""))[:300]
    return FormInput(f"arg.{name}", name, about, kind, required, value, ("", *choices) if choices else ())


def _choices(schema: Mapping[str, Any]) -> Sequence[str]:
    if schema.get("type") == "boolean":
        return ("true", "false")
    known = schema.get("enum")
    if not isinstance(known, list) or not 0 < len(known) <= _CHOICES:
        return ()
    return tuple(one if isinstance(one, str) else json.dumps(one) for one in known)


def _pretty(value: object) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return shorten(_sendable(text), _TEXT)


def _sendable(text: str) -> str:
    """Escape lone surrogates, because pages cannot contain lone surrogates."""
    return text.encode(errors="backslashreplace").decode()
