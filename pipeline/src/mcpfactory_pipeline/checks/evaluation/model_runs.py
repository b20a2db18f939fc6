"""Ask a model the questions of a server's cases, turn by turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from mcpfactory_codegen.text import estimate_tokens
from mcpfactory_pipeline.base.errors import ConfigError, RefusedError
from mcpfactory_pipeline.base.ids import utc_now
from mcpfactory_pipeline.checks.elicitation import SimulatedPerson
from mcpfactory_pipeline.checks.evaluation.case_quality import distort_tool_list
from mcpfactory_pipeline.checks.evaluation.judgment import (
    Attempt,
    MadeCall,
    ModelRunSetting,
    ModelTranscript,
    judge_transcript,
)
from mcpfactory_pipeline.checks.evaluation.model_endpoint import (
    NO_TOKENS,
    EndpointError,
    ModelCall,
    ModelChat,
    ModelConnection,
    ModelEndpoint,
    ModelUnreachableError,
    ToolAnswer,
)
from mcpfactory_pipeline.checks.evaluation.model_report import ModelPrices, ModelReport, hash_cases, hash_shown_tools
from mcpfactory_pipeline.checks.evaluation.offered_tools import OfferedServer, SearchModeTools
from mcpfactory_pipeline.checks.exchange import result_text
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer
from mcpfactory_runtime.client import Client, ProtocolError
from mcpfactory_runtime.schemas.client_dialects import shorten_names
from mcpfactory_runtime.schemas.client_limits import DEFAULT_DIALECT, dialect_limits

SYSTEM: Final = "You answer the questions of a person. Where a tool helps, call it; where none does, say so."
"""First part of the system prompt for every model; the server's instructions follow."""

_TURNS: Final = 12  # maximum number of turns in a conversation with the model
_LARGEST: Final = 100_000  # characters; the model gets only this part of a longer tool answer


@dataclass(frozen=True, slots=True)
class ShownTools:
    """Tool list that a model gets, and the server's tool behind each name.

    Attributes:
        tools: the tools as sent to the endpoint.
        stands_for: shown name → name in the server's list, only where the names differ.
        own: name in the list → full name of the tool, only if the full name is too long for the list.
        search: calls the tools that are not in the list.
    """

    tools: Sequence[Mapping[str, Any]]
    search: SearchModeTools
    stands_for: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)


def make_system_prompt(instructions: str) -> str:
    """Return the system prompt."""
    return f"{SYSTEM}\n\n{instructions}" if instructions else SYSTEM


@dataclass(frozen=True, slots=True)
class ElicitationAnswerer:
    """Simulated person during a conversation: `elicitation`, and the answers in the case for each tool."""

    person: SimulatedPerson = field(default_factory=SimulatedPerson)
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


