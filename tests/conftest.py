"""Fixtures and hooks of all tests. Property-based tests try the same examples in every run, so failures are repeatable.

`MCPFACTORY_FUZZ=N` searches for new examples instead, N times as many.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.fuzzing import FACTOR, SEARCHING, examples, tried
from tests.skip_conditions import unexpected_skips
from tests.tiers import FIRST, assign_tier, is_left_out

# Thousands of processes are started. Without a bytecode cache, each would compile all its imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Test files need not survive a power failure, and on a busy disk each call would take milliseconds.
os.fsync = lambda _: None

BUSY = [HealthCheck.too_slow]  # depends on the machine more than on the test
settings.register_profile("suite", derandomize=True, deadline=None, suppress_health_check=BUSY)
settings.register_profile("search", deadline=None, max_examples=examples(100), suppress_health_check=BUSY)
settings.register_profile("fast", settings.get_profile("suite"), max_examples=50)
settings.load_profile("search" if SEARCHING else "suite")


ROOT = Path(__file__).resolve().parents[1]
QUIET = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the tier; `make test` runs the fast tier."""
    parser.addoption("--tier", choices=["fast", "all"], default="all", help="tests to run, see tests/tiers.py [all]")


def pytest_configure(config: pytest.Config) -> None:
    """Use fewer examples of property-based tests in the fast tier."""
    if config.getoption("tier") == "fast" and not SEARCHING:
        settings.load_profile("fast")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the import of second-tier files in the fast tier."""
    if config.getoption("tier") == "fast" and collection_path.is_relative_to(ROOT):
        return is_left_out(collection_path.relative_to(ROOT).as_posix()) or None
    return None


def pytest_report_header(config: pytest.Config) -> str:
    """Report the tier, and the number of examples of property-based tests."""
    how = f"{FACTOR} times the examples, new ones (MCPFACTORY_FUZZ)" if SEARCHING else "the same examples in every run"
    return (
        f"tier: {config.getoption('tier')}; properties: {how}, {settings().max_examples} unless a test says otherwise"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Pause the garbage collector, and exclude imported objects, because it would walk millions of them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the tier. Tests with the same module fixture run in one worker, which makes it once."""
    slow = [item for item in items if assign_tier(item)]
    if slow and config.getoption("tier") == "fast":
        left_out = set(slow)
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=slow)
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))
    for item in items:
        fixtures = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
        shared = any(one.scope == "module" for found in fixtures.values() for one in found)
        if shared and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.name))
    if SEARCHING:
        for item in items:
            item.add_marker(pytest.mark.timeout(float(item.config.getini("timeout")) * FACTOR))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Record the number of examples of a property in the report, which workers send to the main process."""
    report = yield
    if call.when == "call" and (told := getattr(item, "hypothesis_statistics", "")):
        report.user_properties.append(("examples", tried(told)))
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run with skipped tests, unless the machine lacks something that README does not require."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    if (found := unexpected_skips(reports)) and session.exitstatus in QUIET:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if found:
        told = "".join(f"\n  {line}" for line in found)
        reporter.write_line(f"\nerror: skipped without a reason that tests/skip_conditions.py knows:{told}", red=True)
        reporter.write_line(
            "hint: parametrise, so that what does not apply is not collected; tests/skip_conditions.py says more"
        )


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the number of property examples, and of interaction tests, which run over every transport."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, ())]
    sizes = {report.nodeid: count for report in reports for name, count in report.user_properties if name == "examples"}
    if sizes:
        kind = "new" if SEARCHING else "the same in every run"
        terminalreporter.write_line(f"properties tried: {len(sizes)}, with {sum(sizes.values())} examples ({kind})")
    if SEARCHING:
        for name, count in sorted(sizes.items()):
            terminalreporter.write_line(f"  {count:7} {name}")
    passed = [report.nodeid for report in terminalreporter.stats.get("passed", ()) if report.when == "call"]
    counts = {
        transport: sum("/interaction/" in name and transport in re.split(r"[\[\]-]", name) for name in passed)
        for transport in ("memory", "stdio", "http", "sse")
    }
    if any(counts.values()):
        told = ", ".join(f"{count} over {transport}" for transport, count in counts.items())
        terminalreporter.write_line(f"interaction tests passed: {told}")
