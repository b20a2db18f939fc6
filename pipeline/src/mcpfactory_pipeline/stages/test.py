"""`test`: the server's own tests, against the wheel in a clean environment and never against the source tree."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_pipeline.base.errors import ServerError, StageError
from mcpfactory_pipeline.base.hashing import source_files
from mcpfactory_pipeline.build.environment import UNINSTALLABLE, environment_for_tests
from mcpfactory_pipeline.build.frontend import copy_files
from mcpfactory_pipeline.build.programs import ProgramRefusedError, run_program
from mcpfactory_pipeline.isolation.levels import AUTO, NONE, find_level
from mcpfactory_pipeline.isolation.sandbox import Sandbox, make_sandbox
from mcpfactory_pipeline.launch.failure import STARTERS, diagnose_start, one_line, package_command
from mcpfactory_pipeline.plan.stage import Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.stages import adopted
from mcpfactory_pipeline.stages.tested import (
    PLUGIN,
    Observed,
    compare_tests,
    defined_tests,
    keep_tests,
    name_tests,
    prepare_evidence,
    read_evidence,
)

if TYPE_CHECKING:
    from mcpfactory_pipeline.declared import DeclaredOutcome, DeclaredTest

__all__ = ["STAGE", "judge_tests"]

# Exit codes of pytest: 0 passed, 1 failed, 2 broke off (errors while collecting), 3 an error in pytest, 4 wrong options,
# 5 nothing collected.
_JUDGED: Final = (0, 1, 2, 4, 5)


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
    sandbox = make_sandbox(inputs.settings, inputs.work, readable=(environment.folder, STARTERS, PLUGIN))
    try:
        replayed = _run_declared(inputs, environment.python, declared, sandbox)
    except ServerError as error:
        return StageOutputs("failed", one_line(error), {"tests": len(declared)})
    judged, observed = None, Observed()
    if any(path.endswith(".py") for path in tests):
        judged, observed = _run_pytest(inputs, environment.python, tests, sandbox)
    observed = observed.joined(_seen_declared(replayed))
    found = _combine(judged, observed, replayed)
    return _with_history(inputs, candidate.id, found, observed, {"isolation": level.name})


def _with_history(
    inputs: StageInputs, candidate: str, found: StageOutputs, observed: Observed, facts: Mapping[str, Any]
) -> StageOutputs:
    """Return a verdict with what became of the tests that candidates passed before; those that passed now are kept."""
    if found.outcome != "passed":
        return replace(found, summary={**found.summary, **facts})
    artifacts = inputs.artifacts / inputs.server
    lost, words = compare_tests(observed.passed, artifacts, candidate)
    keep_tests(observed.passed, artifacts, candidate)
    message = f"{found.message}; {words}" if words else found.message
    return replace(found, message=message, summary={**found.summary, "lost": lost, **facts})


def _run_pytest(
    inputs: StageInputs, python: Path, tests: Sequence[str], sandbox: Sandbox
) -> tuple[StageOutputs, Observed]:
    """Return what pytest says of the tests, in a copy of them, and what the plugin saw."""
    bench = sandbox.folder / "bench"  # the tests and their settings, without the sources: an import finds the wheel
    copy_files(inputs.folder / "tests", tests, bench / "tests")
    copy_files(inputs.folder, ["pyproject.toml"], bench)
    report, evidence = sandbox.folder / "junit.xml", prepare_evidence(sandbox.folder / "evidence")
    command = [str(python), "-m", "pytest", "tests", "-q", "--color=no", "-p", "no:cacheprovider"]
    code = run_program(
        [*command, *evidence.options, f"--junit-xml={report}"],
        cwd=bench,
        environ={**sandbox.environ, **evidence.environ},
        sandbox=sandbox,
    )
    if code not in _JUDGED:
        raise StageError(f"pytest ended with {code} and no verdict", hint="the log of the stage has what it said")
    kept = inputs.keep / report.name
    kept.unlink(missing_ok=True)
    if report.is_file() and not report.is_symlink():
        kept.parent.mkdir(parents=True, exist_ok=True)
        copyfile(report, kept)
    observed = read_evidence(evidence, defined_tests(inputs.folder / "tests", tests))
    judged = judge_tests(code, observed)
    if judged.outcome == "failed":
        mistake = diagnose_start(python, inputs.package, inputs.folder, sandbox=sandbox)
        if mistake is not None:  # the reason of them all
            judged = replace(judged, message=f"the server does not start: {one_line(mistake)}")
    return judged, observed or Observed()


def _run_declared(
    inputs: StageInputs, python: Path, declared: Sequence[DeclaredTest], sandbox: Sandbox
) -> list[DeclaredOutcome]:
    """Return the outcomes of the declared tests, against the wheel and the recordings; the API is not asked."""
    if not declared:
        return []
    from mcpfactory_pipeline.checks.calls import api_variables, required_variables  # noqa: PLC0415 - heavy, and only this job needs it
    from mcpfactory_pipeline.checks.source import FULL_TOOL_SET  # noqa: PLC0415 - as above
    from mcpfactory_pipeline.declared import ServerSetup, run_tests  # noqa: PLC0415 - as above

    dummies = dict.fromkeys(required_variables(inputs.folder), "dummy")
    modes = {**FULL_TOOL_SET, "MCPFACTORY_MODE": "full"}
    command = sandbox.command(package_command(python, inputs.package, inputs.folder))
    empty = sandbox.folder / "declared"  # no source tree in sight
    empty.mkdir()
    environ = {**sandbox.environ, **dummies, **modes}
    bench = ServerSetup(command, environ, cwd=empty, api=api_variables(inputs.folder))
    outcomes = asyncio.run(run_tests(declared, bench))
    for one in outcomes:
        print(f"{one.test.file.name}: {one.test.name}: {'; '.join(one.faults) or 'passed'}", flush=True)  # noqa: T201 - stdout of a job is the log of its stage
    return outcomes


def _combine(judged: StageOutputs | None, observed: Observed, replayed: Sequence[DeclaredOutcome]) -> StageOutputs:
    """Return the verdict of both kinds of tests: each must have passed. `observed` is what there is to see of both."""
    facts: dict[str, Any] = observed.facts()
    if not replayed:
        assert judged is not None  # one of the two there is
        return replace(judged, summary=facts) if judged.summary else judged
    facts["declared"] = len(replayed)
    if judged is not None and judged.outcome != "passed":
        return StageOutputs(judged.outcome, judged.message, facts)
    if bad := [one for one in replayed if one.faults]:
        named = ", ".join(one.test.name for one in bad[:3])
        return StageOutputs("failed", f"{len(bad)} of {len(replayed)} declared tests failed: {named}", facts)
    said = f"{facts['passed']} passed, {len(replayed)} of them declared{observed.missing()}"
    return StageOutputs("passed", said, facts)


def _seen_declared(replayed: Sequence[DeclaredOutcome]) -> Observed:
    """Return what declared tests show: each is a call of a tool from outside the server's process."""
    names = {f"tests/{one.test.file.name}::{one.test.name}": one for one in replayed}
    passed = tuple(name for name, one in names.items() if not one.faults)
    return Observed(
        passed=passed,
        failed=tuple(name for name, one in names.items() if one.faults),
        with_tool=passed,
        tools=frozenset(names[name].test.tool for name in passed),
    )


def judge_tests(code: int, observed: Observed | None) -> StageOutputs:
    """Return the verdict on tests by pytest's exit code and what the plugin saw of them; without that nothing was shown."""
    if observed is None:
        said = f"pytest ended with exit {code} before it was through: without a record of the tests none counts"
        return StageOutputs("failed", f"{said}; the log says more")
    facts = observed.facts()
    bad = facts["failed"]
    if code == 0 and bad == 0 and observed.passed:
        return StageOutputs("passed", f"{len(observed.passed)} passed{observed.missing()}", facts)
    if bad:
        named = name_tests([*observed.failed, *observed.errors])
        return StageOutputs("failed", f"{bad} of {facts['tests']} tests failed: {named}", facts)
    if code in {0, 5}:
        return StageOutputs("failed", f"no test passed{observed.missing()}", facts)
    return StageOutputs("failed", f"pytest ended with exit {code}; the log says why", facts)


STAGE: Final = Stage(
    name="test",
    needs=("build",),
    reads=("candidate", "tests", "runtime", "python"),
    writes=("checks",),
    version=4,
    run=run,
    timeout=900,
    check=True,
    sandboxed=True,
    adopted=adopted.test,
)
