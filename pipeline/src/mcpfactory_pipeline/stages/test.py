"""Stage `test`: run the server's tests against its wheel, and record their coverage.

A pytest plugin in the test process writes a record, which is valid only with the nonce of this run. A process that ends
early or writes its own record does not have the nonce.
"""

from __future__ import annotations

import ast
import json
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_pipeline.base.errors import ServerError, StageError
from mcpfactory_pipeline.base.files import copy_files
from mcpfactory_pipeline.base.hashing import list_source_files
from mcpfactory_pipeline.base.text import join_lines, pluralize, truncate
from mcpfactory_pipeline.build.candidate_environment import UNINSTALLABLE, environment_for_tests
from mcpfactory_pipeline.build.programs import ToolRejectedInputError, run_program
from mcpfactory_pipeline.isolation.levels import AUTO, NONE, Sandbox, find_isolation_level, make_sandbox
from mcpfactory_pipeline.launch.start_command import STARTERS, diagnose_start, package_command, start_failure_summary
from mcpfactory_pipeline.plan.stage import StageInputs, StageOutputs
from mcpfactory_pipeline.stages import adopted

if TYPE_CHECKING:
    from mcpfactory_pipeline.checks.declared_tests import DeclaredTest, DeclaredTestOutcome


PLUGIN: Final = Path(__file__).parent / "pytest_plugin"  # folder that the test process must be able to read
_KEPT: Final = "tests.json"  # file with the tests that a candidate passed
_LARGEST: Final = 1 << 26  # maximum bytes of a record
_SHOWN: Final = 3  # maximum tests that a message lists
_REASON: Final = 200  # maximum characters of an exception in a message


@dataclass(frozen=True, slots=True)
class PytestEvidenceFiles:
    """The record of the plugin and its required nonce. `environ` and `options` make pytest load the plugin."""

    nonce: str
    record: Path
    environ: Mapping[str, str]
    options: tuple[str, ...] = ("-p", "mcpfactory_evidence")


@dataclass(frozen=True, slots=True)
class ObservedTests:
    """Test names by outcome.

    The tests in `with_tool` passed and called a tool. `tools` are the called tools. `deselected` are tests that did not
    run. `errors` are files that could not be collected. `reason` is the exception of the first failure.
    """

    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    deselected: tuple[str, ...] = ()
    with_tool: tuple[str, ...] = ()
    tools: frozenset[str] = field(default_factory=frozenset)
    reason: str = ""

    def facts(self) -> dict[str, int]:
        """Return the counts for the record of the stage."""
        return {
            "tests": len(self.passed) + len(self.failed) + len(self.skipped) + len(self.errors),
            "passed": len(self.passed),
            "failed": len(self.failed) + len(self.errors),
            "skipped": len(self.skipped),
            "deselected": len(self.deselected),
            "tool_tests": len(self.with_tool),
            "tools_run": len(self.tools),
        }

    def missing(self) -> str:
        """Describe what the passed tests do not prove; return "" if nothing is missing."""
        said = [f", {len(self.skipped)} skipped"] if self.skipped else []
        if self.deselected:
            said.append(f", {len(self.deselected)} deselected: {first_test_names(self.deselected)}")
        if self.passed and not self.with_tool:
            said.append("; they ran no tool of the server")
        return "".join(said)

    def joined(self, other: ObservedTests) -> ObservedTests:
        """Return the combined observations."""
        both = {name: getattr(self, name) + getattr(other, name) for name in _LISTS}
        return replace(self, **both, tools=self.tools | other.tools)


_LISTS: Final = ("passed", "failed", "skipped", "errors", "deselected", "with_tool")


def prepare_evidence(folder: Path) -> PytestEvidenceFiles:
    """Write the plugin's settings into `folder`. The tests can write to `folder`."""
    folder.mkdir(parents=True)
    nonce, record, tools = secrets.token_hex(16), folder / "record.json", folder / "tools.jsonl"
    settings = folder / "settings.json"
    settings.write_text(json.dumps({"nonce": nonce, "record": str(record), "tools": str(tools)}), encoding="utf-8")
    environ = {"MCPFACTORY_EVIDENCE": str(settings), "MCPFACTORY_TOOL_RECORD": str(tools), "PYTHONPATH": str(PLUGIN)}
    return PytestEvidenceFiles(nonce, record, environ)


