"""`test`: the server's own tests, against the wheel in a clean environment and never against the source tree."""

from __future__ import annotations

import asyncio
import shlex
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING, Final

from mcpfactory_pipeline.base.errors import ServerError, StageError
from mcpfactory_pipeline.base.hashing import source_files
from mcpfactory_pipeline.build.environment import UNINSTALLABLE, environment_for_tests
from mcpfactory_pipeline.build.frontend import copy_files
from mcpfactory_pipeline.build.programs import ProgramRefusedError, run_program
from mcpfactory_pipeline.isolation.levels import AUTO, NONE, find_level
from mcpfactory_pipeline.isolation.sandbox import Sandbox, make_sandbox
from mcpfactory_pipeline.launch.failure import STARTERS, diagnose_start, one_line, package_command
from mcpfactory_pipeline.plan.stage import Stage, StageInputs, StageOutputs

if TYPE_CHECKING:
    from mcpfactory_pipeline.declared import DeclaredOutcome, DeclaredTest

__all__ = ["STAGE", "deselecting_options"]

# Exit codes of pytest: 0 passed, 1 failed, 2 broke off (errors while collecting), 3 an error in pytest, 4 wrong options,
# 5 nothing collected.
_JUDGED: Final = (0, 1, 2, 4, 5)
_DESELECTING: Final = ("--deselect", "--ignore", "-k", "-m", "--lf", "--last-failed", "--sw", "--stepwise")


def run(inputs: StageInputs) -> StageOutputs:
    """Run the tests beside the installed wheel. No test at all is a failure: nothing was shown."""
    candidate = inputs.candidate
    if candidate is None:
        raise StageError("there is no candidate to test", hint="run the stage build first")
    tests = source_files(inputs.folder / "tests")
    from mcpfactory_pipeline.declared import read_tests  # noqa: PLC0415 - heavy, and only this job needs it

    declared = read_tests(inputs.folder)
    if not declared and not any(path.endswith(".py") for path in tests):
        return StageOutputs("failed", "there are no tests: put some into tests/", {"tests": 0})
    level = find_level(str(inputs.settings.get("isolation", AUTO)))
    try:
        environment = environment_for_tests(inputs, candidate, copied=level is NONE)
    except ProgramRefusedError as error:
        return StageOutputs("failed", f"the wheel cannot be installed: {error}; hint: {UNINSTALLABLE}")
    sandbox = make_sandbox(inputs.settings, inputs.work, readable=(environment.folder, STARTERS))
    try:
        replayed = _run_declared(inputs, environment.python, declared, sandbox)
    except ServerError as error:
        return StageOutputs("failed", one_line(error), {"tests": len(declared)})
    judged = None
    if any(path.endswith(".py") for path in tests):
        judged = _run_pytest(inputs, environment.python, tests, sandbox)
    found = _combine(judged, replayed)
    return replace(found, summary={**found.summary, "isolation": level.name})


def _run_pytest(inputs: StageInputs, python: Path, tests: Sequence[str], sandbox: Sandbox) -> StageOutputs:
    """Return what pytest says of the tests, in a copy of them."""
    bench = sandbox.folder / "bench"  # the tests and their settings, without the sources: an import finds the wheel
    copy_files(inputs.folder / "tests", tests, bench / "tests")
    copy_files(inputs.folder, ["pyproject.toml"], bench)
    report = sandbox.folder / "junit.xml"
    code = run_program(
        [str(python), "-m", "pytest", "tests", "-q", "--color=no", "-p", "no:cacheprovider", f"--junit-xml={report}"],
        cwd=bench,
        environ=sandbox.environ,
        sandbox=sandbox,
    )
    if code not in _JUDGED:
        raise StageError(f"pytest ended with {code} and no verdict", hint="the log of the stage has what it said")
    kept = inputs.keep / report.name
    kept.unlink(missing_ok=True)
    if report.is_file() and not report.is_symlink():
        kept.parent.mkdir(parents=True, exist_ok=True)
        copyfile(report, kept)
    judged = _pytest_outcome(code, kept)
    if judged.outcome == "passed" and (left_out := deselecting_options(inputs.folder / "pyproject.toml")):
        said = f"{judged.message}; tests may be deselected by addopts: {' '.join(left_out)}"
        judged = replace(judged, message=said, summary={**judged.summary, "deselecting": left_out})
    if judged.outcome == "failed":
        mistake = diagnose_start(python, inputs.package, inputs.folder, sandbox=sandbox)
        if mistake is not None:  # the reason of them all
            judged = replace(judged, message=f"the server does not start: {one_line(mistake)}")
    return judged


