"""`test`: the server's own tests, against the wheel in a clean environment and never against the source tree."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from mcpfactory_pipeline.environment import environment_python
from mcpfactory_pipeline.errors import StageError
from mcpfactory_pipeline.hashing import source_files
from mcpfactory_pipeline.stage import Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.tools import Refused, plain_environ, run_program
from mcpfactory_pipeline.wheels import copy_files

__all__ = ["STAGE"]

# Exit codes of pytest: 0 passed, 1 failed, 2 broke off (errors while collecting), 3 an error in pytest, 4 wrong options,
# 5 nothing collected.
_JUDGED = (0, 1, 2, 4, 5)


def run(inputs: StageInputs) -> StageOutputs:
    """Runs the tests beside the installed wheel. No test at all is a failure: nothing was shown."""
    candidate = inputs.candidate
    if candidate is None:
        raise StageError("there is no candidate to test", hint="run the stage build first")
    tests = source_files(inputs.folder / "tests")
    if not any(path.endswith(".py") for path in tests):
        return StageOutputs("failed", "there are no tests: put some into tests/", {"tests": 0})
    try:
        python = environment_python(inputs, candidate)
    except Refused as error:
        return StageOutputs("failed", f"the wheel cannot be installed: {error}")
    bench = inputs.work / "bench"  # the tests and their settings, without the sources: an import finds the wheel
    copy_files(inputs.folder / "tests", tests, bench / "tests")
    copy_files(inputs.folder, ["pyproject.toml"], bench)
    inputs.keep.mkdir(parents=True, exist_ok=True)
    report = inputs.keep / "junit.xml"
    report.unlink(missing_ok=True)
    code = run_program(
        [str(python), "-m", "pytest", "tests", "-q", "--color=no", "-p", "no:cacheprovider", f"--junit-xml={report}"],
        cwd=bench,
        environ=plain_environ(inputs.work / "home"),
    )
    if code not in _JUDGED:
        raise StageError(f"pytest ended with {code} and no verdict", hint="the log of the stage has what it said")
    return _judge(code, report)


def _judge(code: int, report: Path) -> StageOutputs:
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
        return StageOutputs("failed", f"{bad} of {counts['tests']} tests failed: {_named(report)}", summary)
    if code in {0, 5}:
        return StageOutputs("failed", "no test ran" + _skipped(counts["skipped"]), summary)
    return StageOutputs("failed", f"pytest ended with exit {code}; the log says why", summary)


def _skipped(count: int) -> str:
    return f", {count} skipped" if count else ""


def _named(report: Path, limit: int = 3) -> str:
    cases = ET.parse(report).getroot().iter("testcase")  # noqa: S314 - as above
    bad = [
        str(case.get("name")) for case in cases if case.find("failure") is not None or case.find("error") is not None
    ]
    return ", ".join(bad[:limit]) + (" …" if len(bad) > limit else "")


STAGE = Stage(
    name="test",
    needs=("build",),
    reads=("candidate", "tests", "runtime", "python"),
    writes=("checks",),
    version=1,
    run=run,
    timeout=900,
    check=True,
)
