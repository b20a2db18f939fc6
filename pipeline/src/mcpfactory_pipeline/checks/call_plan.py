"""Plan tool calls and their arguments, and check the requests that the stub API received.

If there are cases, each tool with a case is called against the stub API. Otherwise, tools with `readOnlyHint` are
called. Calls that the user specified or allowed are also made.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import unquote

from mcpfactory_pipeline.checks.evidence import (
    Evidence,
    RecordedCall,
    answer_text,
    hint,
    is_search_call_tool,
    sent_arguments,
)
from mcpfactory_pipeline.checks.exchange import ValidationTargetError, WireExchange
from mcpfactory_pipeline.checks.invalid_arguments import invalid_arguments
from mcpfactory_pipeline.checks.samples import (
    sample_arguments,
    second_guesses,
    vary_json_values,
    vary_texts_and_numbers,
)
from mcpfactory_runtime.types import Json
from mcpfactory_runtime.upstream.operation import ServerAddress
from mcpfactory_runtime.upstream.secrets import SHARED, Settings, server_override_variables
from mcpfactory_runtime.upstream.servers import Addresses
from mcpfactory_runtime.upstream.stub import RecordedRequest, StubUpstream, load_cases

MAX_CALLS: Final = 50  # maximum number of calls for servers without cases
MAX_VARIED: Final = 20  # maximum number of tools that are also called with varied arguments
MAX_FURTHER: Final = 200  # maximum number of additional calls with other arguments
MAX_WRONG: Final = 20  # maximum number of tools that are called with invalid arguments
MAX_INVALID: Final = 100  # maximum number of calls with invalid arguments
WITH_SAMPLE: Final = "with a sample file or page"  # title of a call whose arguments exist only during the validation
_MAX_REASON: Final = 300  # characters of an error message in a proposed case

FurtherArguments = Callable[[Any, Mapping[str, Any]], list[tuple[str, dict[str, Any]]]]
"""Function that returns (changed argument, arguments) pairs for an inputSchema and the arguments of a call."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call to make.

    `request` is the request that the API must receive; None for a call without a case. `case` is the complete case.
    `violates` and `optional` are those of `RecordedCall`.
    """

    tool: str
    arguments: Mapping[str, Any]
    origin: Literal["case", "example", "no arguments", "guess"]
    title: str = ""
    request: Mapping[str, Any] | None = None
    case: Mapping[str, Any] | None = None
    violates: str = ""
    optional: bool = False

    @property
    def question(self) -> str:
        """Return method and path of a request that only reads according to the API document; "" for other requests."""
        asks = self.case is not None and self.request is not None and self.case.get("reads") is True
        return f"{self.request['method']} {self.request['path']}" if asks and self.request is not None else ""


def plan_calls(
    tools: Sequence[tuple[str, Json]],
    cases: Sequence[Mapping[str, Any]] | None,
    *,
    examples: Sequence[Mapping[str, Any]] = (),
    allow_calls: bool = False,
) -> tuple[list[PlannedCall], dict[str, str]]:
    """Return the calls to make, in the order of the tools, and the reason for each tool that is not called.

    Args:
        tools: (name, tool) pairs.
        cases: calls of a generated server, with the API requests that each call must cause; None without a stub API.
        examples: calls for a server without cases; they replace guessed calls.
        allow_calls: also call tools without `readOnlyHint`, with guessed arguments.
    """
    plan: list[PlannedCall] = []
    uncalled: dict[str, str] = {}
    searched = next((name for name, tool in tools if is_search_call_tool(tool)), None)
    of_tools: dict[str, list[Mapping[str, Any]]] = {}
    for case in cases or ():
        of_tools.setdefault(str(case.get("tool")), []).append(case)
    for name, tool in tools:
        if cases is None:
            chosen = _of_examples(name, examples) or _without_cases(
                name, tool, tools, len(plan), allow_calls=allow_calls
            )
        elif searched is None:
            chosen = _with_cases(name, of_tools.get(name, ()))
        else:
            chosen = _by_search(name, tool, tools, searched, of_tools)
        if isinstance(chosen, str):
            uncalled[name] = chosen
        else:
            plan += chosen
    return plan, uncalled


def _by_search(
    name: str,
    tool: Json,
    tools: Sequence[tuple[str, Json]],
    searched: str,
    of_tools: Mapping[str, Sequence[Mapping[str, Any]]],
) -> list[PlannedCall] | str:
    """Plan the calls in search mode: the tool `searched` calls the tools with cases."""
    if name != searched:
        return _without_cases(name, tool, tools, 0)
    plan: list[PlannedCall] = []
    for meant, cases in of_tools.items():
        chosen = _with_cases(name, cases)
        for one in chosen if isinstance(chosen, list) else ():
            wrapped = {"name": meant, "arguments": one.arguments}
            plan.append(replace(one, arguments=wrapped, title=f"{meant}: {one.title}"))
    return plan or "the tools that it calls have no cases"


def _with_cases(name: str, own: Sequence[Mapping[str, Any]]) -> list[PlannedCall] | str:
    safe = [case for case in own if "path" in case.get("request", {})]
    if not own:
        return "it has no case"
    if not safe:
        # Such a call may reach the real API through a server URL that the test does not redirect.
        return "its case has no path, so the call may not reach the stub upstream"
    return [
        PlannedCall(
            name, case.get("arguments", {}), "case", str(case.get("title") or f"case {number}"), case["request"], case
        )
        for number, case in enumerate(safe, 1)
    ]


def _of_examples(name: str, examples: Sequence[Mapping[str, Any]]) -> list[PlannedCall]:
    return [
        PlannedCall(name, example.get("arguments", {}), "case", str(example.get("title") or f"case {number}"))
        for number, example in enumerate((one for one in examples if one.get("tool") == name), 1)
    ]


def _without_cases(
    name: str, tool: Json, tools: Sequence[tuple[str, Json]], planned: int, *, allow_calls: bool = False
) -> list[PlannedCall] | str:
    if not may_call_tool(name, tools, allow_calls=allow_calls):
        return "it is marked destructiveHint" if allow_calls else "it is not marked readOnlyHint"
    if planned >= MAX_CALLS:
        return f"only {MAX_CALLS} tools are called"
    return [PlannedCall(name, *sample_arguments(tool.get("inputSchema"), tool.get("description")))]


def may_call_tool(name: str, tools: Sequence[tuple[str, Json]], *, allow_calls: bool) -> bool:
    """Return True if the tool may be called with guessed arguments.

    If several tools share a name, any of them may answer, so each must be read-only or in `allow_calls`.
    """
    return all(
        hint(tool, "readOnlyHint") is True or (allow_calls and hint(tool, "destructiveHint") is not True)
        for other, tool in tools
        if other == name
    )


def plan_varied_calls(reading: Mapping[str, Json], plan: Sequence[PlannedCall]) -> list[PlannedCall]:
    """Return calls with changed arguments, for read-only tools whose arguments were guessed."""
    guessed = [planned for planned in plan if planned.origin != "case"]
    return [
        replace(planned, arguments=arguments, title="other arguments")
        for planned, schema, made in list(_first_calls(reading, guessed))[:MAX_VARIED]
        for arguments in vary_texts_and_numbers(schema, made)
    ]


def plan_extra_valid_calls(
    reading: Mapping[str, Json], plan: Sequence[PlannedCall], arguments: FurtherArguments
) -> list[PlannedCall]:
    """Return calls of read-only tools with further valid arguments: the first of each tool, then the second of each."""
    of_tools = [
        [replace(planned, arguments=changed, title=title, origin="guess") for title, changed in arguments(schema, made)]
        for planned, schema, made in _first_calls(reading, plan)
    ]
    return [one for turn in zip_longest(*of_tools) for one in turn if one is not None][:MAX_FURTHER]


def _first_calls(
    reading: Mapping[str, Json], plan: Sequence[PlannedCall]
) -> Iterator[tuple[PlannedCall, Any, Mapping[str, Any]]]:
    firsts = {planned.tool: planned for planned in reversed(plan)}
    for name, tool in reading.items():
        if name in firsts and not is_search_call_tool(tool):
            yield firsts[name], tool.get("inputSchema"), firsts[name].arguments


def plan_second_guesses(
    failed: Sequence[PlannedCall], tools: Mapping[str, Json], calls: Sequence[RecordedCall]
) -> list[PlannedCall]:
    """Return calls with different guesses for the calls whose guessed arguments failed, best guesses first."""
    results = [call.exchange for call in calls if not call.failed]
    return [
        replace(planned, arguments=arguments)
        for planned in failed
        if planned.origin == "guess"
        for arguments in second_guesses(tools[planned.tool].get("inputSchema"), planned.arguments, results)
    ]


def propose_cases(evidence: Evidence) -> list[dict[str, Any]]:
    """Return a case per tool: the tool's first successful call, or a guess whose `title` requests better arguments."""
    worked = {call.tool: call for call in reversed(evidence.calls) if not call.failed}
    refused = {call.tool: answer_text(call.exchange) for call in reversed(evidence.calls) if call.failed}
    cases = []
    for name, tool in evidence.named_tools:
        if name in worked:
            arguments = sent_arguments(worked[name])
            with_sample = worked[name].title == WITH_SAMPLE
            title = "replace the sample (the call succeeded)" if with_sample else "succeeded during validation"
        else:
            arguments, _ = sample_arguments(tool.get("inputSchema"), tool.get("description"))
            reason = f"the server answered: {refused[name][:_MAX_REASON]}" if name in refused else ""
            title = f"replace the arguments ({reason or evidence.uncalled.get(name, 'no call was made')})"
        cases.append({"tool": name, "arguments": arguments, "title": title})
    return cases


