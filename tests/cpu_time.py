"""Profiler of the suite: `pytest -p tests.cpu_time …` prints the processor time of files and tests, longest first.

Processor time (of the test's process and of the processes it waited for), not the clock's: a busy machine does not change it much.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from typing import Any, Final

import pytest

ROWS: Final = 60


def _spent() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Record the processor time before the test and its fixtures."""
    item.stash[BEGAN] = _spent()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Report the processor time since the previous phase, also from a worker."""
    report = yield
    now = _spent()
    report.user_properties.append(("processor", now - item.stash[BEGAN]))
    item.stash[BEGAN] = now
    return report


BEGAN: Final = pytest.StashKey[float]()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the sums: by folder, by file, by test."""
    tests = Counter[str]()
    for reports in terminalreporter.stats.values():
        for report in reports:
            spent = [value for name, value in getattr(report, "user_properties", ()) if name == "processor"]
            if spent:
                tests[report.nodeid] += spent[-1]
    files, folders = Counter[str](), Counter[str]()
    for name, seconds in tests.items():
        file = name.partition("::")[0]
        files[file] += seconds
        folders["/".join(file.split("/")[:2])] += seconds
    for title, counter in (("folder", folders), ("file", files), ("test", tests)):
        terminalreporter.write_line(f"processor seconds by {title}, of {sum(counter.values()):.0f}:")
        for name, seconds in counter.most_common(ROWS):
            terminalreporter.write_line(f"{seconds:8.2f} {name}")