def read_evidence(evidence: PytestEvidenceFiles, defined: Iterable[str] = ()) -> ObservedTests | None:
    """Return the plugin's observations; None without a record of this run.

    `defined` are the tests that the test files define. A test counts as deselected if it was not collected.
    """
    try:
        if evidence.record.is_symlink() or evidence.record.stat().st_size > _LARGEST:
            return None
        data = json.loads(evidence.record.read_bytes())
        if data["nonce"] != evidence.nonce:
            return None
        return _observed(data, defined)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _observed(data: Mapping[str, Any], defined: Iterable[str]) -> ObservedTests:
    tests: Mapping[str, Mapping[str, Any]] = data["tests"]
    known = {name.partition("[")[0] for name in (*tests, *data["deselected"])}
    hidden = [name for name in defined if name not in known and name.partition("::")[0] not in data["errors"]]
    by_outcome = {
        outcome: tuple(name for name, test in tests.items() if test["outcome"] == outcome)
        for outcome in ("passed", "failed", "skipped")
    }
    with_tool = [name for name in by_outcome["passed"] if tests[name]["tools"]]
    return ObservedTests(
        **by_outcome,
        errors=tuple(map(str, data["errors"])),
        deselected=(*map(str, data["deselected"]), *hidden),
        with_tool=tuple(with_tool),
        tools=frozenset(str(tool) for name in with_tool for tool in tests[name]["tools"]),
        reason=truncate(join_lines(str(data["reason"])), _REASON),
    )


def defined_tests(folder: Path, files: Sequence[str]) -> list[str]:
    """Return the tests in `test_*.py` and `*_test.py` of a folder, by pytest's names."""
    found: list[str] = []
    for file in files:
        name = file.rpartition("/")[2]
        if name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py")):
            try:
                found += (f"tests/{file}::{one}" for one in _functions(ast.parse((folder / file).read_bytes())))
            except (OSError, ValueError, SyntaxError, RecursionError):
                continue  # skip the file, because pytest reports the error
    return found


def _functions(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        if _is_test(node):
            yield node.name  # type: ignore[attr-defined] # _is_test returns True for functions only
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from (f"{node.name}::{one.name}" for one in node.body if _is_test(one))  # type: ignore[attr-defined] # functions only


def _is_test(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def first_test_names(names: Collection[str]) -> str:
    """List the first test names, without their files."""
    shown = [name.rpartition("::")[2] for name in sorted(names)]
    return ", ".join(shown[:_SHOWN]) + (" …" if len(shown) > _SHOWN else "")


# --- tests of the previous candidate ---


def missing_tests_by_candidate(passed: Collection[str], folder: Path, candidate: str) -> tuple[dict[str, int], str]:
    """Count the tests that earlier candidates passed and the new candidate did not pass, by candidate.

    The second result describes the tests that are missing since the last candidate.
    """
    kept = {file.parent.parent.name: _read_kept(file) for file in folder.glob(f"*/test/{_KEPT}")}
    lost = {name: sorted(set(tests) - set(passed)) for name, (_, tests) in sorted(kept.items())}
    last = candidate if candidate in kept else max(kept, key=lambda name: kept[name][0], default="")
    gone = lost.get(last, [])
    words = (
        f"{pluralize(len(gone), 'test')} that candidate {last} passed are gone: {first_test_names(gone)}"
        if gone
        else ""
    )
    return {name: len(tests) for name, tests in lost.items()}, words


def store_passed_tests(passed: Collection[str], folder: Path, candidate: str) -> None:
    """Store the names of the tests that a candidate ever passed."""
    file = folder / candidate / "test" / _KEPT
    number, before = _read_kept(file)
    others = (_read_kept(other)[0] for other in folder.glob(f"*/test/{_KEPT}"))
    content = {"number": number or 1 + max(others, default=0), "tests": sorted({*before, *passed})}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=0) + "\n", encoding="utf-8")


