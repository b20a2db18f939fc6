"""Hashes of each stage's inputs, and checks that are stale because their inputs changed."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.files import FileStamp, file_stamp
from mcpfactory_pipeline.base.hashing import (
    ABSENT,
    hash_file,
    hash_files,
    hash_named_texts,
    list_source_files,
    shorten_hash,
)
from mcpfactory_pipeline.base.ids import utc_now
from mcpfactory_pipeline.base.versions import checked_out_commit, distribution_version, python_version, template_version
from mcpfactory_pipeline.plan.plan import describe_input_change
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.workspace.adopted import FILE as DRIFT
from mcpfactory_pipeline.workspace.adopted import adopted_files, read_known_drift, replacement_hash
from mcpfactory_pipeline.workspace.waivers import FILE as WAIVERS
from mcpfactory_pipeline.workspace.waivers import read_waivers, unexpired_waivers, waiver_rows
from mcpfactory_pipeline.workspace.workspace import (
    CALLS,
    CASES,
    CONFIG,
    REPORT,
    WorkspaceServer,
    is_evaluation_case_file,
    simulated_api_files,
)


@dataclass(frozen=True)  # no slots: cached properties need a `__dict__`
class InputReader:
    """The inputs and state of one server. Each file is read only once."""

    server: WorkspaceServer
    state: ServerState

    @cached_property
    def files(self) -> list[str]:
        """Return all source files of the server's folder."""
        return list_source_files(self.server.folder)

    def hash(self, file: str) -> str:
        """Return the hash of a file in the server's folder; `none` if the file is missing."""
        if file not in self._hashes:
            self._hashes[file] = hash_file(f"{self.server.folder}/{file}")
        return self._hashes[file]

    def hash_all(self, files: Iterable[str], below: str = "") -> str:
        """Return one hash of files by their paths; `none` without files.

        `below` is a folder path that ends in `/`. The paths of files are relative to `below`.
        """
        record = {file: self.hash(below + file) for file in files}
        return hash_named_texts(record) if record else ABSENT

    @cached_property
    def _hashes(self) -> dict[str, str]:
        return {}


def _document(subject: InputReader) -> str:
    """Return the hash of the API documents, and of all other files in the documents' folder."""
    root, documents = subject.server.folder, [one.path for one in subject.server.documents]
    if not documents or not all(document.is_file() for document in documents):
        return ABSENT
    folders = dict.fromkeys("" if one.parent == root else one.relative_to(root).parts[0] for one in documents)
    hashes = {folder: _documents_in(subject, folder) for folder in folders}
    return next(iter(hashes.values())) if len(hashes) == 1 else hash_named_texts(hashes)


def _documents_in(subject: InputReader, folder: str) -> str:
    if not folder:  # without a separate folder for documents, include all documents except generated files
        files = [path for path in subject.files if path.endswith(_DOCUMENTS) and "_generated/" not in path]
        return subject.hash_all(path for path in files if not path.startswith(".mcpfactory/"))
    return subject.hash_all(list_source_files(subject.server.folder / folder), f"{folder}/")


def _generated(subject: InputReader) -> str:
    """Return the hash of the generated files. After a manual edit, `generate` restores the files."""
    package = f"src/{subject.server.package.replace('.', '/')}/_generated/"
    places = (package, "tests/_generated/", ".mcpfactory/")
    return subject.hash_all(path for path in subject.files if path.startswith(places))


def _source(subject: InputReader) -> str:
    files = subject.hash_all(path for path in subject.files if path.partition("/")[0] not in NOT_BUILT)
    return combine_source_hashes(files, hash_external_files(subject.server))


def combine_source_hashes(files: str, own: str) -> str:
    """Combine the hash of the files in a server's folder with the hash of its files elsewhere."""
    return files if own == ABSENT else hash_named_texts({"beside": files, "own": own})


def hash_external_files(server: WorkspaceServer) -> str:
    """Return the hash of an adopted server's files outside the server's folder; `none` without such files."""
    root = server.folder.parents[1]
    folder = server.adopted.folder(root) if server.adopted else None
    return (
        ABSENT if folder is None or server.adopted is None else hash_files(folder, adopted_files(server.adopted, root))
    )


def _tests(subject: InputReader) -> str:
    tests = subject.hash_all(list_source_files(subject.server.folder / "tests"), "tests/")
    return combine_source_hashes(tests, hash_external_files(subject.server))


def _evals(subject: InputReader) -> str:
    return subject.hash_all(path for path in subject.files if is_evaluation_case_file(path))


def _reports(subject: InputReader) -> str:
    return subject.hash_all(
        path for path in subject.files if path.startswith("evals/reports/") and path.endswith(".json")
    )