def plan_invalid_calls(reading: Mapping[str, Json], plan: Sequence[PlannedCall]) -> list[PlannedCall]:
    """Return calls of read-only tools that violate the inputSchema: the first of each tool, then the second of each."""
    of_tools = [
        [
            replace(
                planned,
                arguments=one.arguments,
                title=one.title,
                request=None,
                case=None,
                violates=one.keyword,
                optional=one.optional,
            )
            for one in invalid_arguments(schema, made)
        ]
        for planned, schema, made in list(_first_calls(reading, plan))[:MAX_WRONG]
    ]
    return [one for turn in zip_longest(*of_tools) for one in turn if one is not None][:MAX_INVALID]


def plan_changed_responses(planned: PlannedCall) -> list[PlannedCall]:
    """Return two copies of the call with different API responses, to check that the result of the tool also differs."""
    response = (planned.case or {}).get("response")
    if planned.case is None or not isinstance(response, Mapping):
        return []
    others = [{**response, "body": vary_json_values(response.get("body"), turn=turn)} for turn in range(2)]
    return [replace(planned, case={**planned.case, "response": other}) for other in others]


def _request_faults(planned: PlannedCall, requests: Sequence[RecordedRequest], stub_said: Sequence[str]) -> list[str]:
    if planned.request is None:
        return []
    wanted = f"{str(planned.request.get('method', '')).upper()} {planned.request['path']}"
    if not requests:
        return [f"no request reached the stub upstream, {wanted} was expected"]
    sent = [f"{request.method} {path}" for request in requests for path in (request.path, unquote(request.path))]
    if wanted not in sent:
        return [f"sent {sent[-1]} instead of {wanted}", *stub_said]
    return list(stub_said)


