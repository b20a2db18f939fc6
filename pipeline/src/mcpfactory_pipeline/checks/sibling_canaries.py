"""Paths beside the folder of a tool, to find a check of the folder that compares only the beginning of a path.

No file is read, because none of the paths exists. A tool that refuses paths outside its folder in other words than paths
of missing files shows which paths pass its check. `../notes-x/y` must not pass for the folder `notes`. The name of the
folder is unknown, so the words of the server's texts are tried.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from mcpfactory_pipeline.checks.canaries import CanaryProbe, CanaryResult, takes_stated_path
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_runtime.types import Json

_WORD: Final = "mcpfactory"
_FILE: Final = f"{_WORD}-missing.txt"
_OUTSIDE: Final = f"../{_WORD}-outside/{_FILE}"
_NAMES: Final = re.compile(r"[A-Za-z0-9][\w.-]{1,40}")
_SENT: Final = re.compile(rf"[^\s\"'`,;]*{_WORD}[^\s\"'`,;]*")  # a part of a path that was sent
_MAX_TOOLS: Final = 3
_MAX_NAMES: Final = 60


async def send_sibling_canaries(
    tools: Sequence[tuple[str, Json]],
    made: Mapping[str, Mapping[str, Any]],
    texts: Sequence[str],
    ask: Callable[[CanaryProbe], Awaitable[WireExchange]],
    may_continue: Callable[[], bool],
) -> list[CanaryResult]:
    """Send the canaries, and return the result of each tool; see `sql_canaries.send_sql_canaries`.

    Args:
        tools: (name, tool) pairs of read-only tools.
        made: tool → arguments of a call that it answered.
        texts: texts of the server that may contain the name of a folder.
        ask: sends a probe.
        may_continue: returns False if time is over, or the server has ended.
    """
    places = [(name, tool, key) for name, tool in tools for key in takes_stated_path(name, tool)[:1]]
    results: list[CanaryResult] = []
    for name, tool, argument in places[:_MAX_TOOLS]:

        async def say(path: str, name: str = name, argument: str = argument) -> tuple[CanaryResult, str]:
            params = {"name": name, "arguments": {**made[name], argument: path}}
            probe = CanaryProbe("sibling", name, argument, "tools/call", params)
            exchange = await ask(probe)
            text = json.dumps((exchange.result, exchange.error), ensure_ascii=False)
            return CanaryResult(probe, exchange, taken=False), _SENT.sub("", text)

        (first, missing), (_, refused) = await say(_FILE), await say(_OUTSIDE)
        results.append(first)
        for folder in _names([json.dumps(tool, ensure_ascii=False), *texts]) if missing != refused else ():
            if not may_continue():
                return results
            found, said = await say(f"../{folder}-{_WORD}/{_FILE}")
            # Repeat with other names: only the beginning of the path may decide.
            checks = ((f"../{folder}{_WORD}/{_FILE}", missing), (f"../{_WORD}-{folder}/{_FILE}", refused))
            if said == missing and [(await say(path))[1] == expected for path, expected in checks] == [True, True]:
                results[-1] = CanaryResult(found.probe, found.exchange, taken=True)
                break
    return results


def _names(texts: Sequence[str]) -> Iterator[str]:
    """Yield the words of the texts that may name a folder, without repetitions."""
    words = dict.fromkeys(word.rstrip(".-") for text in texts for word in _NAMES.findall(text))
    forms = dict.fromkeys(form for word in words for form in (word, word.lower()))
    yield from list(forms)[:_MAX_NAMES]
