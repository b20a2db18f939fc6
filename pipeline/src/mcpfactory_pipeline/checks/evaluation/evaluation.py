"""Evaluate a server's cases without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from mcpfactory_codegen.text import estimate_tokens
from mcpfactory_pipeline.base.errors import JsonRecord
from mcpfactory_pipeline.checks.elicitation import SimulatedPerson
from mcpfactory_pipeline.checks.evaluation.confusable_tools import (
    CompetingTools,
    ToolTokenShare,
    find_competing_tools,
    find_token_heavy_tools,
)
from mcpfactory_pipeline.checks.evaluation.offered_tools import (
    WITHIN,
    OfferedServer,
    SearchModeTools,
    Tools,
    case_rank,
    parse_found_tools,
    random_hit_probability,
    rank_tools,
)
from mcpfactory_pipeline.checks.evaluation_calls import call_mismatches, make_expected_call
from mcpfactory_pipeline.checks.exchange import result_text
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer
from mcpfactory_runtime.client import Client


@dataclass(frozen=True, slots=True)
class SequenceOutcome:
    """Result of one accepted sequence of calls. `faults` is empty if all calls matched the case."""

    tools: tuple[str, ...]
    faults: tuple[str, ...] = ()


async def replay_call_sequences(
    client: Client,
    tools: Sequence[Mapping[str, Any]],
    case: EvaluationCase,
    search: SearchModeTools,
    *,
    called: bool = True,
    person: SimulatedPerson | None = None,
) -> list[SequenceOutcome]:
    """Make the calls of each accepted sequence in order; stop a sequence at its first fault.

    Args:
        client: a client of the running server.
        tools: the server's tools in mode full; their schemas check the arguments.
        case: the case with the calls.
        search: calls the tools that search mode does not list.
        called: False without an API: no call is made, and only the arguments are checked against the schemas.
        person: the client's `elicitation`, to answer the tools' questions.

    Raises:
        ConnectionLostError, TimeoutError: the server's process ended, or did not answer.
    """
    known = {tool["name"]: tool for tool in tools}
    someone = person or SimulatedPerson()
    found = []
    for way in case.right:
        faults: Sequence[str] = ()
        for call in way:
            faults = call_mismatches(known, call)
            if called and not faults:
                through = search.call if search.call and call.tool not in search.direct else ""
                faults = (await make_expected_call(client, call, someone, through=through or "")).faults
            if faults:
                break
        found.append(SequenceOutcome(tuple(call.tool for call in way), tuple(faults)))
    return found


Mode = Literal["full", "search"]


@dataclass(frozen=True, slots=True)
class CaseOutcome(JsonRecord):
    """Result of one case in one mode.

    Attributes:
        case: name of the case.
        question: the question of the case.
        mode: the mode in which the tools are offered.
        ways: results of the accepted call sequences; empty if no tool fits the question.
        rank: number of top search results that include all tools of one sequence; None if no sequence is found.
        called: True if the calls were made; False if only their arguments were checked.
    """

    case: str
    question: str
    mode: Mode
    ways: tuple[SequenceOutcome, ...]
    rank: int | None
    called: bool = True

    @property
    def answered(self) -> bool:
        """Return True if each accepted sequence of calls matched the case."""
        return not any(way.faults for way in self.ways)


@dataclass(frozen=True, slots=True)
class OfferedToolList:
    """Tool list that clients get in one mode."""

    tools: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All results of one server in one profile."""

    server: str
    profile: str
    lists: Mapping[Mode, OfferedToolList]
    outcomes: Sequence[CaseOutcome]
    competing: Sequence[CompetingTools] = field(default=())
    expensive: Sequence[ToolTokenShare] = field(default=())

    @property
    def faults(self) -> list[str]:
        """Describe the faults of each accepted sequence of calls."""
        return [
            f"{one.case} ({one.mode}): {fault}" for one in self.outcomes for way in one.ways for fault in way.faults
        ]

    def judged(self, mode: Mode) -> list[CaseOutcome]:
        """Return a mode's outcomes of the cases that have a right tool."""
        return [one for one in self.outcomes if one.mode == mode and one.ways]

    def found(self, mode: Mode, within: int) -> int:
        """Return the number of cases whose right tool is among the first `within` search results."""
        return sum(one.rank is not None and one.rank <= within for one in self.judged(mode))

    def share(self, mode: Mode, within: int) -> float:
        """Return the share of cases whose right tool is among the first `within` results; 1 without such cases."""
        judged = self.judged(mode)
        return self.found(mode, within) / len(judged) if judged else 1.0

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        modes = {
            mode: {
                "tools": one.tools,
                "tokens": one.tokens,
                "judged": len(self.judged(mode)),
                "found": {str(within): self.found(mode, within) for within in WITHIN},
                "chance": {
                    str(within): round(random_hit_probability(self.lists["full"].tools, within), 3) for within in WITHIN
                },
            }
            for mode, one in self.lists.items()
        }
        return {
            "server": self.server,
            "profile": self.profile,
            "modes": modes,
            "cases": [one.to_json() for one in self.outcomes],
            "competing": [one.to_json() for one in self.competing],
            "expensive": [one.to_json() for one in self.expensive],
            "faults": self.faults,
        }


