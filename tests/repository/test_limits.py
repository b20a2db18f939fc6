"""A limit in a test ends a hang and judges no speed: waits are bounded by `tests.timeouts.TIMEOUT`, and by no number of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from benchmarks.codebase.source import Source

ENOUGH: Final = 60  # seconds: what a test may write itself where it has a reason
WAITS: Final = {
    "acquire": 1, "communicate": 1, "exception": 0, "fail_after": 0, "join": 0, "move_on_after": 0, "result": 0,
    "settimeout": 0, "timeout": 0, "wait": 0, "wait_for": 1,
}  # fmt: skip
"""Functions that wait, with the place of their limit."""
BOUNDED: Final = {"Client", "HTTPConnection", "check_output", "post", "run", "urlopen", "Stage", *WAITS}
CLOCKS: Final = {"monotonic", "perf_counter", "process_time"}
WORDS: Final = {"timeout=", *CLOCKS, *(f"{name}(" for name in WAITS)}
APART: Final = ("tests/browser/", "tests/timeouts.py", "tests/repository/test_limits.py")


def number(node: ast.expr | None) -> float | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def named(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def judgements(source: Source) -> Iterator[tuple[int, str]]:
    """Lines that judge how long something took, or give up too soon."""
    for node in source.nodes_if_any(WORDS):
        if isinstance(node, ast.Call):
            name = named(node)
            limits = [word.value for word in node.keywords if name in BOUNDED and word.arg == "timeout"]
            limits += node.args[WAITS[name] : WAITS[name] + 1] if name in WAITS else []
            if any(1 <= value < ENOUGH for limit in limits if (value := number(limit)) is not None):
                yield node.lineno, "gives up too soon; use tests.timeouts.TIMEOUT"
        elif isinstance(node, ast.Assert):
            calls = {named(part) for part in ast.walk(node.test) if isinstance(part, ast.Call)}
            if CLOCKS & calls:
                yield node.lineno, "judges the clock; use tests.timeouts: until, advance, or a peer that never ends"


def test_limits_end_hangs_and_judge_no_speed(tests: list[Source]) -> None:
    found = [
        f"{module.path}:{line} {what}"
        for module in tests
        if not module.path.startswith(APART)
        for line, what in judgements(module)
    ]
    assert not found, "\n".join(found)
