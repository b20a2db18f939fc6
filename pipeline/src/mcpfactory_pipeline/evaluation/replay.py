"""The calls of a case, made on a running server: a case is worth something only where its right ways are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcpfactory_pipeline.checks.person import Person
from mcpfactory_pipeline.checks.right_calls import make_call, misfits
from mcpfactory_pipeline.evaluation.retrieval import SearchTools
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase
from mcpfactory_runtime.client import Client

__all__ = ["ReplayedWay", "replay_ways"]


@dataclass(frozen=True, slots=True)
class ReplayedWay:
    """What came of one right way: `faults` is empty when every call did what the case says."""

    tools: tuple[str, ...]
    faults: tuple[str, ...] = ()


async def replay_ways(
    client: Client,
    tools: Sequence[Mapping[str, Any]],
    case: EvaluationCase,
    search: SearchTools,
    *,
    called: bool = True,
    person: Person | None = None,
) -> list[ReplayedWay]:
    """Make the calls of every right way in their order; what follows a fault is not called.

    Args:
        client: of the running server.
        tools: that the server has in mode full: their schemas check the arguments.
        case: with the calls.
        search: how to reach tools that the server does not list, in search mode.
        called: False where there is no API to ask: then the arguments are checked against the schemas, and nothing is called.
        person: answers what tools ask; the client's `elicitation`.

    Raises:
        ConnectionLostError, TimeoutError: when the server ends, or does not answer.
    """
    known = {tool["name"]: tool for tool in tools}
    someone = person or Person()
    found = []
    for way in case.right:
        faults: Sequence[str] = ()
        for call in way:
            faults = misfits(known, call)
            if called and not faults:
                through = search.call if search.call and call.tool not in search.direct else ""
                faults = (await make_call(client, call, someone, through=through or "")).faults
            if faults:
                break
        found.append(ReplayedWay(tuple(call.tool for call in way), tuple(faults)))
    return found
