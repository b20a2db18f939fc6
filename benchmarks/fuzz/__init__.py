"""Targets for a search guided by coverage: each is one function that takes any bytes and raises when a promise is broken.

`python -m benchmarks.exam fuzz` searches with atheris; `tests/runtime/test_fuzz_targets.py` keeps the targets honest
without it. A target module has `one(data)`, `SEEDS` to begin with, and `WORDS` that a search would not guess.
"""

from __future__ import annotations

__all__ = ["TARGETS"]

TARGETS = (
    "framing",
    "messages",
    "http",
    "schema",
    "tokens",
    "answers",
    "documents",
    "histories",
    "configs",
)
