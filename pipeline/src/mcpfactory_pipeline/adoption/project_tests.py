"""Test runs of adopted servers, and their reports."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from mcpfactory_codegen.servers.config import AdoptedSettings
from mcpfactory_pipeline.adoption.npm import QUIET_NPM, node_sandbox_paths, run_npm
from mcpfactory_pipeline.adoption.projects import check_npm_project_lock, project_files
from mcpfactory_pipeline.adoption.pypi import (
    ONLY_WHEELS,
    create_locked_environment,
    programs,
    refuse_unsafe_requirement,
)
from mcpfactory_pipeline.adoption.sources import LOCKS, AdoptionSources
from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.base.files import copy_files
from mcpfactory_pipeline.build.programs import ToolRejectedInputError, run_and_capture_output, run_uv
from mcpfactory_pipeline.isolation.levels import make_sandbox, path_without_mcpfactory
from mcpfactory_pipeline.plan.stage import Artifact, StageInputs

_LARGEST: Final = 1 << 26  # maximum size of a test report in bytes
_SHOWN: Final = 3
_TAP: Final = re.compile(r"^(?P<not>not )?ok\b(?:[ \t]+(?P<number>\d+))?(?P<rest>[^\n]*)$", re.M)
_PLAN: Final = re.compile(r"^1\.\.(\d{1,9})\b", re.M)
_DIRECTIVE: Final = re.compile(r"#\s*(skip|todo)\b", re.I)


@dataclass(frozen=True, slots=True)
class TestCounts:
    """Numbers of tests. `form` is the format of the report. `names` are the failed tests."""

    __test__ = False  # pytest must not collect this class

    form: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    names: tuple[str, ...] = ()

    @property
    def tests(self) -> int:
        """Return the number of all tests."""
        return self.passed + self.failed + self.skipped

    def words(self) -> str:
        """Return the counts as text, such as `3 passed, 1 failed: refuses`."""
        said = f"{self.passed} passed"
        said += f", {self.failed} failed: {', '.join(self.names[:_SHOWN])}" if self.failed else ""
        return said + (f", {self.skipped} skipped" if self.skipped else "")


NO_REPORT: Final = TestCounts("")


def read_junit(data: bytes) -> TestCounts | None:
    """Return the counts of a JUnit report, or None for other data. Totals of test suites are ignored."""
    if len(data) > _LARGEST or b"<!DOCTYPE" in data[:4096] or b"<!ENTITY" in data:
        return None
    try:
        root = ET.fromstring(data)  # noqa: S314 - a DTD and entities were rejected above
    except ET.ParseError:
        return None
    if root.tag not in {"testsuites", "testsuite"}:
        return None
    passed, skipped, names = 0, 0, list[str]()
    for case in root.iter("testcase"):
        found = {child.tag for child in case}
        if found & {"failure", "error"}:
            names.append(case.get("name", "?")[:100])
        elif "skipped" in found:
            skipped += 1
        else:
            passed += 1
    return TestCounts("JUnit", passed, len(names), skipped, tuple(names))


def read_tap(text: str) -> TestCounts | None:
    """Return the counts of a TAP report, or None for other text.

    Indented lines (subtests) are ignored, because the parent test already counts. Tests that the plan announces but the
    report lacks count as failed.
    """
    plan, lines = _PLAN.search(text), list(_TAP.finditer(text))
    if plan is None:
        return None
    passed, skipped, names = 0, 0, list[str]()
    for line in lines:
        if _DIRECTIVE.search(line["rest"]):
            skipped += 1
        elif line["not"]:
            names.append(line["rest"].strip(" -")[:100] or f"test {line['number']}")
        else:
            passed += 1
    missing = int(plan[1]) - len(lines)
    names += [f"{missing} that the plan promises"] * (missing > 0)
    return TestCounts("TAP", passed, len(names) - (missing > 0) + max(0, missing), skipped, tuple(names))


# pytest configuration file → required text in the file, or ""
_PYTEST_CONFIGS: Final = {
    "pytest.toml": "", ".pytest.toml": "", "pytest.ini": "", ".pytest.ini": "", "pyproject.toml": "[tool.pytest", "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProjectTestResult:
    """Result of a server's own tests."""

    good: bool
    message: str
    count: TestCounts = NO_REPORT