async def run_conversation(
    chat: ModelChat,
    client: Client,
    shown: ShownTools,
    *,
    beside: ElicitationAnswerer | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> ModelTranscript:
    """Let the model call the server's tools until the model stops. `beside` answers the tools' questions.

    Raises:
        EndpointError: the endpoint gave no usable answer.
        ModelUnreachableError: the endpoint will not answer any question.
        ConnectionLostError, TimeoutError: the server ended, or did not answer.
    """
    made: list[MadeCall] = []
    usage, began, waited = NO_TOKENS, clock(), 0.0
    for number in range(1, _TURNS + 1):
        asked = clock()
        turn = await chat.turn()
        waited += clock() - asked
        usage += turn.usage
        if not turn.calls or turn.refused:
            return ModelTranscript(
                tuple(made), turn.text, number, usage, clock() - began, waited, refused=turn.refused, cut=turn.cut
            )
        answers = []
        for call in turn.calls:
            done, answer = await _call(client, shown, call, number, beside or ElicitationAnswerer())
            made.append(done)
            answers.append(answer)
        chat.answer(answers)
    return ModelTranscript(tuple(made), "", _TURNS, usage, clock() - began, waited, cut=True)


async def _call(
    client: Client, shown: ShownTools, call: ModelCall, turn: int, beside: ElicitationAnswerer
) -> tuple[MadeCall, ToolAnswer]:
    arguments, listed = call.arguments, shown.stands_for.get(call.tool, call.tool)
    name = shown.own.get(listed, listed)
    if arguments is None:
        text = "The arguments are not a JSON object. Call the tool again with a JSON object."
        return MadeCall(name, None, turn, text, failed=True), ToolAnswer(call, text, failed=True)
    if call.tool not in {tool["name"] for tool in shown.tools}:
        text = f"Unknown tool {call.tool}."
        return MadeCall(name, arguments, turn, text, failed=True), ToolAnswer(call, text, failed=True)
    meant = str(arguments.get("name", "")) if shown.search.call and name == shown.search.call else name
    # The person declines if the case declares no answer for the tool.
    beside.person.answer = beside.answers.get(shown.own.get(meant, meant), "declines")
    try:
        result = await client.call_tool(listed, arguments)
        text, failed = result_text(result)[:_LARGEST], bool(result.get("isError"))
    except ProtocolError as error:
        text, failed = str(error), True
    answer = ToolAnswer(call, text, failed)
    if shown.search.call and name == shown.search.call:
        inner = arguments.get("arguments")
        given = inner if isinstance(inner, dict) else {}
        return MadeCall(shown.own.get(meant, meant), given, turn, text, failed=failed), answer
    machinery = name in shown.search.machinery
    return MadeCall(name, arguments, turn, text, failed=failed, machinery=machinery), answer


_UNANSWERED: Final = 5  # number of consecutive unanswered questions until the run stops


@dataclass(frozen=True, slots=True)
class ModelRunOptions:
    """Options for a run of questions to a model.

    Attributes:
        settings: profiles, modes and descriptions of the offered tools.
        repeat: number of attempts per case and setting.
        jobs: number of parallel questions; each question has two processes.
        timeout: seconds for one answer of the server.
        prices: per million tokens.
        max_cost: spending limit, in the currency of the prices.
    """

    settings: Sequence[ModelRunSetting] = (ModelRunSetting(),)
    repeat: int = 1
    jobs: int = 2
    timeout: float = 60.0
    prices: ModelPrices | None = None
    max_cost: float | None = None


async def ask_model_cases(
    server: WorkspaceServer,
    cases: Sequence[EvaluationCase],
    endpoint: ModelEndpoint,
    options: ModelRunOptions,
    *,
    on_attempt: Callable[[Attempt], None] = lambda _: None,
) -> ModelReport:
    """Ask a model the cases and return a report of its attempts.

    Args:
        server: the workspace's server, started from its sources.
        cases: the cases, in the order of the report.
        endpoint: the endpoint of the model.
        options: see `ModelRunOptions`.
        on_attempt: called with each completed attempt.

    Raises:
        ConfigError: the client library is not installed, the server lacks a setting, or a simulated API does not start.
        RefusedError: the server has no API that can be called.
        ModelUnreachableError: the endpoint refuses all requests, or did not answer several requests in a row.
        ServerError, StageError: the server does not start, or ends too early.
    """
    if not OfferedServer(server, "full", options.timeout).callable:
        raise RefusedError(
            f"{server.name} has no simulated API that could answer tool calls",
            hint=f"write servers/{server.name}/tests/upstream.py; see docs/how-to/evaluate.md",
        )
    full = {str(tool["name"]): tool for tool in await OfferedServer(server, "full", options.timeout).tools("full")}
    offers = {setting: await _shown(server, setting, options.timeout, full) for setting in options.settings}
    asking = _ModelRun(server, options, full, offers, on_attempt)
    async with connected(endpoint) as connection:
        attempts = await asking.all(connection, cases)
    return ModelReport(
        server=server.name,
        model=endpoint.name,
        endpoint=endpoint.place,
        asked=utc_now().date(),
        tools=hash_shown_tools(full.values()),
        cases=hash_cases(cases),
        repeat=options.repeat,
        questions={case.name: case.question for case in cases},
        lists={one: (len(shown.tools), sum(map(estimate_tokens, shown.tools))) for one, shown in offers.items()},
        attempts=attempts,
        prices=options.prices,
    )


async def _shown(
    server: WorkspaceServer,
    setting: ModelRunSetting,
    timeout: float,  # noqa: ASYNC109 - seconds for one request
    names: Iterable[str],
) -> ShownTools:
    """Return a setting's tool list in the endpoint's dialect, with the distortion that the setting requires."""
    offer = OfferedServer(server, setting.profile, timeout)
    listed = await offer.tools(setting.mode, DEFAULT_DIALECT)
    search = SearchModeTools(listed)
    if setting.mode == "search" and search.call is None:
        raise ConfigError(f"{server.name} has no search mode", hint="remove --mode search")
    shown, stands_for = distort_tool_list(listed, setting.words)
    longest = dialect_limits(DEFAULT_DIALECT)["tool_name_length"]
    own = {short: name for name, short in shorten_names(names, longest).items()}
    return ShownTools(shown, search, stands_for, own)


@asynccontextmanager
async def connected(endpoint: ModelEndpoint) -> AsyncIterator[ModelConnection]:
    """Yield a connection to the endpoint through its vendor's client library.

    Raises:
        ConfigError: the library is not installed.
    """
    chats: type[ModelChat]
    try:
        if endpoint.kind == "openai":
            from mcpfactory_pipeline.checks.evaluation.openai_model import OpenAIChat as chats  # noqa: PLC0415, N813 - optional extra
        else:
            from mcpfactory_pipeline.checks.evaluation.anthropic_model import AnthropicChat as chats  # noqa: PLC0415, N813 - optional extra
    except ImportError as error:
        raise ConfigError(
            f"the client library of {endpoint.kind} is not installed: {error.name}",
            hint="pip install 'mcpfactory[models]'",
        ) from error
    connection = ModelConnection(endpoint, chats)
    try:
        yield connection
    finally:
        await connection.close()


@dataclass(slots=True)
class _ModelRun:
    """One run over all cases, with its costs and the state of the endpoint."""

    server: WorkspaceServer
    options: ModelRunOptions
    full: Mapping[str, Mapping[str, Any]]
    offers: Mapping[ModelRunSetting, ShownTools]
    on_attempt: Callable[[Attempt], None]
    spent: float = 0.0
    silent: int = 0
    found: dict[int, Attempt] = field(default_factory=dict)

    async def all(self, connection: ModelConnection, cases: Sequence[EvaluationCase]) -> list[Attempt]:
        waiting = enumerate(product(range(1, self.options.repeat + 1), self.offers, cases))
        tasks = [asyncio.create_task(self._work(connection, waiting)) for _ in range(max(1, self.options.jobs))]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return [self.found[number] for number in sorted(self.found)]

    async def _work(
        self, connection: ModelConnection, waiting: Iterator[tuple[int, tuple[int, ModelRunSetting, EvaluationCase]]]
    ) -> None:
        for place, (number, setting, case) in waiting:
            if self.options.max_cost is not None and self.spent >= self.options.max_cost:
                return
            done = await self._attempt(connection, setting, case, number)
            self.found[place] = done
            if self.options.prices is not None:
                self.spent += self.options.prices.of(done.usage)
            self.on_attempt(done)
            self.silent = 0 if done.answered else self.silent + 1
            if self.silent >= _UNANSWERED:
                raise ModelUnreachableError(
                    f"{self.silent} questions in a row got no answer; last error: {done.faults[0]}",
                    hint="run the command again later",
                )

    async def _attempt(
        self, connection: ModelConnection, setting: ModelRunSetting, case: EvaluationCase, number: int
    ) -> Attempt:
        shown = self.offers[setting]
        offer = OfferedServer(self.server, setting.profile, self.options.timeout)
        answers = {call.tool: call.person for way in case.right for call in way if call.person is not None}
        beside = ElicitationAnswerer(answers=answers)
        async with offer.opened(setting.mode, DEFAULT_DIALECT, beside.person if answers else None) as (client, api):
            filled = case.filled(api.values)
            chat = connection.chat(make_system_prompt(client.instructions), filled.question, shown.tools)
            try:
                done = await run_conversation(chat, client, shown, beside=beside)
            except EndpointError as error:
                return Attempt(case.name, setting, number, "unanswered", (str(error),))
        found = judge_transcript(filled, done, self.full)
        worth = (found.verdict, found.faults, found.choices, found.wrong, done.calls, done.text, done.turns)
        return Attempt(case.name, setting, number, *worth, done.usage, done.seconds, done.waited)
