"""The cases of a server, asked of a model: every question in every setting, so often as was wished, each with a server of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final, Protocol

from mcpfactory_codegen.text import count_tokens
from mcpfactory_pipeline.base.errors import ConfigError, RefusedError
from mcpfactory_pipeline.base.ids import utc_now
from mcpfactory_pipeline.evaluation.asking import Answerer, ShownTools, converse, system_text
from mcpfactory_pipeline.evaluation.attempt import Attempt, Setting
from mcpfactory_pipeline.evaluation.judgement import judge
from mcpfactory_pipeline.evaluation.model import (
    EndpointError,
    ModelChat,
    ModelEndpoint,
    ModelUnreachableError,
)
from mcpfactory_pipeline.evaluation.model_report import ModelPrices, ModelReport, hash_cases, hash_tools
from mcpfactory_pipeline.evaluation.offer import ServerOffer
from mcpfactory_pipeline.evaluation.retrieval import SearchTools
from mcpfactory_pipeline.evaluation.rewording import reword
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer
from mcpfactory_runtime.server.generated.dialects import DIALECTS, shorten_names

__all__ = ["DIALECT", "AskOptions", "ask_cases"]

DIALECT: Final = "plain"
"""What both forms of endpoint take: no combinators in the root of a schema, no references, names of 64 characters."""

_UNANSWERED: Final = 5  # attempts in a row without an answer: then the endpoint is given up


@dataclass(frozen=True, slots=True)
class AskOptions:
    """How cases are asked.

    Attributes:
        settings: in which tools are offered.
        repeat: how often each case is asked in each of them.
        jobs: questions at once; each has two processes.
        timeout: seconds for one answer of the server.
        prices: of a million tokens.
        max_cost: what may be spent, in the currency of the prices.
    """

    settings: Sequence[Setting] = (Setting(),)
    repeat: int = 1
    jobs: int = 2
    timeout: float = 60.0
    prices: ModelPrices | None = None
    max_cost: float | None = None


class _ModelConnection(Protocol):
    def chat(self, system: str, question: str, tools: Sequence[Mapping[str, Any]]) -> ModelChat: ...

    async def close(self) -> None: ...


async def ask_cases(
    server: WorkspaceServer,
    cases: Sequence[EvaluationCase],
    endpoint: ModelEndpoint,
    options: AskOptions,
    *,
    on_attempt: Callable[[Attempt], None] = lambda _: None,
) -> ModelReport:
    """Return what the model did.

    Args:
        server: of the workspace; it is started from its sources.
        cases: in the order of the report.
        endpoint: where the model is.
        options: how it is asked.
        on_attempt: is told each attempt as it ends.

    Raises:
        ConfigError: the client library is not installed, a setting is none of the server's, or a modelled API does not start.
        RefusedError: calls would lead nowhere.
        ModelUnreachableError: the endpoint refuses, or did not answer several times in a row.
        ServerError, StageError: when the server does not start, or ends.
    """
    if not ServerOffer(server, "full", options.timeout).callable:
        raise RefusedError(
            f"{server.name} has no model of its API: what it is asked to do would lead nowhere",
            hint=f"write servers/{server.name}/tests/upstream.py: docs/how-to/evaluate.md",
        )
    full = {str(tool["name"]): tool for tool in await ServerOffer(server, "full", options.timeout).tools("full")}
    offers = {setting: await _shown(server, setting, options.timeout, full) for setting in options.settings}
    asking = _Asking(server, options, full, offers, on_attempt)
    async with _connected(endpoint) as connection:
        attempts = await asking.all(connection, cases)
    return ModelReport(
        server=server.name,
        model=endpoint.name,
        endpoint=endpoint.place,
        asked=utc_now().date(),
        tools=hash_tools(full.values()),
        cases=hash_cases(cases),
        repeat=options.repeat,
        questions={case.name: case.question for case in cases},
        lists={one: (len(shown.tools), sum(map(count_tokens, shown.tools))) for one, shown in offers.items()},
        attempts=attempts,
        prices=options.prices,
    )


async def _shown(
    server: WorkspaceServer,
    setting: Setting,
    timeout: float,  # noqa: ASYNC109 - of a request
    names: Iterable[str],
) -> ShownTools:
    """Return the list of a setting, in the dialect of the endpoints, with its words swapped where the setting says so."""
    offer = ServerOffer(server, setting.profile, timeout)
    listed = await offer.tools(setting.mode, DIALECT)
    search = SearchTools(listed)
    if setting.mode == "search" and search.call is None:
        raise ConfigError(f"{server.name} has no search mode", hint="leave --mode search out")
    shown, stands_for = reword(listed, setting.words)
    limits = DIALECTS[DIALECT]
    own = {short: name for name, short in shorten_names(names, limits.name).items()} if limits else {}
    return ShownTools(shown, search, stands_for, own)


@asynccontextmanager
async def _connected(endpoint: ModelEndpoint) -> AsyncIterator[_ModelConnection]:
    try:
        if endpoint.kind == "openai":
            from mcpfactory_pipeline.evaluation.ask_openai import OpenAIEndpoint  # noqa: PLC0415 - an extra, and heavy

            connection: _ModelConnection = OpenAIEndpoint(endpoint)
        else:
            from mcpfactory_pipeline.evaluation.ask_anthropic import AnthropicEndpoint  # noqa: PLC0415 - as above

            connection = AnthropicEndpoint(endpoint)
    except ImportError as error:
        raise ConfigError(
            f"the client of {endpoint.kind} is not installed: {error.name}", hint="pip install 'mcpfactory[models]'"
        ) from error
    try:
        yield connection
    finally:
        await connection.close()


@dataclass(slots=True)
class _Asking:
    """One run over all cases: what is asked, what was spent, and whether the endpoint answers."""

    server: WorkspaceServer
    options: AskOptions
    full: Mapping[str, Mapping[str, Any]]
    offers: Mapping[Setting, ShownTools]
    on_attempt: Callable[[Attempt], None]
    spent: float = 0.0
    silent: int = 0
    found: dict[int, Attempt] = field(default_factory=dict)

    async def all(self, connection: _ModelConnection, cases: Sequence[EvaluationCase]) -> list[Attempt]:
        """Ask everything; what would cost more than is allowed is not asked."""
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
        self, connection: _ModelConnection, waiting: Iterator[tuple[int, tuple[int, Setting, EvaluationCase]]]
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
                    f"{self.silent} questions in a row had no answer; the last: {done.faults[0]}",
                    hint="ask again later, with fewer --jobs",
                )

    async def _attempt(
        self, connection: _ModelConnection, setting: Setting, case: EvaluationCase, number: int
    ) -> Attempt:
        shown = self.offers[setting]
        offer = ServerOffer(self.server, setting.profile, self.options.timeout)
        answers = {call.tool: call.person for way in case.right for call in way if call.person is not None}
        beside = Answerer(answers=answers)
        async with offer.opened(setting.mode, DIALECT, beside.person if answers else None) as (client, api):
            filled = case.filled(api.values)
            chat = connection.chat(system_text(client.instructions), filled.question, shown.tools)
            try:
                done = await converse(chat, client, shown, beside=beside)
            except EndpointError as error:
                return Attempt(case.name, setting, number, "unanswered", (str(error),))
        found = judge(filled, done, self.full)
        worth = (found.verdict, found.faults, found.choices, found.wrong, done.calls, done.text, done.turns)
        return Attempt(case.name, setting, number, *worth, done.usage, done.seconds, done.waited)