_ASKED: Final = 50  # maximum number of results per search
_AT_ONCE: Final = 2  # maximum number of parallel cases; each case needs two processes


async def evaluate_server(
    server: WorkspaceServer,
    cases: Sequence[EvaluationCase],
    *,
    profile: str = "full",
    timeout: float = 60.0,  # noqa: ASYNC109 - seconds for one request; passed to the client
    on_case: Callable[[CaseOutcome], None] = lambda _: None,
) -> Evaluation:
    """Return the results of the cases in mode full and in mode search, if the server has the mode.

    Each case runs with a separate server process and a separate API, so that cases cannot affect each other.

    Args:
        server: the workspace's server, started from its sources.
        cases: the cases, in the order of the outcomes.
        profile: the profile that selects the offered tools.
        timeout: seconds for one request.
        on_case: called with each outcome.

    Raises:
        ConfigError: a simulated API does not start.
        ServerError, StageError: the server does not start, or ends.
    """
    offer = OfferedServer(server, profile, timeout)
    tools = {mode: await offer.tools(mode) for mode in ("full", "search")}
    modes: list[Mode] = ["full", "search"] if SearchModeTools(tools["search"]).call else ["full"]
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(case: EvaluationCase, mode: Mode) -> CaseOutcome:
        async with limit:
            outcome = await _outcome(offer, case, mode, tools["full"], SearchModeTools(tools[mode]))
        on_case(outcome)
        return outcome

    found = await asyncio.gather(*(one(case, mode) for mode in modes for case in cases))
    return Evaluation(
        server.name,
        profile,
        {mode: OfferedToolList(len(tools[mode]), sum(map(estimate_tokens, tools[mode]))) for mode in modes},
        found,
        find_competing_tools(tools["full"]),
        find_token_heavy_tools(tools["full"]),
    )


async def _outcome(
    offer: OfferedServer, case: EvaluationCase, mode: Mode, tools: Tools, search: SearchModeTools
) -> CaseOutcome:
    person = SimulatedPerson() if case.asks_person else None
    async with offer.opened(mode, person=person) as (client, api):
        filled = case.filled(api.values)
        ways = await replay_call_sequences(client, tools, filled, search, called=offer.callable, person=person)
        names = [[call.tool for call in way] for way in filled.right]
        if mode == "search" and search.search is not None:
            answer = await client.call_tool(search.search, {"query": filled.question, "limit": _ASKED})
            rank = case_rank(names, parse_found_tools(result_text(answer)), search.direct)
        else:
            rank = case_rank(names, rank_tools(tools, filled.question))
    return CaseOutcome(case.name, case.question, mode, tuple(ways), rank, offer.callable)
