"""Stage `build`: build wheel and source distribution once, from a copy of the sources.

The candidate's ID is a hash of both files.
"""

from __future__ import annotations

import json
from fnmatch import fnmatchcase

from packaging.utils import canonicalize_version

from mcpfactory_codegen.servers.config import ServerConfig
from mcpfactory_codegen.settings import SettingsError, read_settings, read_toml_text
from mcpfactory_pipeline.base.errors import ReleaseError
from mcpfactory_pipeline.base.versions import installed_version
from mcpfactory_pipeline.build.candidate_environment import UNINSTALLABLE
from mcpfactory_pipeline.build.dependency_lock import direct_references, ensure_lock
from mcpfactory_pipeline.build.programs import ToolRejectedInputError
from mcpfactory_pipeline.build.wheels import foreign_wheel_entries, wheel_entry_pattern, wheel_version
from mcpfactory_pipeline.channels.candidate import build_candidate, store_candidate
from mcpfactory_pipeline.isolation.levels import AUTO, find_isolation_level
from mcpfactory_pipeline.plan.stage import BuiltCandidate, BuiltFiles, StageInputs, StageOutputs
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.timeline import candidates_by_offered_version
from mcpfactory_pipeline.workspace.coverage import source_gate_facts
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace


def run(inputs: StageInputs) -> StageOutputs:
    """Build the packages and move them into the folder of their candidate."""
    config = inputs.folder / CONFIG
    try:
        settings = read_settings(ServerConfig, read_toml_text(config), config).build
        candidate, stated = _build(inputs)
    except (SettingsError, ReleaseError) as error:
        return StageOutputs("failed", f"{error}; hint: {error.hint}")
    except ToolRejectedInputError as error:
        return StageOutputs(
            "failed",
            f"the server does not build: {error}; hint: correct the error, usually in pyproject.toml; the log "
            "has the full output",
        )
    wheel = _wheel(candidate)
    foreign = foreign_wheel_entries(candidate.folder / wheel, inputs.package, inputs.server)
    if refused := [entry for entry in foreign if not any(fnmatchcase(entry, pattern) for pattern in settings.allow)]:
        return StageOutputs(
            "failed",
            f"{wheel} installs entries that are not its own and can change how other packages run: "
            f"{', '.join(refused)}; hint: leave them out of the wheel, or allow them below [build] in {CONFIG}: allow = "
            f"{json.dumps([*settings.allow, *(wheel_entry_pattern(entry, wheel) for entry in refused)])}",
        )
    if referred := sorted({*direct_references(candidate.folder / wheel)} - {*settings.direct_references}):
        return StageOutputs(
            "failed",
            f"{wheel} requires packages from URLs, whose content can change: {', '.join(referred)}; hint: require "
            f"versions from an index, or allow them below [build] in {CONFIG}: direct_references = "
            f"{json.dumps([*settings.direct_references, *referred])}",
        )
    folder = inputs.artifacts / inputs.server / candidate.id
    store_candidate(candidate, folder)
    try:
        ensure_lock(folder, folder / wheel, artifacts=inputs.artifacts, root=inputs.root, work=inputs.work / "resolved")
    except ToolRejectedInputError as error:
        return StageOutputs("failed", f"the dependencies cannot be resolved: {error}; hint: {UNINSTALLABLE}")
    size = sum((candidate.folder / name).stat().st_size for name in candidate.files)
    level = find_isolation_level(str(inputs.settings.get("isolation", AUTO))).name
    known = {**source_gate_facts(inputs.folder), "backend": candidate.backend, "uv": installed_version("uv")}
    built = BuiltFiles(candidate.id, wheel_version(wheel), candidate.files, known)
    message, summary = f"{wheel}, candidate {candidate.id}", {"bytes": size, "isolation": level}
    if foreign:
        summary["allowed"] = foreign
        message += f"; allowed by {CONFIG}: {', '.join(foreign)}"
    if stated:
        summary["stated"] = stated
        message += (
            f"; {stated} was offered with other bytes, set a new version: mcpfactory release apply {inputs.server}"
        )
    return StageOutputs("passed", message, summary, built=built)


def _build(inputs: StageInputs) -> tuple[BuiltCandidate, str]:
    """Build the server, and return the candidate.

    If a channel offered the stated version with other bytes, the candidate gets a local version, and the second result
    is the stated version. Without a local version, the second result is "". The local version is derived from the first
    build, so equal sources get equal versions.
    """
    candidate = build_candidate(inputs.folder, inputs.work, settings=inputs.settings)
    stated = wheel_version(_wheel(candidate))
    others = candidates_by_offered_version(Store(Workspace.find(inputs.root)).history(inputs.server)).get(
        canonicalize_version(stated), set()
    )
    if not others or candidate.id in others:
        return candidate, ""
    local = f"{stated}{'.' if '+' in stated else '+'}dev{candidate.id[:8]}"
    work = inputs.work / "local"
    work.mkdir()
    return build_candidate(inputs.folder, work, settings=inputs.settings, version=local), stated


def _wheel(candidate: BuiltCandidate) -> str:
    return next(name for name in candidate.files if name.endswith(".whl"))