async def record_call(planned: PlannedCall, stub: StubUpstream | None, call: Awaitable[WireExchange]) -> RecordedCall:
    """Make a planned call, and record the requests that reach the stub API."""
    if stub is None:
        return RecordedCall(
            planned.tool,
            await call,
            planned.origin,
            planned.title,
            violates=planned.violates,
            optional=planned.optional,
        )
    stub.expect(planned.case)
    requests, mismatches = len(stub.requests), len(stub.mismatches)
    exchange = await call
    sent = stub.requests[requests:]
    return RecordedCall(
        tool=planned.tool,
        exchange=exchange,
        origin=planned.origin,
        title=planned.title,
        requests=tuple({"method": one.method, "path": one.path, "query": one.query} for one in sent),
        mismatches=tuple(_request_faults(planned, sent, stub.mismatches[mismatches:])),
        question=planned.question,
        response=(planned.case or {}).get("response"),
        violates=planned.violates,
        optional=planned.optional,
    )


def read_stub_cases(path: Path) -> list[dict[str, Any]]:
    """Return the cases in a file.

    Raises:
        ValidationTargetError: the file is invalid.
    """
    try:
        cases = load_cases(path)
        StubUpstream(cases)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValidationTargetError(
            f"{path} is not a valid file of cases: {error}",
            hint="generate the file again: mcpfactory pipeline run NAME --until generate --force",
        ) from error
    return cases


def read_example_calls(path: Path) -> list[dict[str, Any]]:
    """Return the calls in a file: either a list of objects with `tool` and `arguments`, or that list under `cases`.

    Raises:
        ValidationTargetError: the file is invalid.
    """
    try:
        examples = load_cases(path)
        good = all(isinstance(one["tool"], str) and isinstance(one.get("arguments", {}), dict) for one in examples)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _no_examples(path, str(error)) from error
    if not good or not isinstance(examples, list):
        raise _no_examples(path, "a case needs `tool`, a string, and `arguments`, an object")
    return examples


