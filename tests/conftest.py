"""What all tests share: property-based tests try the same examples in every run, so that a red suite is red for everybody.

`MCPFACTORY_FUZZ=N` searches for new examples instead, N times as many.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.fuzzing import FACTOR, SEARCHING, examples

BUSY = [HealthCheck.too_slow]  # says more about the machine than about the test
settings.register_profile("suite", derandomize=True, deadline=None, suppress_health_check=BUSY)
settings.register_profile("search", deadline=None, max_examples=examples(100), suppress_health_check=BUSY)
settings.load_profile("search" if SEARCHING else "suite")


def pytest_report_header() -> str:
    """Say how far properties are searched."""
    how = f"{FACTOR} times the examples, new ones (MCPFACTORY_FUZZ)" if SEARCHING else "the same examples in every run"
    return f"properties: {how}, {settings().max_examples} unless a test says otherwise"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A search may take its time."""
    if SEARCHING:
        for item in items:
            item.add_marker(pytest.mark.timeout(120 * FACTOR))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Count the interaction tests: each is run over every transport in every revision."""
    passed = [report.nodeid for report in terminalreporter.stats.get("passed", ()) if report.when == "call"]
    counts = {
        transport: sum("/interaction/" in name and f"[{transport}-" in name for name in passed)
        for transport in ("memory", "stdio", "http", "sse")
    }
    if any(counts.values()):
        told = ", ".join(f"{count} over {transport}" for transport, count in counts.items())
        terminalreporter.write_line(f"interaction tests passed in five revisions: {told}")