def _read_kept(file: Path) -> tuple[int, list[str]]:
    try:
        data = json.loads(file.read_bytes())
        return int(data["number"]), [str(name) for name in data["tests"]]
    except (OSError, ValueError, KeyError, TypeError):
        return 0, []


# Exit codes of pytest: 0 passed, 1 failed, 2 interrupted, 3 internal error, 4 usage error, 5 no tests collected.
_JUDGED: Final = (0, 1, 2, 4, 5)


def run(inputs: StageInputs) -> StageOutputs:
    """Run the tests next to the installed wheel. A run without tests fails."""
    candidate = inputs.built_candidate
    tests = list_source_files(inputs.folder / "tests")
    from mcpfactory_pipeline.checks.declared_tests import read_declared_tests  # noqa: PLC0415 - heavy

    declared = read_declared_tests(inputs.folder)
    if not declared and not any(path.endswith(".py") for path in tests):
        return StageOutputs("failed", "there are no tests: add some to tests/", {"tests": 0})
    level = find_isolation_level(str(inputs.settings.get("isolation", AUTO)))
    try:
        environment = environment_for_tests(inputs, candidate, copied=level is NONE)
    except ToolRejectedInputError as error:
        return StageOutputs("failed", f"the wheel cannot be installed: {error}; hint: {UNINSTALLABLE}")
    sandbox = make_sandbox(inputs.settings, inputs.work, readable=(environment.folder, STARTERS, PLUGIN))
    try:
        replayed = _run_declared(inputs, environment.python, declared, sandbox)
    except ServerError as error:
        return StageOutputs("failed", start_failure_summary(error), {"tests": len(declared)})
    judged, observed = None, ObservedTests()
    if any(path.endswith(".py") for path in tests):
        judged, observed = _run_pytest(inputs, environment.python, tests, sandbox)
    observed = observed.joined(_seen_declared(replayed))
    found = _combine(judged, observed, replayed)
    return _with_history(inputs, candidate.id, found, observed, {"isolation": level.name})


def _with_history(
    inputs: StageInputs, candidate: str, found: StageOutputs, observed: ObservedTests, facts: Mapping[str, Any]
) -> StageOutputs:
    """Add the missing tests of earlier candidates to the result, and store the passed tests."""
    if found.outcome != "passed":
        return replace(found, summary={**found.summary, **facts})
    artifacts = inputs.artifacts / inputs.server
    lost, words = missing_tests_by_candidate(observed.passed, artifacts, candidate)
    store_passed_tests(observed.passed, artifacts, candidate)
    message = f"{found.message}; {words}" if words else found.message
    return replace(found, message=message, summary={**found.summary, "lost": lost, **facts})


def _run_pytest(
    inputs: StageInputs, python: Path, tests: Sequence[str], sandbox: Sandbox
) -> tuple[StageOutputs, ObservedTests]:
    # Folder with tests and settings, but without the sources, so that imports find the wheel.
    workdir = sandbox.folder / "bench"
    copy_files(inputs.folder / "tests", tests, workdir / "tests")
    copy_files(inputs.folder, ["pyproject.toml"], workdir)
    report, evidence = sandbox.folder / "junit.xml", prepare_evidence(sandbox.folder / "evidence")
    command = [str(python), "-m", "pytest", "tests", "-q", "--color=no", "-p", "no:cacheprovider"]
    code = run_program(
        [*command, *evidence.options, f"--junit-xml={report}"],
        cwd=workdir,
        environ={**sandbox.environ, **evidence.environ},
        sandbox=sandbox,
    )
    if code not in _JUDGED:
        raise StageError(f"pytest ended with exit code {code}, without a result", hint="read the log of the stage")
    kept = inputs.keep / report.name
    kept.unlink(missing_ok=True)
    if report.is_file() and not report.is_symlink():
        kept.parent.mkdir(parents=True, exist_ok=True)
        copyfile(report, kept)
    observed = read_evidence(evidence, defined_tests(inputs.folder / "tests", tests))
    judged = judge_tests(code, observed)
    if judged.outcome == "failed":
        mistake = diagnose_start(python, inputs.package, inputs.folder, sandbox=sandbox)
        if mistake is not None:  # this error explains all failed tests
            judged = replace(judged, message=f"the server does not start: {start_failure_summary(mistake)}")
    return judged, observed or ObservedTests()


