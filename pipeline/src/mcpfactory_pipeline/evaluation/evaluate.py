"""A server's cases, asked without a model: are their right ways right, and would a question lead to the right tool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_codegen.text import count_tokens
from mcpfactory_pipeline.checks.calls import required_variables
from mcpfactory_pipeline.checks.person import Person
from mcpfactory_pipeline.checks.right_calls import result_text
from mcpfactory_pipeline.evaluation.competition import competing_tools, expensive_tools
from mcpfactory_pipeline.evaluation.evaluation import CaseOutcome, Evaluation, Mode, ToolList
from mcpfactory_pipeline.evaluation.replay import replay_ways
from mcpfactory_pipeline.evaluation.retrieval import SearchTools, case_rank, names_found, rank_tools
from mcpfactory_pipeline.launch.connection import connect_server
from mcpfactory_pipeline.launch.modelled import ModelledApi, has_model, modelled_api
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer
from mcpfactory_runtime.client import Client

__all__ = ["evaluate_server"]

Tools = Sequence[Mapping[str, Any]]

_ASKED: Final = 50  # tools that one search may name
_AT_ONCE: Final = 2  # cases: each has two processes


async def evaluate_server(
    server: WorkspaceServer,
    cases: Sequence[EvaluationCase],
    *,
    profile: str = "full",
    timeout: float = 60.0,  # noqa: ASYNC109 - of each request; the client's own
    on_case: Callable[[CaseOutcome], None] = lambda _: None,
) -> Evaluation:
    """Return what the cases find, in mode full and, where the server has it, in mode search.

    Each case has a process of the server and an API of its own, so that none sees what another did.

    Args:
        server: of the workspace; it is started from its sources.
        cases: in the order of the outcomes.
        profile: which of the server's tools are offered.
        timeout: seconds for one request.
        on_case: is told each outcome as it comes.

    Raises:
        ConfigError: for a modelled API that does not start.
        ServerError, StageError: when the server does not start, or ends.
    """
    offer = _Offer(server, profile, timeout)
    tools = {mode: await offer.tools(mode) for mode in ("full", "search")}
    modes: list[Mode] = ["full", "search"] if SearchTools(tools["search"]).call else ["full"]
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(case: EvaluationCase, mode: Mode) -> CaseOutcome:
        async with limit:
            outcome = await offer.case(case, mode, tools["full"], SearchTools(tools[mode]))
        on_case(outcome)
        return outcome

    found = await asyncio.gather(*(one(case, mode) for mode in modes for case in cases))
    return Evaluation(
        server.name,
        profile,
        {mode: ToolList(len(tools[mode]), sum(map(count_tokens, tools[mode]))) for mode in modes},
        found,
        competing_tools(tools["full"]),
        expensive_tools(tools["full"]),
    )


@dataclass(frozen=True, slots=True)
class _Offer:
    """A server as its clients are offered it."""

    server: WorkspaceServer
    profile: str
    timeout: float

    async def tools(self, mode: Mode) -> Tools:
        async with modelled_api(self.server.folder) as api, self._client(mode, api) as client:
            return await client.list_tools()

    async def case(self, case: EvaluationCase, mode: Mode, tools: Tools, search: SearchTools) -> CaseOutcome:
        person = Person() if case.asks_person else None
        async with modelled_api(self.server.folder) as api, self._client(mode, api, person) as client:
            filled = case.filled(api.values)
            called = has_model(self.server.folder) or not self.server.documents
            ways = await replay_ways(client, tools, filled, search, called=called, person=person)
            names = [[call.tool for call in way] for way in filled.right]
            if mode == "search" and search.search is not None:
                answer = await client.call_tool(search.search, {"query": filled.question, "limit": _ASKED})
                rank = case_rank(names, names_found(result_text(answer)), search.direct)
            else:
                rank = case_rank(names, rank_tools(tools, filled.question))
        return CaseOutcome(case.name, case.question, mode, tuple(ways), rank, called)

    @asynccontextmanager
    async def _client(self, mode: Mode, api: ModelledApi, person: Person | None = None) -> AsyncIterator[Client]:
        """Start the server; its own credentials are not real ones, whatever the person's environment has."""
        environ = {
            **dict.fromkeys(required_variables(self.server.folder), "dummy"),
            **api.environment,
            "MCPFACTORY_MODE": mode,
            "MCPFACTORY_PROFILE": self.profile,
            "MCPFACTORY_DIALECT": "standard",
        }
        async with connect_server(self.server, environ, timeout=self.timeout, elicitation=person) as client:
            yield client
