"""Merge of CI job results into the workspace."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError, JsonRecord, NotFoundError, StateError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.base.git import git_output, git_text
from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.base.text import escape_markdown, pluralize
from mcpfactory_pipeline.channels.candidate import find_artifact
from mcpfactory_pipeline.delivery.ci.admission import (
    HINT,
    RELEASE_EVENTS,
    RUN_EVENTS,
    AdmissionRules,
    ShardResultError,
    admit_job_events,
)
from mcpfactory_pipeline.delivery.ci.bundle import manifest_folders, read_bundle_files
from mcpfactory_pipeline.plan.fingerprint import InputReader, shown_file_hashes
from mcpfactory_pipeline.plan.plan import BROKEN, RUN, PlanStep
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state import history
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.manifest import find_manifest, manifest_file, with_details
from mcpfactory_pipeline.state.state import ServerState, fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace, is_server_name

_RUN: Final = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


@dataclass(frozen=True, slots=True)
class ShardResult:
    """Output folder of a job, and the servers that were assigned to the job."""

    folder: Path
    servers: tuple[str, ...]


def validate_run_id(text: str) -> str:
    """Validate a run ID and return it."""
    if not _RUN.fullmatch(text):
        raise ConfigError(
            f"{text!r} is not a valid run id", hint="pass the id that mcpfactory ci matrix printed for these jobs"
        )
    return text


def assigned_shard_results(folders: Sequence[Path], assigned: str) -> list[ShardResult]:
    """Return the shard results in the folders, with the servers that the matrix assigned to each job."""
    try:
        entries: list[dict[str, Any]] = json.loads(assigned)["include"]
        servers = {f"shard-{int(entry['shard'])}": tuple(str(entry["servers"]).split()) for entry in entries}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(
            f"--assigned is not a valid matrix: {error}", hint="pass the output of mcpfactory ci matrix --json"
        ) from error
    found = []
    for folder in _folders(folders):
        found += [
            ShardResult(place, servers.get(place.name, ())) for place in sorted(folder.iterdir()) if place.is_dir()
        ]
    return found


def named_shard_results(folders: Sequence[Path], servers: Iterable[str]) -> list[ShardResult]:
    """Return one shard result per folder. Each job was assigned all `servers`."""
    return [ShardResult(folder, tuple(servers)) for folder in _folders(folders)]


def _folders(folders: Sequence[Path]) -> Sequence[Path]:
    for folder in folders:
        if not folder.is_dir():
            raise NotFoundError(f"folder {folder} does not exist", hint="give folders that contain the results of jobs")
    return folders


@dataclass(frozen=True, slots=True)
class FoldedServer(JsonRecord):
    """A server after the merge of job results.

    Attributes:
        lacking: files of the newest candidate that are not on this machine.
    """

    server: str
    events: int
    files: int
    lacking: tuple[str, ...]
    version: str | None
    outcomes: Mapping[str, str]
    messages: Mapping[str, str]

    @property
    def passed(self) -> bool:
        """Return True if all stages passed."""
        return all(outcome == "passed" for outcome in self.outcomes.values())


@dataclass(frozen=True, slots=True)
class RefusedShardResult(JsonRecord):
    """A refused job result of a server."""

    server: str
    code: str
    message: str
    hint: str


def fold_results(
    workspace: Workspace,
    shard_results: Sequence[ShardResult],
    run: str,
    *,
    released: bool = False,
    branch: str = "",
    stages: Sequence[Stage] | None = None,
) -> tuple[list[FoldedServer], list[RefusedShardResult]]:
    """Add the job results of one run to the workspace. Return the merged servers and the refusals.

    A server's result is accepted completely or not at all. If `released` is set, the results may contain promotions and
    publications. `branch` is a commit whose histories contain people's decisions.
    """
    known = stages or workspace_stages(workspace)
    kinds = RELEASE_EVENTS if released else RUN_EVENTS
    rules = AdmissionRules(run, {stage.name: stage for stage in known}, kinds)
    assigned: dict[str, list[ShardResult]] = {}
    refused = []
    for shard_result in shard_results:
        for server in _named(shard_result):
            if server in shard_result.servers:
                assigned.setdefault(server, []).append(shard_result)
            else:
                words = f"{shard_result.folder.name} holds a history of {server}, which its job was not assigned"
                refused.append(RefusedShardResult(server, "server", words, HINT))
    folded = []
    for server, places in sorted(assigned.items()):
        subject = InputReader(workspace.server(server), ServerState(server))
        shown = replace(rules, files=shown_file_hashes(known, subject))
        try:
            folded.append(_fold_server(workspace, server, [place.folder for place in places], shown, branch))
        except ShardResultError as error:
            refused.append(RefusedShardResult(server, error.code, str(error), error.hint))
    return folded, refused


def _named(shard_result: ShardResult) -> list[str]:
    return sorted(file.stem for file in (shard_result.folder / "history").glob("*.jsonl"))


def _fold_server(
    workspace: Workspace, server: str, folders: Sequence[Path], rules: AdmissionRules, branch: str
) -> FoldedServer:
    store, artifacts = Store(workspace), workspace.artifacts / server
    theirs = [event for folder in folders for event in _handed_over(folder, server)]
    with store.transaction(server) as transaction:
        decided = {str(event["id"]): event for event in (_decided(workspace, server, branch) if branch else ())}
        mine = {str(event["id"]): event for event in transaction.events}
        known = sorted({**decided, **mine}.values(), key=lambda event: str(event["id"]))
        places = manifest_folders(artifacts, server, folders)
        taken = admit_job_events(server, known, theirs, replace(rules, details=lambda end: with_details(end, *places)))
        merged = sorted((*known, *taken), key=lambda event: str(event["id"]))
        new = [event for event in merged if str(event["id"]) not in mine]
        state = fold(server, merged)
        files = _files(artifacts, state, folders)
        _require_built(artifacts, taken, files)
        names = [str(event["manifest"]) for event in taken if "manifest" in event]
        files |= {manifest_file(places[0], name): find_manifest(name, places) for name in names}
        # Write the files first: an event without its files would be an error.
        for place, data in files.items():
            replace_file(place, data)
        if new:
            history.append(store.history_file(server), new, store.where(server, "history"))
            store.write_state(server, state)
    return _result(workspace, state, len(new), len(files))


def _handed_over(folder: Path, server: str) -> list[Event]:
    file = folder / "history" / f"{server}.jsonl"
    if file.is_symlink() or not file.is_file():
        raise ShardResultError("history", f"{folder.name} has no readable history of {server}")
    try:
        return history.read(file, f"{folder.name}/history/{server}.jsonl")
    except StateError as error:
        raise ShardResultError("history", str(error)) from error


def _decided(workspace: Workspace, server: str, branch: str) -> list[Event]:
    if not git_text(workspace.root, "rev-parse", "--verify", f"{branch}^{{commit}}"):
        raise NotFoundError(f"unknown commit {branch}", hint="fetch the commit with 'git fetch'")
    where = f"{branch}:./{Store(workspace).where(server, 'history')}"
    data = git_output(workspace.root, "show", where)
    if data is None:
        return []
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, f"{server}.jsonl")
        file.write_bytes(data)
        return history.read(file, where)


def _files(artifacts: Path, state: ServerState, folders: Sequence[Path]) -> dict[Path, bytes]:
    try:
        return read_bundle_files(artifacts, state, folders)
    except StateError as error:
        raise ShardResultError("files", str(error), hint=error.hint) from error


def _require_built(artifacts: Path, events: Sequence[Event], files: Mapping[Path, bytes]) -> None:
    for event in events:
        for name, content in (event.get("built") or {}).get("files", {}).items():
            place = artifacts / str(event["candidate"]) / name
            if place not in files and hash_file(place) != content:
                raise ShardResultError("files", f"candidate {event['candidate']} has no {name}")


def _result(workspace: Workspace, state: ServerState, events: int, files: int) -> FoldedServer:
    newest = find_artifact(workspace, state)
    return FoldedServer(
        state.server,
        events,
        files,
        tuple(name for name, content in newest.files.items() if hash_file(newest.folder / name) != content)
        if newest
        else (),
        newest.version if newest else None,
        {name: record.outcome for name, record in state.stages.items()},
        {name: record.message for name, record in state.stages.items()},
    )


def summary(folded: Sequence[FoldedServer], refused: Sequence[RefusedShardResult] = ()) -> str:
    """Return the summary of a CI run as Markdown."""
    bad = [server for server in folded if not server.passed]
    lines = ["## mcpfactory", ""]
    if refused:
        lines += ["| refused | reason |", "|---|---|"]
        lines += [f"| {escape_markdown(one.server)} | {escape_markdown(one.message)} |" for one in refused]
        lines.append("")
    if not folded and not refused:
        return "\n".join([*lines, "Nothing was due: no server has changed.", ""])
    passed = len(folded) - len(bad)
    lines += [
        f"{pluralize(len(folded), 'server')} ran, {passed} passed" + (f", **{len(bad)} did not**" if bad else "") + ".",
        "",
    ]
    if bad:
        lines += ["| server | stage | outcome | findings |", "|---|---|---|---|"]
        lines += [
            (
                f"| {escape_markdown(one.server)} | {escape_markdown(stage)} | {outcome} | "
                f"{escape_markdown(one.messages.get(stage, ''))} |"
            )
            for one in bad
            for stage, outcome in one.outcomes.items()
            if outcome != "passed"
        ]
        lines.append("")
    if passed:
        names = ", ".join(
            f"{escape_markdown(one.server)} {escape_markdown(one.version or '')}".strip()
            for one in folded
            if one.passed
        )
        lines += ["<details><summary>passed</summary>", "", names, "", "</details>", ""]
    return "\n".join(lines)


def changed(steps: Iterable[PlanStep]) -> tuple[list[str], list[str]]:
    """Return the servers with stages to run: first the valid names, then the invalid names.

    Servers with invalid names get no job, because the names become words of a shell script.
    """
    found = list(dict.fromkeys(step.server for step in steps if step.verdict in {RUN, BROKEN}))
    return [name for name in found if is_server_name(name)], [name for name in found if not is_server_name(name)]


def split_into_shards(servers: Sequence[str], jobs: int, least: int) -> list[tuple[str, ...]]:
    """Split the servers into at most `jobs` groups of similar size, with at least `least` servers each if possible."""
    count = max(1, min(jobs, len(servers) // least)) if servers else 0
    groups: list[tuple[str, ...]] = []
    for number in range(count):
        start, end = (number * len(servers) // count, (number + 1) * len(servers) // count)
        groups.append(tuple(servers[start:end]))
    return groups


def matrix(groups: Sequence[Sequence[str]]) -> dict[str, list[dict[str, object]]]:
    """Return the value of `strategy.matrix`, with one entry per job."""
    return {"include": [{"shard": number, "servers": " ".join(group)} for number, group in enumerate(groups, 1)]}
