"""Make the expected calls of a server's evaluation cases, and check the results.

Each case gets a separate server process and a separate simulated API. A correct answer proves nothing if the tool gives
the same answer without the API's data. Therefore each call is repeated against an API without data, and the two answers
are compared. A simulated API that accepts every request also proves nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.checks.api_failures import FailingApi
from mcpfactory_pipeline.checks.elicitation import SimulatedPerson, call_tool, tool_call_request
from mcpfactory_pipeline.checks.evidence import EvaluatedCall, Evidence, RecordedCall, hint
from mcpfactory_pipeline.checks.exchange import ValidationTarget, WireExchange, result_text
from mcpfactory_pipeline.checks.jsonschemas import instance_error
from mcpfactory_pipeline.launch.server_connection import SimulatedApi
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase, ExpectedCall
from mcpfactory_runtime.client import Client, ConnectionLostError, ProtocolError, connect_stdio
from mcpfactory_runtime.protocol.errors import McpError

_SHOWN: Final = 200  # maximum characters of an answer in a message


@dataclass(frozen=True, slots=True)
class ExpectedCallOutcome:
    """Result of a call: the faults, and the exchange."""

    faults: tuple[str, ...]
    exchange: WireExchange = field(default_factory=lambda: WireExchange({}, problem="no answer"))


def call_mismatches(known: Mapping[str, Mapping[str, Any]], call: ExpectedCall) -> list[str]:
    """Return why the call is impossible: the tool is unknown, or the arguments violate its schema."""
    if call.tool not in known:
        return [f"the server has no tool {call.tool}"]
    if missing := set(call.free) - set(call.arguments):
        return [f"{call.tool}: {', '.join(sorted(missing))} in `free` is not among the arguments"]
    if error := instance_error(dict(call.arguments), known[call.tool].get("inputSchema", {})):
        return [f"{call.tool} does not take the arguments: {error}"]
    return []


async def make_expected_call(
    client: Client, call: ExpectedCall, person: SimulatedPerson, *, through: str = ""
) -> ExpectedCallOutcome:
    """Make the call, and compare the result with the case.

    Args:
        client: a client of the running server; `person` is the client's `elicitation`.
        call: the call and its expected result.
        person: answers the tool's questions.
        through: the call tool of search mode, if the server does not list the tool.

    Raises:
        ConnectionLostError, TimeoutError: the server's process ended, or did not answer.
    """
    name, arguments = call.tool, dict(call.arguments)
    if through:
        name, arguments = through, {"name": name, "arguments": arguments}
    person.answer = "declines" if call.person is None else call.person
    before, faulty = len(person.asked), len(person.faults)
    try:
        exchange = await call_tool(client, name, arguments)
    except ProtocolError as error:
        unanswered = WireExchange(tool_call_request(name, arguments), problem="no answer")
        return ExpectedCallOutcome((f"{call.tool} was answered with a protocol error: {error}",), unanswered)
    if exchange.result is None:
        said = (exchange.error or {}).get("message")
        return ExpectedCallOutcome((f"{call.tool} was answered with a protocol error: {said}",), exchange)
    asked = person.asked[before:]
    faults = [*_said_faults(call, exchange.result), *_person_faults(call, asked), *person.faults[faulty:]]
    return ExpectedCallOutcome(tuple(faults), exchange)


def _said_faults(call: ExpectedCall, result: Mapping[str, Any]) -> Sequence[str]:
    text = result_text(result)
    if result.get("isError"):
        return [f"{call.tool} failed: {text[:_SHOWN]!r}"]
    return [
        f"the answer of {call.tool} does not say {said!r}: {text[:_SHOWN]!r}" for said in call.says if said not in text
    ]


def _person_faults(call: ExpectedCall, asked: Sequence[str]) -> Sequence[str]:
    if call.person is not None and not asked:
        return [f"{call.tool} acted without asking a person"]
    if call.person is None and asked:
        return [f"{call.tool} asked a person {asked[0][:_SHOWN]!r}, but the case defines no answer"]
    return []


_AT_ONCE: Final = 2  # maximum number of parallel cases; each case needs two processes
_ANSWER: Final = 30.0  # seconds; timeout of one answer
_REFUSED: Final = 300  # minimum HTTP status of responses without data
_PROBE: Final = 10.0  # seconds; timeout of a request that the simulated API must reject
_LOOPBACK: Final = re.compile(r"(https?://)?(127\.0\.0\.1|localhost|\[::1\]):(\d+)([^\s\"',]*)")
_NOTHING: Final = {
    "status": 404,
    "content_type": "application/json",
    "body": {"error": "not found", "message": "there is no such thing"},
}
_LOST: Final = (ConnectionLostError, ProtocolError, McpError, TimeoutError)
_SAYS_NOTHING: Final = "its evaluation case does not say what the answer contains"
_ECHOED: Final = "the answer that its evaluation case expects is already in the arguments or in the list of tools"
_CONSTANT: Final = "the answer that its evaluation case expects is the same without its API"
_LENIENT: Final = "its simulated API answers every request, so an evaluation case proves nothing"


@dataclass(frozen=True, slots=True)
class EvaluationSetup:
    """Evaluation cases of a server, and the functions to run them.

    Attributes:
        cases: the cases in `evals/`.
        model: starts a new simulated API for each call. If `model` is None, only read-only tools are called.
        environ: returns the environment variables for one server process, for example a separate HOME.
    """

    cases: Sequence[EvaluationCase]
    model: Callable[[], AbstractAsyncContextManager[SimulatedApi]] | None
    environ: Callable[[], Mapping[str, str]]


async def observe_evaluation_cases(
    target: ValidationTarget,
    environ: Mapping[str, str],
    evaluations: EvaluationSetup,
    evidence: Evidence,
    *,
    seconds: float,
) -> None:
    """Make the calls, and add the results, or the reasons for omitted calls, to the evidence.

    Args:
        target: a server started by command.
        environ: the server's environment variables, without the API's address.
        evaluations: the cases.
        evidence: the earlier observations of the server, to extend.
        seconds: time limit for all calls.
    """
    asked = _EvaluationRun(target, environ, evaluations, evidence)
    try:
        async with asyncio.timeout(seconds):
            await asked.run()
    except TimeoutError:
        asked.problem = "the time limit of the validation was reached"
    evidence.evaluated = [call for case in evaluations.cases for call in asked.found.get(case.name, ())]
    if asked.problem:
        evidence.missing["evaluations"] = asked.problem


class _EvaluationRun:
    def __init__(
        self, target: ValidationTarget, environ: Mapping[str, str], evaluations: EvaluationSetup, evidence: Evidence
    ) -> None:
        self.found: dict[str, list[EvaluatedCall]] = {}
        self.problem = ""
        self._target = target
        self._environ = environ
        self._evaluations = evaluations
        self._tools = dict(evidence.named_tools)
        works = any(not call.failed for call in evidence.calls)
        self._unshown = set(evidence.uncalled) if works else set(self._tools)
        self._lenient: bool | None = None

    async def run(self) -> None:
        """Run the cases; cases with a new call come first."""
        limit = asyncio.Semaphore(_AT_ONCE)

        async def one(case: EvaluationCase) -> None:
            async with limit:
                if self.problem:
                    return
                try:
                    self.found[case.name] = await self._case(case)
                except ConfigError as error:
                    self.problem = f"the model of the API does not start: {error}"

        asked = [case for case in self._evaluations.cases if case.right and self._may_be_called(case)]
        asked.sort(key=lambda case: not any(call.tool in self._unshown for way in case.right for call in way))
        async with asyncio.TaskGroup() as group:
            for case in asked:
                group.create_task(one(case))

    def _may_be_called(self, case: EvaluationCase) -> bool:
        reads = (hint(self._tools.get(call.tool, {}), "readOnlyHint") is True for way in case.right for call in way)
        return self._evaluations.model is not None or all(reads)

    async def _case(self, case: EvaluationCase) -> list[EvaluatedCall]:
        found: list[EvaluatedCall] = []
        async with self._api() as api:
            filled, speaking = case.filled(api.values), False
            person = SimulatedPerson()
            try:
                async with self._client(api, person if case.asks_person else None) as client:
                    speaking = True
                    known = {tool["name"]: tool for tool in await client.list_tools()}
                    for number in range(len(filled.right)):
                        found += await self._way(case, number, client=client, known=known, person=person, api=api)
            except _LOST as error:
                lost = ExpectedCallOutcome((f"the server gave no answer: {error or type(error).__name__}",))
                one = _recorded(case, filled.right[0][0], lost, "", _ports(api))
                # The server started before, so the machine may only be busy.
                found.append(replace(one, slow=not speaking or isinstance(error, TimeoutError)))
        return found

    async def _way(
        self,
        case: EvaluationCase,
        number: int,
        *,
        client: Client,
        known: Mapping[str, Mapping[str, Any]],
        person: SimulatedPerson,
        api: SimulatedApi,
    ) -> list[EvaluatedCall]:
        """Make the calls of one accepted sequence in order; stop at the first fault."""
        found: list[EvaluatedCall] = []
        for place, call in enumerate(case.filled(api.values).right[number]):
            outcome = ExpectedCallOutcome(tuple(call_mismatches(known, call)))
            if not outcome.faults:
                outcome = await make_expected_call(client, call, person)
            if call.person is not None and not outcome.faults:
                outcome = replace(outcome, faults=await self._declined(case, number, place))
            why = "" if outcome.faults else await self._why_nothing(case, call, (number, place), api)
            found.append(_recorded(case, call, outcome, why, _ports(api)))
            if outcome.faults:
                break
        return found

    @asynccontextmanager
    async def _api(self) -> AsyncIterator[SimulatedApi]:
        if self._evaluations.model is None:
            yield SimulatedApi()
            return
        async with self._evaluations.model() as api:
            if self._lenient is None:
                self._lenient = await asyncio.to_thread(_answers_anything, api)
            yield api

    @asynccontextmanager
    async def _client(self, api: SimulatedApi, person: SimulatedPerson | None) -> AsyncIterator[Client]:
        full = {"MCPFACTORY_MODE": "full"}
        environ = {**self._environ, **self._evaluations.environ(), **full, **api.environment}
        command, cwd = self._target.command or (), self._target.cwd
        async with connect_stdio(
            command, env=environ, cwd=cwd, inherit=False, timeout=_ANSWER, elicitation=person
        ) as client:
            yield client

    async def _declined(self, case: EvaluationCase, number: int, place: int) -> tuple[str, ...]:
        """Make the calls up to the declined call, and check that the answer does not claim the person's consent."""
        person = SimulatedPerson()
        async with self._api() as api, self._client(api, person) as client:
            *before, last = case.filled(api.values).right[number][: place + 1]
            for call in before:
                await make_expected_call(client, call, person)
            outcome = await make_expected_call(client, last.model_copy(update={"person": None}), person)
        result = outcome.exchange.result or {}
        text = result_text(result)
        if result.get("isError") or not all(said in text for said in last.says):
            return ()
        return (f"{last.tool} answered as if the person had agreed, although the person declined",)

    async def _why_nothing(
        self, case: EvaluationCase, call: ExpectedCall, at: tuple[int, int], api: SimulatedApi
    ) -> str:
        """Return why a correct answer does not prove that the tool works; "" if it proves that."""
        if call.tool not in self._unshown:
            return ""
        if not call.says:
            return _SAYS_NOTHING
        if self._evaluations.model is None:
            return _ECHOED if _is_echo(call, self._tools.values()) else ""
        if self._lenient:
            return _LENIENT
        if await self._same_without_api(case, call, at, api):
            return _CONSTANT
        self._unshown.discard(call.tool)
        return ""

    async def _same_without_api(
        self, case: EvaluationCase, call: ExpectedCall, at: tuple[int, int], api: SimulatedApi
    ) -> bool:
        """Return True if the call passes the case although the API answers that nothing was found."""
        async with FailingApi(_NOTHING) as nothing:
            elsewhere = _moved(api, nothing.port)
            there = case.filled(elsewhere.values).right[at[0]][at[1]]
            person = SimulatedPerson()
            try:
                async with self._client(elsewhere, person if call.person is not None else None) as client:
                    outcome = await make_expected_call(client, there, person)
            except _LOST:
                return False
        return not outcome.faults


