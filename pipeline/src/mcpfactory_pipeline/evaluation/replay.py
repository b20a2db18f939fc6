"""The calls of a case, made on a running server: a case is worth something only where its right ways are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_pipeline.checks.jsonschemas import instance_error
from mcpfactory_pipeline.evaluation.case import EvaluationCase, ExpectedCall
from mcpfactory_pipeline.evaluation.retrieval import SearchTools
from mcpfactory_runtime.client import Client, ProtocolError

__all__ = ["ReplayedWay", "answer_text", "replay_ways"]

_SHOWN: Final = 200  # characters of an answer


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
) -> list[ReplayedWay]:
    """Make the calls of every right way in their order; what follows a fault is not called.

    Args:
        client: of the running server.
        tools: that the server has in mode full: their schemas check the arguments.
        case: with the calls.
        search: how to reach tools that the server does not list, in search mode.
        called: False where there is no API to ask: then the arguments are checked against the schemas, and nothing is called.

    Raises:
        ConnectionLostError, TimeoutError: when the server ends, or does not answer.
    """
    known = {tool["name"]: tool for tool in tools}
    found = []
    for way in case.right:
        faults: list[str] = []
        for call in way:
            faults = _misfits(known, call)
            if called and not faults:
                faults = await _answer_faults(client, call, search)
            if faults:
                break
        found.append(ReplayedWay(tuple(call.tool for call in way), tuple(faults)))
    return found


def _misfits(known: Mapping[str, Mapping[str, Any]], call: ExpectedCall) -> list[str]:
    if call.tool not in known:
        return [f"the server has no tool {call.tool}"]
    if missing := set(call.free) - set(call.arguments):
        return [f"{call.tool}: {', '.join(sorted(missing))} is free and not among the arguments"]
    if error := instance_error(dict(call.arguments), known[call.tool]["inputSchema"]):
        return [f"{call.tool} does not take the arguments: {error}"]
    return []


async def _answer_faults(client: Client, call: ExpectedCall, search: SearchTools) -> list[str]:
    name, arguments = call.tool, dict(call.arguments)
    if search.call and name not in search.direct:
        name, arguments = search.call, {"name": name, "arguments": arguments}
    try:
        result = await client.call_tool(name, arguments)
    except ProtocolError as error:
        return [f"{call.tool} was answered with a protocol error: {error}"]
    text = answer_text(result)
    if result.get("isError"):
        return [f"{call.tool} failed: {text[:_SHOWN]!r}"]
    return [
        f"the answer of {call.tool} does not say {said!r}: {text[:_SHOWN]!r}" for said in call.says if said not in text
    ]


def answer_text(result: Mapping[str, Any]) -> str:
    """Return the text of an answer as a model reads it."""
    blocks = result.get("content") or []
    return "\n".join(str(block["text"]) for block in blocks if isinstance(block, dict) and "text" in block)