def deselecting_options(settings: Path) -> list[str]:
    """Return the options of pytest in a server's pyproject.toml by which tests are left out; [] when there are none."""
    try:
        tool = tomllib.loads(settings.read_text(encoding="utf-8")).get("tool", {})
        options = tool.get("pytest", {}).get("ini_options", {}).get("addopts", [])
        words = shlex.split(options) if isinstance(options, str) else [str(one) for one in options]
    except (OSError, ValueError, AttributeError, TypeError):
        return []
    return [word for word in words if word.startswith(_DESELECTING)]


def _run_declared(
    inputs: StageInputs, python: Path, declared: Sequence[DeclaredTest], sandbox: Sandbox
) -> list[DeclaredOutcome]:
    """Return the outcomes of the declared tests, against the wheel and the recordings; the API is not asked."""
    if not declared:
        return []
    from mcpfactory_pipeline.checks.calls import api_variables, required_variables  # noqa: PLC0415 - heavy, and only this job needs it
    from mcpfactory_pipeline.declared import ServerSetup, run_tests  # noqa: PLC0415 - as above

    dummies = dict.fromkeys(required_variables(inputs.folder), "dummy")
    modes = {"MCPFACTORY_PROFILE": "full", "MCPFACTORY_MODE": "full", "MCPFACTORY_DIALECT": "standard"}
    command = sandbox.command(package_command(python, inputs.package, inputs.folder))
    empty = sandbox.folder / "declared"  # no source tree in sight
    empty.mkdir()
    environ = {**sandbox.environ, **dummies, **modes}
    bench = ServerSetup(command, environ, cwd=empty, api=api_variables(inputs.folder))
    outcomes = asyncio.run(run_tests(declared, bench))
    for one in outcomes:
        print(f"{one.test.file.name}: {one.test.name}: {'; '.join(one.faults) or 'passed'}", flush=True)  # noqa: T201 - stdout of a job is the log of its stage
    return outcomes


def _combine(judged: StageOutputs | None, replayed: Sequence[DeclaredOutcome]) -> StageOutputs:
    """Return the verdict of both kinds of tests: each must have passed."""
    if not replayed:
        assert judged is not None  # one of the two there is
        return judged
    counts = dict(judged.summary) if judged else dict.fromkeys(("tests", "passed", "failed", "skipped"), 0)
    bad = [one for one in replayed if one.faults]
    for name, more in (("tests", len(replayed)), ("failed", len(bad)), ("passed", len(replayed) - len(bad))):
        counts[name] = counts.get(name, 0) + more
    counts["declared"] = len(replayed)
    if judged is not None and judged.outcome != "passed":
        return StageOutputs(judged.outcome, judged.message, counts)
    if bad:
        named = ", ".join(one.test.name for one in bad[:3])
        return StageOutputs("failed", f"{len(bad)} of {len(replayed)} declared tests failed: {named}", counts)
    return StageOutputs("passed", f"{counts['passed']} passed, {len(replayed)} of them declared", counts)


def _pytest_outcome(code: int, report: Path) -> StageOutputs:
    if not report.exists():
        return StageOutputs("failed", f"pytest ended with exit {code} and without a report; the log says why")
    suites = ET.parse(report).getroot().iter("testsuite")  # noqa: S314 - written by pytest a moment ago; expat bounds entities
    counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for suite in suites:
        for name in counts:
            counts[name] += int(suite.get(name, 0))
    bad = counts["failures"] + counts["errors"]
    passed = counts["tests"] - bad - counts["skipped"]
    summary = {"tests": counts["tests"], "passed": passed, "failed": bad, "skipped": counts["skipped"]}
    if code == 0 and bad == 0 and passed > 0:
        return StageOutputs("passed", f"{passed} passed" + _skipped(counts["skipped"]), summary)
    if bad:
        return StageOutputs("failed", f"{bad} of {counts['tests']} tests failed: {_failed_tests(report)}", summary)
    if code in {0, 5}:
        return StageOutputs("failed", "no test ran" + _skipped(counts["skipped"]), summary)
    return StageOutputs("failed", f"pytest ended with exit {code}; the log says why", summary)


def _skipped(count: int) -> str:
    return f", {count} skipped" if count else ""


def _failed_tests(report: Path, limit: int = 3) -> str:
    cases = ET.parse(report).getroot().iter("testcase")  # noqa: S314 - as above
    bad = [
        str(case.get("name")) for case in cases if case.find("failure") is not None or case.find("error") is not None
    ]
    return ", ".join(bad[:limit]) + (" …" if len(bad) > limit else "")


STAGE: Final = Stage(
    name="test",
    needs=("build",),
    reads=("candidate", "tests", "runtime", "python"),
    writes=("checks",),
    version=3,
    run=run,
    timeout=900,
    check=True,
    sandboxed=True,
)
