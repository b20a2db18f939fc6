"""Canary values that a careless tool inserts into an SQL query.

Two values add a true condition to the query, and two values add a false condition. A correct tool answers all four
values alike, apart from repeated arguments.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from mcpfactory_pipeline.checks.canaries import MAX_ARGUMENTS, MAX_TOOLS, CanaryProbe, CanaryResult, takes_text
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_runtime.types import Json

_CLOSED: Final = ("'", "')", '"')  # ends of a quoted value, also in parentheses
# The conditions are permutations of each other, so that tools that count characters or words answer them alike.
_TRUE: Final = ("1<2", "3<4")
_ORDERS: Final = (("1<2", "2<1", "4<3", "3<4"), ("4<3", "1<2", "3<4", "2<1"))

_Ask = Callable[[CanaryProbe], Awaitable[WireExchange]]


async def send_sql_canaries(
    tools: Sequence[tuple[str, Json]],
    made: Mapping[str, Mapping[str, Any]],
    ask: _Ask,
    may_continue: Callable[[], bool],
) -> list[CanaryResult]:
    """Send the canaries, and return the result of each argument.

    Args:
        tools: (name, tool) pairs of the tools that may be called.
        made: tool → arguments of a call that it answered, for each of `tools`.
        ask: sends a probe.
        may_continue: returns False if time is over, or the server has ended.
    """
    places = [(name, argument) for name, tool in tools for argument in takes_text(name, tool)[:MAX_ARGUMENTS]]
    results: list[CanaryResult] = []
    for name, argument in places[: MAX_TOOLS * MAX_ARGUMENTS]:
        for closed in _CLOSED:
            if not may_continue():
                return results
            probe, exchange, taken = await _examine(name, argument, made[name], closed, ask)
            if taken or closed == _CLOSED[-1]:
                results.append(CanaryResult(probe, exchange, taken))
                break
    return results


async def _examine(
    name: str, argument: str, made: Mapping[str, Any], closed: str, ask: _Ask
) -> tuple[CanaryProbe, WireExchange, bool]:
    """Return the first probe, its answer, and True if the answers depend only on the truth of the conditions."""
    texts: dict[bool, set[str]] = {True: set(), False: set()}
    first: tuple[CanaryProbe, WireExchange] | None = None
    for order in (*_ORDERS, *_ORDERS):  # answers that vary by chance rarely match the conditions sixteen times
        for condition in order:
            value = f"{made.get(argument, 'x')}{closed} OR {condition} -- "
            params = {"name": name, "arguments": {**made, argument: value}}
            probe = CanaryProbe("query", name, argument, "tools/call", params)
            exchange = await ask(probe)
            first = first or (probe, exchange)
            texts[condition in _TRUE].add(_text(probe, exchange))
            if any(len(one) > 1 for one in texts.values()) or texts[True] == texts[False]:
                return (*first, False)
    assert first is not None
    return (*first, True)


def _text(probe: CanaryProbe, exchange: WireExchange) -> str:
    """Return the answer without the sent value, which the tool may repeat."""
    value = str(probe.params["arguments"][probe.argument])
    text = json.dumps((exchange.result, exchange.error), ensure_ascii=False)
    return text.replace(json.dumps(value, ensure_ascii=False)[1:-1], "")