def _model(subject: InputReader) -> str:
    """Return one hash of the simulated API and its files; `none` without simulated API or without cases."""
    files = simulated_api_files(subject.files)
    return subject.hash_all(files) if files and _evals(subject) != ABSENT else ABSENT


def _checks(subject: InputReader, names: Iterable[str] | None = None) -> str:
    candidate = subject.state.candidates.get(subject.state.candidate or "")
    if candidate is None:
        return ABSENT
    checks = candidate.checks if names is None else {n: candidate.checks[n] for n in names if n in candidate.checks}
    return hash_named_texts({name: str(check.get("outcome")) for name, check in checks.items()})


def _waivers(subject: InputReader) -> str:
    """Return the hash of the unexpired waivers, so that the check runs again after a waiver expires."""
    if WAIVERS not in subject.files:
        return ABSENT
    valid = unexpired_waivers(read_waivers(subject.server.folder), utc_now().date())
    return hash_named_texts(waiver_rows(valid)) if valid else ABSENT


def _drift(subject: InputReader) -> str:
    known = read_known_drift(subject.server.folder, subject.server.adopted)
    return replacement_hash(known) or ABSENT


def lock_file(candidate: Path) -> Path:
    """Return the path of the dependency lock in a candidate's folder."""
    return candidate / "requirements.lock"


def _dependencies(subject: InputReader) -> str:
    """Return the hash of the candidate's dependency lock.

    If the lock is not on this machine, return the hash that the last stage recorded.
    """
    server, candidate = subject.server, subject.state.candidate
    if server.adopted or candidate is None:
        return ABSENT
    found = hash_file(lock_file(server.folder.parents[1] / "pipeline" / "artifacts" / server.name / candidate))
    if found != ABSENT:
        return found
    records = (one for one in subject.state.stages.values() if one.candidate == candidate)
    return next(filter(None, (one.inputs.get("dependencies") for one in records)), ABSENT)


def uv_settings_hash(root: Path) -> str:
    """Return the hash of the workspace's settings of uv, such as package indexes; `none` without settings.

    They are the file `uv.toml`, or else `[tool.uv]` in `pyproject.toml`. Environment variables are left out, because
    they belong to a machine: equal settings must give equal results on all machines.
    """
    files = root / "uv.toml", root / "pyproject.toml"
    return _uv_settings_hash(*files, *map(file_stamp, files))


@lru_cache(maxsize=8)
def _uv_settings_hash(settings: Path, project: Path, *_stamps: FileStamp | None) -> str:
    if (found := hash_file(settings)) != ABSENT:
        return found
    try:
        own = tomllib.loads(project.read_text(encoding="utf-8")).get("tool", {}).get("uv")
    except (OSError, ValueError):  # uv reports an unreadable file
        return ABSENT
    return hash_named_texts({"tool.uv": json.dumps(own, sort_keys=True, default=str)}) if own else ABSENT


_DOCUMENTS: Final = (".json", ".yaml", ".yml")
NOT_BUILT: Final = ("tests", "evals", "changes", ".mcpfactory", WAIVERS, DRIFT)

INPUTS: Final[dict[str, Callable[[InputReader], str]]] = {
    "document": _document,
    "config": lambda subject: subject.hash(CONFIG),
    "generated": _generated,
    "source": _source,
    "tests": _tests,
    "cases": lambda subject: subject.hash(CALLS if subject.server.adopted else CASES),
    "report": lambda subject: subject.hash(REPORT),
    "waivers": _waivers,
    "drift": _drift,
    "evals": _evals,
    "reports": _reports,
    "model": _model,
    "candidate": lambda subject: subject.state.candidate or ABSENT,
    "checks": _checks,
    "dependencies": _dependencies,
    "uv": lambda subject: uv_settings_hash(subject.server.folder.parents[1]),
    "template": lambda subject: template_version(subject.server.template, subject.server.folder),
    "codegen": lambda _subject: distribution_version("mcpfactory-codegen"),
    # Adopted servers do not use the runtime of this factory.
    "runtime": lambda subject: ABSENT if subject.server.adopted else distribution_version("mcpfactory-runtime"),
    "rules": lambda _subject: distribution_version("mcpfactory-pipeline", "checks"),
    "python": lambda _subject: python_version(),
}


def _shown_stage(state: ServerState, name: str) -> str:
    """Return one hash of a stage's outcome, message, facts and kept reports.

    The log is left out, because it contains times.
    """
    record = state.stages.get(name)
    if record is None:
        return ABSENT
    kept = {path: value for path, value in record.artifacts.items() if not path.startswith("logs/")}
    facts = json.dumps(dict(record.summary), sort_keys=True)
    return hash_named_texts({"outcome": record.outcome, "message": record.message, "summary": facts, **kept})


