"""Canary values that a careless tool passes to a program as an option.

The program's own complaint about the unknown option is the proof. The tool itself may refuse such values, so two more
values tell the tool from the program. Only the tool treats the same word without dashes, or `--` alone, like the option:
a program takes the word as an operand, and `--` as the end of its options.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from mcpfactory_pipeline.checks.canaries import MAX_ARGUMENTS, MAX_TOOLS, CanaryProbe, CanaryResult, takes_operand
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_runtime.types import Json

_WORD: Final = "mcpfactory-no-such-option"
_OPTION: Final = f"--{_WORD}"
_WRONG: Final = r"(unknown|unrecogni[sz]ed|invalid|illegal|bad|no such|unexpected|undefined)"
# Complaints of getopt, argparse, click, git, curl, find, and of the usual libraries for Go, Rust and JavaScript.
_COMPLAINT: Final = re.compile(
    rf"\b{_WRONG} ((command|long|short)[- ](line )?)?(option|switch|flag|predicate)\b"
    r"|\bunrecogni[sz]ed arguments?: -|\bunexpected argument '-|\bflag provided but not defined\b"
    r"|\b(option|switch|flag)\b.{0,50}\b(is unknown|not recogni[sz]ed|unrecogni[sz]ed|not defined|is invalid)\b",
    re.IGNORECASE,
)


async def send_option_canaries(
    tools: Sequence[tuple[str, Json]],
    made: Mapping[str, Mapping[str, Any]],
    ask: Callable[[CanaryProbe], Awaitable[WireExchange]],
    may_continue: Callable[[], bool],
) -> list[CanaryResult]:
    """Send the canaries, and return the result of each argument; see `sql_canaries.send_sql_canaries`."""
    places = [(name, key) for name, tool in tools for key in takes_operand(name, tool)[:MAX_ARGUMENTS]]
    results: list[CanaryResult] = []
    for name, argument in places[: MAX_TOOLS * MAX_ARGUMENTS]:
        if not may_continue():
            return results

        def probe(value: str, name: str = name, argument: str = argument) -> CanaryProbe:
            params = {"name": name, "arguments": {**made[name], argument: value}}
            return CanaryProbe("option", name, argument, "tools/call", params)

        first = probe(_OPTION)
        exchange = await ask(first)
        taken = _WORD in json.dumps(exchange.received, ensure_ascii=False) and _complains(exchange)
        for value in (_WORD, "--"):
            taken = taken and may_continue() and not _complains(await ask(probe(value)))
        results.append(CanaryResult(first, exchange, taken))
    return results


def _complains(exchange: WireExchange) -> bool:
    text = json.dumps((exchange.result, exchange.error), ensure_ascii=False)
    return exchange.received is None or _COMPLAINT.search(text) is not None
