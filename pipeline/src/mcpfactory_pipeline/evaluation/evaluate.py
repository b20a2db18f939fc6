"""A server's cases, asked without a model: are their right ways right, and would a question lead to the right tool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from mcpfactory_codegen.text import count_tokens
from mcpfactory_pipeline.checks.person import Person
from mcpfactory_pipeline.checks.right_calls import result_text
from mcpfactory_pipeline.evaluation.competition import competing_tools, expensive_tools
from mcpfactory_pipeline.evaluation.evaluation import CaseOutcome, Evaluation, Mode, ToolList
from mcpfactory_pipeline.evaluation.offer import ServerOffer, Tools
from mcpfactory_pipeline.evaluation.replay import replay_ways
from mcpfactory_pipeline.evaluation.retrieval import SearchTools, case_rank, names_found, rank_tools
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

__all__ = ["evaluate_server"]

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
    offer = ServerOffer(server, profile, timeout)
    tools = {mode: await offer.tools(mode) for mode in ("full", "search")}
    modes: list[Mode] = ["full", "search"] if SearchTools(tools["search"]).call else ["full"]
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(case: EvaluationCase, mode: Mode) -> CaseOutcome:
        async with limit:
            outcome = await _outcome(offer, case, mode, tools["full"], SearchTools(tools[mode]))
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


async def _outcome(
    offer: ServerOffer, case: EvaluationCase, mode: Mode, tools: Tools, search: SearchTools
) -> CaseOutcome:
    person = Person() if case.asks_person else None
    async with offer.opened(mode, person=person) as (client, api):
        filled = case.filled(api.values)
        ways = await replay_ways(client, tools, filled, search, called=offer.callable, person=person)
        names = [[call.tool for call in way] for way in filled.right]
        if mode == "search" and search.search is not None:
            answer = await client.call_tool(search.search, {"query": filled.question, "limit": _ASKED})
            rank = case_rank(names, names_found(result_text(answer)), search.direct)
        else:
            rank = case_rank(names, rank_tools(tools, filled.question))
    return CaseOutcome(case.name, case.question, mode, tuple(ways), rank, offer.callable)
