"""Pytest plugin that records the outcome of each test of a server, and the tools that the test ran.

Outcomes come from the exceptions of tests, so a hook of the server cannot turn a failed test into a passed test. Test
code shares the process with the plugin; `docs/explanation/checks.md` describes the consequences. The test environment
has no mcpfactory-pipeline, so the plugin uses only the standard library and pytest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

# Variable with the path of a JSON file with `nonce`, `record` and `tools`. The file is deleted before other code runs.
SETTINGS: Final = "MCPFACTORY_EVIDENCE"
_FAILED: Final = "failed"
_SKIPPED: Final = "skipped"
_PASSED: Final = "passed"
_WORST: Final = (_FAILED, _SKIPPED, _PASSED)
# Options that disable pytest-xdist, because this plugin cannot observe other processes.
_ONE_PROCESS: Final = {"numprocesses": 0, "dist": "no", "tx": []}


class PytestEvidence:
    """Observations of a session: the collected tests, their outcomes, and the tools that each test ran."""

    def __init__(self, nonce: str, record: Path, tools: Path) -> None:
        self._nonce, self._record, self._tools = nonce, record, tools
        self._collected: dict[str, None] = {}
        self._errors: list[str] = []
        self._reason = ""
        self._tests: dict[str, dict[str, Any]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Record a test at collection, before anything can deselect it."""
        self._collected[item.nodeid] = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file that pytest cannot collect."""
        if report.failed:
            self._errors.append(report.nodeid)
            self._reason = self._reason or str(report.longrepr).splitlines()[-1].removeprefix("E").strip()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record the tools that run during a test."""
        start = self._size()
        result = yield
        if item.nodeid in self._tests:
            self._tests[item.nodeid]["tools"] = self._ran_since(start)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Record the worst outcome of a test's phases, from its exceptions and from the reports of other hooks."""
        report = yield
        seen = _PASSED
        if call.excinfo is not None and report.outcome != _SKIPPED:
            seen = _FAILED
            self._reason = self._reason or call.excinfo.exconly().splitlines()[0]
        # This is the first phase of a test, or a repetition of the test.
        if call.when == "setup" or item.nodeid not in self._tests:
            self._tests[item.nodeid] = {"outcome": _PASSED, "tools": []}
        noted = self._tests[item.nodeid]
        noted["outcome"] = min(noted["outcome"], seen, report.outcome, key=_WORST.index)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, None, None]:
        """Write the record, unless the process ends abnormally."""
        yield
        left_out = [name for name in self._collected if name not in self._tests]
        found = {
            "nonce": self._nonce,
            "tests": self._tests,
            "errors": self._errors,
            "deselected": left_out,
            "reason": self._reason,
        }
        self._record.write_text(json.dumps(found), encoding="utf-8")

    def _size(self) -> int:
        try:
            return self._tools.stat().st_size
        except OSError:
            return 0

    def _ran_since(self, start: int) -> list[str]:
        try:
            with self._tools.open("rb") as stream:
                stream.seek(start)
                lines = stream.read().splitlines()
            return sorted({str(json.loads(line)) for line in lines})
        except (OSError, ValueError):
            return []


def _evidence() -> PytestEvidence | None:
    file = os.environ.pop(SETTINGS, "")
    if not file:
        return None
    os.environ.pop("PYTHONPATH", None)  # PYTHONPATH contains only the folder of this plugin
    settings = json.loads(Path(file).read_text(encoding="utf-8"))
    Path(file).unlink()
    return PytestEvidence(settings["nonce"], Path(settings["record"]), Path(settings["tools"]))


_PLUGIN: Final = _evidence()  # read the file during import, before any conftest runs


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Register the plugin before pytest reads any conftest."""
    if _PLUGIN is not None:
        early_config.pluginmanager.register(_PLUGIN, "mcpfactory-evidence")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Turn off pytest-xdist."""
    for name, value in _ONE_PROCESS.items():
        if hasattr(config.option, name):
            setattr(config.option, name, value)