def _recorded(
    case: EvaluationCase, call: ExpectedCall, outcome: ExpectedCallOutcome, why: str, ports: Sequence[str]
) -> EvaluatedCall:
    """Return a call in the format that reports use. Ports are left out, because they differ in each run."""

    def plain(text: str) -> str:
        for port in ports:
            text = text.replace(f":{port}", "")
        return text

    sent, received = json.loads(plain(json.dumps([outcome.exchange.sent, outcome.exchange.received])))
    exchange = WireExchange(sent, received, outcome.exchange.problem)
    return EvaluatedCall(
        case.name,
        RecordedCall(call.tool, exchange, "case", f"evaluation case {case.name}"),
        tuple(map(plain, outcome.faults)),
        why,
    )


def _is_echo(call: ExpectedCall, tools: Any) -> bool:
    """Return True if all values that the answer must contain are known without a call."""
    known = json.dumps([dict(call.arguments), *tools], ensure_ascii=False)
    return all(said in known or not re.search(r"\w{2}", said) for said in call.says)


def _ports(api: SimulatedApi) -> list[str]:
    texts = (*api.environment.values(), *api.values.values())
    return list(dict.fromkeys(found[3] for text in texts for found in _LOOPBACK.finditer(text)))


def _moved(api: SimulatedApi, port: int) -> SimulatedApi:
    ports = _ports(api)

    def moved(texts: Mapping[str, str]) -> dict[str, str]:
        pattern = re.compile(rf":({'|'.join(ports)})(?!\d)")
        return {name: pattern.sub(f":{port}", text) if ports else text for name, text in texts.items()}

    return SimulatedApi(moved(api.environment), moved(api.values))


def _answers_anything(api: SimulatedApi) -> bool:
    """Return True if the simulated API also answers a request to a random path; a real API would not."""
    found = (match for text in api.environment.values() for match in _LOOPBACK.finditer(text))
    places = dict.fromkeys((match[2].strip("[]"), int(match[3]), match[4].rstrip("/")) for match in found)
    return any(_has(host, port, f"{base}/mcpfactory-{secrets.token_hex(8)}") for host, port, base in places)


def _has(host: str, port: int, path: str) -> bool:
    connection = HTTPConnection(host, port, timeout=_PROBE)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < _REFUSED
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