def _shown_artifact(state: ServerState, name: str) -> str:
    """Return the recorded hash of a report that a stage kept. `name` is `STAGE/PATH`."""
    record = state.stages.get(name.partition("/")[0])
    kept = record.artifacts if record else {}
    return next((value for path, value in kept.items() if path.partition("/")[2] == name), ABSENT)


# Kind of a shown part, such as "stage" in "stage:test" → function that returns the hash of the part.
_OF_STATE: Final[dict[str, Callable[[ServerState, str], str]]] = {"stage": _shown_stage, "artifact": _shown_artifact}
SHOWN_FILE: Final = "file:"


def shown_state_hashes(stage: Stage, state: ServerState) -> dict[str, str]:
    """Return the hashes of the parts that an approval stage shows from the state. Shown files are not included."""
    found = {name: state.candidate or ABSENT for name in stage.reads if name == "candidate"}
    for name in stage.reads:
        kind, _, rest = name.partition(":")
        if kind in _OF_STATE:
            found[name] = _OF_STATE[kind](state, rest)
    return found


def shown_file_hashes(stages: Iterable[Stage], subject: InputReader) -> dict[str, str]:
    """Return the current hashes of the files that approval stages show, by `file:PATH`."""
    names = {name for stage in stages for name in stage.reads if name.startswith(SHOWN_FILE)}
    return {name: _read(name, subject) for name in sorted(names)}


def _read(name: str, subject: InputReader) -> str:
    kind, colon, rest = name.partition(":")
    if not colon:
        return INPUTS[name](subject)
    return subject.hash(rest) if kind == "file" else _OF_STATE[kind](subject.state, rest)


def stage_inputs(stage: Stage, subject: InputReader) -> dict[str, str]:
    """Return the current inputs of one stage by name. The input `stage` is the stage's version."""
    return read_stage_inputs((stage,), subject)[stage.name]


def read_stage_inputs(stages: Sequence[Stage], subject: InputReader) -> dict[str, dict[str, str]]:
    """Return the current inputs of every stage, with short hashes, except in approval stages."""
    values = {name: _read(name, subject) for name in dict.fromkeys(name for stage in stages for name in stage.reads)}
    found = {stage.name: {"stage": stage.stamp, **{name: values[name] for name in stage.reads}} for stage in stages}
    for stage in stages:
        if "checks" in stage.reads:  # include only the checks that the stage needs
            found[stage.name]["checks"] = _checks(subject, stage.needs)
        if not stage.approval:
            found[stage.name] = {name: shorten_hash(value) for name, value in found[stage.name].items()}
    return found


_MADE_FROM: Final = ("document", "config", "template", "codegen", "runtime", "python")


def source_provenance_inputs(subject: InputReader) -> dict[str, str]:
    """Return the inputs that affect the candidate's sources, for the record of a build."""
    return {name: INPUTS[name](subject) for name in _MADE_FROM} | {"commit": checked_out_commit(subject.server.folder)}


# Inputs that are not compared.
_NOT_COMPARED: Final = ("python", "drift")
_OF_FACTORY: Final = "stage"


def stale_checks(
    stages: Iterable[Stage],
    required: Iterable[Stage],
    state: ServerState,
    candidate: str,
    inputs: Mapping[str, Mapping[str, str]],
) -> list[str]:
    """Describe the checks of the candidate that must run again, each with the reasons; empty without such checks.

    `required` are the checks that a channel requires. `inputs` are the current inputs of each stage
    (`read_stage_inputs`). Checks of older candidates are ignored, because their sources no longer exist. If the API
    document changed, the files generated from it are also stale.
    """
    if candidate != state.candidate:
        return []
    found = []
    generating = (stage for stage in stages if "document" in stage.reads and not stage.check)
    for stage in (*generating, *required):
        record = state.stages.get(stage.name)
        if record is not None and "document" in stage.reads and _differs(record.inputs, inputs[stage.name], "document"):
            found.append(f"{stage.name} is due: the API document has changed since")
        if not stage.check or record is None or record.candidate != candidate:
            continue
        now = inputs[stage.name]
        compared = [name for name in record.inputs if name in now and name not in _NOT_COMPARED]
        reasons = [
            describe_input_change(name, record.inputs[name], now[name])
            for name in compared
            if record.inputs[name] != now[name] and (name != _OF_FACTORY or stage.settings)
        ]
        if reasons:
            found.append(f"{stage.name} is due: {', '.join(reasons)}")
    return found


def _differs(before: Mapping[str, str], now: Mapping[str, str], name: str) -> bool:
    return name in before and name in now and before[name] != now[name]