def _run_declared(
    inputs: StageInputs, python: Path, declared: Sequence[DeclaredTest], sandbox: Sandbox
) -> list[DeclaredTestOutcome]:
    if not declared:
        return []
    from mcpfactory_pipeline.checks.call_plan import api_variables, required_variables  # noqa: PLC0415 - heavy
    from mcpfactory_pipeline.checks.declared_tests import DeclaredTestSetup  # noqa: PLC0415 - heavy
    from mcpfactory_pipeline.checks.source_validation import FULL_TOOL_SET  # noqa: PLC0415 - heavy, and only this job needs it

    dummies = dict.fromkeys(required_variables(inputs.folder), "dummy")
    modes = {**FULL_TOOL_SET, "MCPFACTORY_MODE": "full"}
    command = sandbox.command(package_command(python, inputs.package, inputs.folder))
    empty = sandbox.folder / "declared"  # a working directory without sources, so that imports find the wheel
    empty.mkdir()
    environ = {**sandbox.environ, **dummies, **modes}
    setup = DeclaredTestSetup(command, environ, cwd=empty, api=api_variables(inputs.folder))
    return adopted.run_and_log_tests(declared, setup)


def _combine(
    judged: StageOutputs | None, observed: ObservedTests, replayed: Sequence[DeclaredTestOutcome]
) -> StageOutputs:
    """Return the verdict of pytest's tests and declared tests. All tests must pass."""
    facts: dict[str, Any] = observed.facts()
    if not replayed:
        assert judged is not None  # without declared tests, pytest has run
        return replace(judged, summary=facts) if judged.summary else judged
    facts["declared"] = len(replayed)
    if judged is not None and judged.outcome != "passed":
        return StageOutputs(judged.outcome, judged.message, facts)
    if bad := [one for one in replayed if one.faults]:
        named = ", ".join(one.test.name for one in bad[:3])
        said = f"{len(bad)} of {len(replayed)} declared tests failed: {named}; first: {bad[0].faults[0]}"
        return StageOutputs("failed", said, facts)
    said = f"{facts['passed']} passed, {len(replayed)} of them declared{observed.missing()}"
    return StageOutputs("passed", said, facts)


def _seen_declared(replayed: Sequence[DeclaredTestOutcome]) -> ObservedTests:
    """Return the observations of declared tests. A declared test is a tool call from another process."""
    names = {f"tests/{one.test.file.name}::{one.test.name}": one for one in replayed}
    passed = tuple(name for name, one in names.items() if not one.faults)
    return ObservedTests(
        passed=passed,
        failed=tuple(name for name, one in names.items() if one.faults),
        with_tool=passed,
        tools=frozenset(names[name].test.tool for name in passed),
    )


def judge_tests(code: int, observed: ObservedTests | None) -> StageOutputs:
    """Return the verdict from pytest's exit code and the plugin's observations.

    Without observations, the verdict is `failed`.
    """
    if observed is None:
        said = f"pytest ended early with exit {code}: there is no record of the tests, so none counts"
        return StageOutputs("failed", f"{said}; see the log")
    facts = observed.facts()
    bad = facts["failed"]
    if code == 0 and bad == 0 and observed.passed:
        return StageOutputs("passed", f"{len(observed.passed)} passed{observed.missing()}", facts)
    if bad:
        failed = f"{len(observed.failed)} of {facts['tests'] - len(observed.errors)} tests failed"
        uncollected = f"{pluralize(len(observed.errors), 'test file')} cannot be collected"
        found = [(failed, observed.failed), (uncollected, observed.errors)]
        said = "; ".join(f"{what}: {first_test_names(names)}" for what, names in found if names)
        first = f"; first: {observed.reason}" if observed.reason else ""
        return StageOutputs("failed", f"{said}{first}", facts)
    if code in {0, 5}:
        return StageOutputs("failed", f"no test passed{observed.missing()}", facts)
    return StageOutputs("failed", f"pytest ended with exit {code}; see the log", facts)
