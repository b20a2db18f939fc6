"""Canary values that a careless tool inserts into an SQL query.

Two values add a true condition to the query, and two values add a false condition. A correct tool answers all four
values alike, apart from repeated arguments.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from mcpfactory_pipeline.checks.canaries import MAX_ARGUMENTS, MAX_TOOLS, CanaryProbe, CanaryResult, takes_text
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_runtime.types import Json

_CLOSED: Final = ("'", "')", '"')  # ends of a quoted value, with and without a parenthesis
_TRUE: Final = ("1=1", "3=3")
_FALSE: Final = ("1=2", "3=4")


async def send_sql_canaries(
    tools: Sequence[tuple[str, Json]],
    made: Mapping[str, Mapping[str, Any]],
    ask: Callable[[CanaryProbe], Awaitable[WireExchange]],
) -> list[CanaryResult]:
    """Send the canaries, and return the result for each argument.

    Args:
        tools: (name, tool) pairs of the tools that may be called.
        made: tool → arguments of a call that the tool answered, for all `tools`.
        ask: sends a probe.
    """
    found = [(name, tool, takes_text(name, tool)[:MAX_ARGUMENTS]) for name, tool in tools]
    places = [(name, argument) for name, _, arguments in found if arguments for argument in arguments]
    return [await _examine(name, argument, made[name], ask) for name, argument in places[: MAX_TOOLS * MAX_ARGUMENTS]]


async def _examine(
    name: str, argument: str, made: Mapping[str, Any], ask: Callable[[CanaryProbe], Awaitable[WireExchange]]
) -> CanaryResult:
    for closed in _CLOSED:
        answers: dict[str, tuple[CanaryProbe, WireExchange]] = {}
        for condition in _conditions(answers):
            value = f"{made.get(argument, 'x')}{closed} OR {condition} -- "
            params = {"name": name, "arguments": {**made, argument: value}}
            probe = CanaryProbe("query", name, argument, "tools/call", params)
            answers[condition] = probe, await ask(probe)
        probe, exchange = answers[_TRUE[0]]
        if len(answers) == len(_TRUE) + len(_FALSE) and _depends_on_condition(answers):
            return CanaryResult(probe, exchange, taken=True)
    return CanaryResult(probe, exchange, taken=False)


def _conditions(answers: Mapping[str, tuple[CanaryProbe, WireExchange]]) -> Iterator[str]:
    """Yield a true and a false condition; if the answers differ, yield the second pair."""
    yield _TRUE[0]
    yield _FALSE[0]
    if _text(*answers[_TRUE[0]]) != _text(*answers[_FALSE[0]]):
        yield _TRUE[1]
        yield _FALSE[1]


def _depends_on_condition(answers: Mapping[str, tuple[CanaryProbe, WireExchange]]) -> bool:
    texts = {condition: _text(*answer) for condition, answer in answers.items()}
    return len({texts[one] for one in _TRUE}) == len({texts[one] for one in _FALSE}) == 1


def _text(probe: CanaryProbe, exchange: WireExchange) -> str:
    """Return the answer without the value that was sent, because a tool may repeat its arguments."""
    value = str(probe.params["arguments"][probe.argument])
    text = json.dumps((exchange.result, exchange.error), ensure_ascii=False)
    return text.replace(json.dumps(value, ensure_ascii=False)[1:-1], "")
