from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_codegen.credential_parameters import is_secret
from mcpfactory_codegen.servers.config import KINDS as FIELDS
from mcpfactory_codegen.servers.config import AdoptedSettings, ServerConfig
from mcpfactory_pipeline.adoption.candidate import (
    KINDS,
    AdoptionRecord,
    InstalledCandidate,
    build_adopted_candidate,
    ensure_candidate_installed,
)
from mcpfactory_pipeline.adoption.drift_check import compare_with_adopted
from mcpfactory_pipeline.adoption.npm import packages_with_install_scripts
from mcpfactory_pipeline.adoption.project_tests import run_project_tests
from mcpfactory_pipeline.adoption.remote_offers import parse_offers
from mcpfactory_pipeline.adoption.sources import LOCKS, AdoptionSources
from mcpfactory_pipeline.base.errors import ConfigError, ServerError, StageError
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.base.versions import installed_version
from mcpfactory_pipeline.build.programs import ToolRejectedInputError, last_lines
from mcpfactory_pipeline.channels import contract
from mcpfactory_pipeline.channels.candidate import store_candidate
from mcpfactory_pipeline.isolation.levels import (
    AUTO,
    Sandbox,
    find_isolation_level,
    make_sandbox,
    path_without_mcpfactory,
)
from mcpfactory_pipeline.plan.stage import BuiltFiles, StageInputs, StageOutputs
from mcpfactory_pipeline.workspace.adopted import DRIFT_RULE
from mcpfactory_pipeline.workspace.settings import WaiverPolicy
from mcpfactory_pipeline.workspace.waivers import read_waivers
from mcpfactory_pipeline.workspace.workspace import CALLS, CONFIG, Workspace, read_settings_file

if TYPE_CHECKING:
    from mcpfactory_pipeline.checks.declared_tests import DeclaredTest, DeclaredTestOutcome, DeclaredTestSetup
    from mcpfactory_pipeline.checks.exchange import ValidationTarget
    from mcpfactory_pipeline.checks.report import ValidationReport


_CRITICAL: Final = 5  # the highest severity of a rule (docs/reference/rules.md)


def store_validation_report(inputs: StageInputs, report: ValidationReport, tools: Sequence[Any]) -> None:
    """Write a report in each format and the tool list into the candidate's folder, and log the report."""
    from mcpfactory_pipeline.checks.report_formats import FORMATS  # noqa: PLC0415 - heavy, and only this job needs it

    inputs.keep.mkdir(parents=True, exist_ok=True)
    for form in FORMATS.values():
        text = form.write(report).replace(str(inputs.root), ".")
        (inputs.keep / form.file).write_text(text, encoding="utf-8")
    version = inputs.candidate.version if inputs.candidate else ""
    (inputs.keep / contract.FILE).write_text(contract.contract_to_text(tools, version), encoding="utf-8")
    print(report.to_text())  # noqa: T201 - a job's stdout is the log of its stage