def run_project_tests(inputs: StageInputs, adopted: AdoptedSettings, candidate: Artifact) -> ProjectTestResult:
    """Run the test command of a server in a sandbox, in a copy of the server's sources."""
    sources = AdoptionSources(inputs.server, adopted, inputs.folder, inputs.root, inputs.work, inputs.settings)
    folder, files = project_files(sources)
    place = inputs.work / "tools"
    place.mkdir()
    sandbox = make_sandbox(inputs.settings, inputs.work, readable=(place, *node_sandbox_paths()), name="tests")
    workdir = sandbox.folder / "source"
    copy_files(folder, files, workdir)
    prepare = _PREPARE.get(adopted.kind)
    path = prepare(workdir, candidate, place) if prepare else None
    environ = {**sandbox.environ, **QUIET_NPM, "CI": "true", "PATH": path_without_mcpfactory()}
    if path is not None:
        environ["PATH"] = os.pathsep.join([str(path), environ["PATH"]])
    code, said = run_and_capture_output(adopted.test, workdir, environ, sandbox)
    report = workdir / adopted.report if adopted.report else None
    return judge_test_run(code, said, _read(report), wanted=adopted.report)


def _python_tools(workdir: Path, candidate: Artifact, place: Path) -> Path:
    _keep_pytest_here(workdir)
    create_locked_environment(candidate.folder, tuple(candidate.files), place, log=True)
    python = programs(place) / "python"
    run_uv(
        "pip",
        "install",
        "--quiet",
        *ONLY_WHEELS,
        "--no-sources",  # without this option, uv builds editable and workspace sources despite --only-binary
        *read_test_requirements(workdir),
        cwd=workdir,
        python=python,
    )
    return programs(place)


def _keep_pytest_here(workdir: Path) -> None:
    """Add an empty pytest configuration if the project has none.

    Without a configuration, pytest would search the parent folders.
    """
    for name, mark in _PYTEST_CONFIGS.items():
        file = workdir / name
        if file.is_file() and mark in file.read_text(encoding="utf-8", errors="replace"):
            return
    (workdir / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")


def read_test_requirements(folder: Path) -> list[str]:
    """Return the requirements for the tests of a project: pytest, and the project's extra and group for tests."""
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ["pytest"]
    groups = project.get("dependency-groups", {})
    extras = project.get("project", {}).get("optional-dependencies", {})
    name = next((one for one in ("test", "tests", "dev") if one in groups), "")
    extra = next((one for one in ("test", "tests", "dev") if one in extras), "")
    wanted = [str(one) for one in extras[extra]] if extra else []
    try:
        for one in wanted:
            refuse_unsafe_requirement(one)
    except PipelineError as error:
        raise ToolRejectedInputError(f"{error}; hint: {error.hint}") from error
    return ["pytest", *wanted, *(["--group", f"{folder / 'pyproject.toml'}:{name}"] if name else [])]


def _node_tools(workdir: Path, candidate: Artifact, place: Path) -> None:
    del candidate, place
    check_npm_project_lock(workdir)
    if (workdir / LOCKS["node"]).is_file():
        run_npm("ci", cwd=workdir)


_PREPARE: Final = {"python": _python_tools, "node": _node_tools}


def judge_test_run(code: int, said: str, report: bytes | None, *, wanted: str) -> ProjectTestResult:
    """Return the test result.

    Exit code and report must both show success. If a report is `wanted` but missing, the tests count as failed.
    """
    if wanted and report is None:
        return ProjectTestResult(
            False, f"the tests ended with exit {code} and wrote no {wanted}: the results are unknown"
        )
    count = read_junit(report) or read_tap(report.decode(errors="replace")) if report is not None else read_tap(said)
    if wanted and count is None:
        return ProjectTestResult(False, f"{wanted} is neither a JUnit nor a TAP report: the results are unknown")
    if count is None:
        return ProjectTestResult(
            code == 0, f"the tests ended with exit {code}; their number is unknown without a report"
        )
    return _with_count(code, count)


def _with_count(code: int, count: TestCounts) -> ProjectTestResult:
    if code != 0 and not count.failed:
        words = f"the tests ended with exit {code}, although {count.form} says {count.words()}"
        return ProjectTestResult(False, words, count)
    if not count.passed:
        return ProjectTestResult(False, f"no test passed ({count.form}: {count.words()})", count)
    return ProjectTestResult(code == 0 and not count.failed, f"{count.words()} ({count.form})", count)


def _read(report: Path | None) -> bytes | None:
    """Return the content of a report. Links are refused, because untrusted code writes the report."""
    if report is None or report.is_symlink() or not report.is_file() or report.stat().st_size > _LARGEST:
        return None
    return report.read_bytes()