def _no_examples(path: Path, why: str) -> ValidationTargetError:
    return ValidationTargetError(
        f"{path} is not a valid file of cases: {why}", hint='write [{"tool": "add", "arguments": {"a": 1, "b": 2}}]'
    )


def required_variables(start: Path | None) -> dict[str, bool]:
    """Return a generated server's environment variables (name → True if secret), without its API address.

    The variables are in the report in folder `start` or its parent; {} if neither folder has a report.

    Raises:
        ValidationTargetError: the report cannot be read.
    """
    file, report = _report(start)
    try:
        wanted = {entry["name"]: bool(entry.get("secret", True)) for entry in report.get("environment", [])}
    except (TypeError, KeyError, AttributeError) as error:
        raise _unreadable(file, error) from error
    # Leave out the API's address: the stub API or the caller sets it.
    addresses = api_variables(start).variables_for_address("")
    return {name: secret for name, secret in wanted.items() if name not in addresses}


@dataclass(frozen=True, slots=True)
class ApiVariables:
    """Environment variables for the addresses of a server's API, and the documented addresses.

    `prefix` is the start that the variable names share. `base_url` is the documented address of the root server.
    `servers` maps the names of the additional servers to their documented addresses.
    """

    prefix: str = SHARED
    base_url: str = ""
    servers: Mapping[str, str] = field(default_factory=dict)

    @property
    def additional_server_variables(self) -> tuple[str, ...]:
        """Return the environment variables of the additional servers."""
        return tuple(server_override_variables(self.prefix, self.servers, ""))

    def variables_for_address(self, url: str, root: str = "") -> dict[str, str]:
        """Return the environment variables that send all requests for the API to one address.

        The address of an additional server is `url`, followed by the server's name. `root` is the address of the root
        server; the default is `url`.
        """
        return {
            **dict.fromkeys(self._of("BASE_URL"), root or url),
            **server_override_variables(self.prefix, self.servers, url),
        }

    def with_api(self, environ: Mapping[str, str], url: str, root: str = "") -> dict[str, str]:
        """Return an environment with `variables_for_address`, which override existing variables."""
        return {**environ, **self.variables_for_address(url, root)}

    def beside(self, root: str, environ: Mapping[str, str]) -> dict[str, str]:
        """Return name → address of the additional servers, if `root` is the address of the root server."""
        settings = Settings({**environ, self._of("BASE_URL")[1]: root}, self.prefix)
        servers = [ServerAddress(name, url) for name, url in self.servers.items()]
        addresses = Addresses(settings, self.base_url, servers)
        return {name: addresses.of(name) for name in self.servers}

    def with_settings(self, environ: Mapping[str, str], **settings: str) -> dict[str, str]:
        """Return an environment in which the given settings (`TIMEOUT` …) of a server override existing variables."""
        return {**environ, **{variable: text for name, text in settings.items() for variable in self._of(name)}}

    def _of(self, setting: str) -> tuple[str, str]:
        return f"{SHARED}_{setting}", f"{self.prefix}_{setting}"


def api_variables(start: Path | None) -> ApiVariables:
    """Return the variables in a server's report; without a report, the variables that all servers have.

    Raises:
        ValidationTargetError: the report cannot be read.
    """
    file, report = _report(start)
    try:
        address = report.get("address", {})
        servers = {str(one["name"]): str(one["url"]) for one in address.get("servers", ())}
        return ApiVariables(str(address.get("prefix", SHARED)), str(address.get("base_url", "")), servers)
    except (AttributeError, TypeError, KeyError) as error:
        raise _unreadable(file, error) from error


def _report(start: Path | None) -> tuple[Path | None, Mapping[str, Any]]:
    for folder in (start, *start.parents) if start is not None else ():
        file = folder / ".mcpfactory" / "report.json"
        if file.is_file():
            try:
                found = json.loads(file.read_text("utf-8"))
            except (OSError, ValueError) as error:
                raise _unreadable(file, error) from error
            if not isinstance(found, dict):
                raise _unreadable(file, "it is not an object")
            return file, found
    return None, {}


def _unreadable(file: Path | None, error: Exception | str) -> ValidationTargetError:
    hint = "generate the file again: mcpfactory pipeline run NAME --until generate --force"
    return ValidationTargetError(f"{file} is not a valid report: {error}", hint=hint)