def summarize_validation(
    inputs: StageInputs, report: ValidationReport, tools: Sequence[Any], *, level: str, gates: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """Return the result of the checks as one line, and the facts for the state. `gates` are the closed gates."""
    candidate = inputs.candidate.id if inputs.candidate else ""
    summary = {
        "score": report.score,
        "findings": len(report.findings),
        "critical": sum(finding.severity == _CRITICAL for finding in report.findings),
        **_waived(report),
        "gates": list(gates),
        "measured": dict(report.measured),
        "isolation": level,
        "contract": contract.breaking_changes_by_candidate(tools, inputs.artifacts / inputs.server, candidate),
    }
    return _message(report, gates), summary


def _waived(report: ValidationReport) -> dict[str, Any]:
    rules = sorted({entry.rule for entry in report.waived})
    return {"waived": len(report.waived), "waived_rules": rules} if rules else {}


def _message(report: ValidationReport, gates: Sequence[str]) -> str:
    closed = f"; closed: {', '.join(gates)}" if gates else ""
    refused = sum(one.state == "not allowed" for one in report.waivers)
    ignored = f"; {pluralize(refused, 'waiver')} not allowed by policy" if refused else ""
    found = pluralize(len(report.findings), "finding")
    return f"score {report.score}{report.waived_words}, {found}{closed}{ignored}"


_READY: Final = "ready"  # subfolder of a candidate's folder in which stages install the candidate
_SHOWN: Final = 3
_UNKNOWN_DEPENDENCY: Final = re.compile(r"\b(AttributeError|ImportError|ModuleNotFoundError|TypeError): ")
_SAID: Final = 300  # maximum characters of a server's stderr to quote
_FACTS: Final = ("tests", "passed", "failed", "skipped", "deselected", "tool_tests", "tools_run")


def _adopted(inputs: StageInputs) -> AdoptedSettings:
    found = Workspace.find(inputs.root).server(inputs.server).adopted
    if found is None:
        raise StageError(
            f"{inputs.server} was not adopted", hint=f"add the table [adopted] to servers/{inputs.server}/{CONFIG}"
        )
    return found


def generate(inputs: StageInputs) -> StageOutputs:
    """Pass, because nothing is generated for adopted servers."""
    kind = _adopted(inputs).kind
    return StageOutputs("passed", f"adopted, {FIELDS[kind].says}: nothing to generate", {"adopted": kind})


def build(inputs: StageInputs) -> StageOutputs:
    """Collect the server's packages, files or recorded listing."""
    adopted = _adopted(inputs)
    sources = AdoptionSources(inputs.server, adopted, inputs.folder, inputs.root, inputs.work, inputs.settings)
    try:
        made = build_adopted_candidate(
            sources, read_settings_file(ServerConfig, inputs.folder / CONFIG).server.environment
        )
    except (ToolRejectedInputError, ConfigError) as error:
        hint = getattr(error, "hint", "") or "the log has all of it"
        return StageOutputs("failed", f"there is nothing to run: {error}; hint: {hint}")
    store_candidate(made, inputs.artifacts / inputs.server / made.id)
    size = sum((made.folder / name).stat().st_size for name in made.files)
    level = find_isolation_level(str(inputs.settings.get("isolation", AUTO))).name
    built = BuiltFiles(made.id, made.version, made.files, {**made.facts, "uv": installed_version("uv")})
    return StageOutputs(
        "passed",
        f"{adopted.kind} {made.version}, candidate {made.id}",
        {"bytes": size, "isolation": level},
        built=built,
    )


def test(inputs: StageInputs) -> StageOutputs:
    """Run the server's own tests, and the declared tests next to its `mcpfactory.toml`."""
    candidate, adopted = inputs.built_candidate, _adopted(inputs)
    from mcpfactory_pipeline.checks.declared_tests import read_declared_tests  # noqa: PLC0415 - heavy

    declared = read_declared_tests(inputs.folder) if KINDS[adopted.kind].program else ()
    facts: dict[str, Any] = dict.fromkeys(_FACTS, 0)
    if not adopted.test and not declared:
        where = KINDS[adopted.kind].upstream
        whose = f"; {where.partition(',')[0]} may have some, which are not part of it" if where else ""
        return StageOutputs("passed", f"no tests: only the stage validate checks it{whose}", facts)
    said: list[str] = []
    try:
        if declared:
            ready = ensure_candidate_installed(candidate.folder, candidate.files, candidate.folder / _READY)
            outcomes = _run_declared(inputs, ready, declared)
            bad = [one.test.name for one in outcomes if one.faults]
            facts |= {"declared": len(outcomes), "tool_tests": len(outcomes) - len(bad)}
            facts["tools_run"] = len({one.test.tool for one in outcomes if not one.faults})
            facts |= {"tests": len(outcomes), "passed": len(outcomes) - len(bad), "failed": len(bad)}
            if bad:
                return StageOutputs(
                    "failed", f"{len(bad)} of {len(outcomes)} declared tests failed: {', '.join(bad[:_SHOWN])}", facts
                )
            said.append(f"{len(outcomes)} declared passed")
        if adopted.test:
            found = run_project_tests(inputs, adopted, candidate)
            facts |= {key: facts[key] + getattr(found.count, key) for key in ("passed", "failed", "skipped", "tests")}
            said.insert(0, found.message)
            if not found.good:
                return StageOutputs("failed", found.message, facts)
    except ToolRejectedInputError as error:
        return StageOutputs("failed", f"the server cannot be prepared for its tests: {error}; hint: read the log")
    return StageOutputs("passed", "; ".join(said), facts)


def _run_declared(
    inputs: StageInputs, ready: InstalledCandidate, declared: Sequence[DeclaredTest]
) -> list[DeclaredTestOutcome]:
    from mcpfactory_pipeline.checks.declared_tests import DeclaredTestSetup  # noqa: PLC0415 - heavy

    sandbox, empty = _sandbox(inputs, ready, "declared")
    environ = {**sandbox.environ, "PATH": path_without_mcpfactory(), **_dummies(ready.record)}
    setup = DeclaredTestSetup(sandbox.command(ready.command), environ, cwd=empty)
    return run_and_log_tests(declared, setup)


def run_and_log_tests(declared: Sequence[DeclaredTest], setup: DeclaredTestSetup) -> list[DeclaredTestOutcome]:
    """Run declared tests, and print their results to the log of the stage."""
    from mcpfactory_pipeline.checks.declared_tests import run_declared_tests  # noqa: PLC0415 - heavy, and only this job needs it

    outcomes = asyncio.run(run_declared_tests(declared, setup))
    for one in outcomes:
        print(f"{one.test.file.name}: {one.test.name}: {'; '.join(one.faults) or 'passed'}", flush=True)  # noqa: T201 - the log of the stage
    return outcomes


def validate(inputs: StageInputs) -> StageOutputs:
    """Start the adopted server, or connect to its URL, and apply the rules that need no sources."""
    candidate = inputs.built_candidate
    from mcpfactory_pipeline.checks.exchange import ValidationTarget  # noqa: PLC0415 - heavy
    from mcpfactory_pipeline.checks.source_validation import with_locations  # noqa: PLC0415 - heavy
    from mcpfactory_pipeline.checks.validation import validate as examine  # noqa: PLC0415 - heavy

    calls = inputs.folder / CALLS
    about: dict[str, Any] = {
        "limits": inputs.settings.get("limits", {}),
        "isolation": inputs.settings,
        "examples": calls if calls.is_file() else None,
    }
    try:
        ready = ensure_candidate_installed(candidate.folder, candidate.files, candidate.folder / _READY)
        offers = candidate.folder / next(iter(ready.record.files))
        about["drift"], about["drift_offer"] = asyncio.run(
            compare_with_adopted(_adopted(inputs), inputs.folder, offers)
        )
        if ready.record.url:
            level, target = "none", ValidationTarget(url=ready.record.url, **about)
        else:
            level, target = _local_target(inputs, ready, ValidationTarget, about)
    except (ToolRejectedInputError, ServerError) as error:
        return StageOutputs(
            "failed",
            f"the server cannot be started: {error}; hint: {getattr(error, 'hint', '') or 'the log has all of it'}",
        )
    policy = WaiverPolicy(**inputs.settings.get("waivers", {}))
    report = asyncio.run(examine(target, waivers=read_waivers(inputs.folder), policy=policy))
    report = with_locations(report, inputs.root, inputs.folder)
    # For a server at a URL, the contract has the adopted tools, because the current tools may differ.
    listed = parse_offers(offers.read_bytes())["tools"] if ready.record.url else report.listed
    store_validation_report(inputs, report, listed)
    refused = tuple(dict.fromkeys(finding.rule for finding in report.findings if finding.gate))
    unseen = [one.rule for one in report.not_checked if one.gate]
    message, summary = summarize_validation(inputs, report, listed, level=level, gates=refused)
    if silent := next((one for one in report.findings if one.rule == "process.starts"), None):
        end = last_lines(str((silent.evidence or {}).get("stderr", "")), limit=_SAID)
        said = f": {end}" if end else ""
        message = (
            f"it does not start: {silent.message}{said}; hint: {_start_hint(ready.record, candidate.folder, end)}; "
            "validate.log has all of it"
        )
    elif drifted := next((one for one in report.findings if one.rule == DRIFT_RULE), None):
        again = f"mcpfactory adopt {_adopted(inputs).again} --name {inputs.server}"
        others = [one for one in report.waivers if one.waiver.rule == DRIFT_RULE and one.reason]
        unlike = "".join(f"; the waiver by {one.waiver.person} does not count: {one.reason}" for one in others)
        message = (
            f"{drifted.message}{unlike}; hint: {again} shows the difference, and records the version that you accept"
        )
    elif unseen:
        message += f"; not shown: {', '.join(unseen)} (calls that must work go into {CALLS})"
        summary["unseen"] = unseen
    if changes := ready.changes() if ready.command else []:
        return StageOutputs(
            "failed", f"the server changed the files that it is started from: {', '.join(changes[:_SHOWN])}", summary
        )
    return StageOutputs("failed" if report.verdict == "refused" else "passed", message, summary)


def _local_target(
    inputs: StageInputs, ready: InstalledCandidate, target: type[ValidationTarget], about: Mapping[str, Any]
) -> tuple[str, ValidationTarget]:
    sandbox, empty = _sandbox(inputs, ready, "validated")
    environ = {**sandbox.environ, "PATH": path_without_mcpfactory(), **_dummies(ready.record)}
    return sandbox.level.name, target(
        command=tuple(sandbox.command(ready.command)), cwd=empty, environ=environ, **about
    )


def _start_hint(record: AdoptionRecord, folder: Path, said: str) -> str:
    lock = folder / LOCKS["node"]
    if lock.name in record.files and (scripted := packages_with_install_scripts(lock.read_bytes())):
        return (
            f"the installation scripts of {', '.join(scripted[:_SHOWN])} are not run, but may make files that it needs: install it by hand, and"
            " mcpfactory adopt --command"
        )
    if record.kind == "pypi" and _UNKNOWN_DEPENDENCY.search(said):
        return (
            f"a dependency may be newer than it knows: mcpfactory adopt pypi:{record.name}=={record.version} --constraint"
            " 'mcp<2', or whichever the error names"
        )
    return "correct start or [server] environment"


def _sandbox(inputs: StageInputs, ready: InstalledCandidate, name: str) -> tuple[Sandbox, Path]:
    sandbox = make_sandbox(inputs.settings, inputs.work, readable=ready.readable, name=name)
    empty = sandbox.folder / "empty"
    empty.mkdir()
    return sandbox, empty


def _dummies(record: AdoptionRecord) -> dict[str, str]:
    """Return dummy values for the variables of the server, which must not get the caller's values."""
    from mcpfactory_pipeline.checks.validation import CANARY  # noqa: PLC0415 - heavy, and only servers with secrets need it

    return {name: CANARY if is_secret(name) else "dummy" for name in record.environment}
