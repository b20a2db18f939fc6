"""What jobs found, folded into the workspace: histories are merged by the ids of their events, states follow from them.

The files that the states name come along (`bundle`), when their bytes are those that the jobs checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mcpfactory_pipeline.base.errors import NotFoundError, StateError
from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.base.records import JsonRecord
from mcpfactory_pipeline.base.text import escape_markdown, pluralize
from mcpfactory_pipeline.channels.candidate import artifact_of
from mcpfactory_pipeline.ci.bundle import unpack, write_files
from mcpfactory_pipeline.state import history
from mcpfactory_pipeline.state.state import Event, ServerState, fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["Folded", "fold_in", "summary"]


@dataclass(frozen=True, slots=True)
class Folded(JsonRecord):
    """One server: how many events and files were new, and where it stands now: its version, and the outcome of each stage.

    `lacking` are files of the newest candidate that are not on this machine.
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
        """Whether every stage that ran has passed."""
        return all(outcome == "passed" for outcome in self.outcomes.values())


def fold_in(workspace: Workspace, folders: Sequence[Path]) -> list[Folded]:
    """Add the events of every `<server>.jsonl` below the folders to the workspace, and write the states that follow.

    Each server is written whole or not at all; what is known already is not added again, so folding twice does no harm.
    Files that the states name are copied from the folders as well (`bundle.pack` wrote them).

    Raises:
        NotFoundError: there is no such folder or server.
        StateError: a history cannot be read, or a file has other bytes than the job checked.
    """
    found: dict[str, list[Event]] = {}
    for folder in folders:
        if not folder.is_dir():
            raise NotFoundError(f"there is no folder {folder}", hint="name folders that hold histories of shards")
        for file in sorted(folder.rglob("*.jsonl")):
            found.setdefault(file.stem, []).extend(history.read(file, str(file)))
    for server in found:
        workspace.server(server)
    return [_fold_server(workspace, server, events, folders) for server, events in sorted(found.items())]


def _fold_server(workspace: Workspace, server: str, theirs: Sequence[Event], folders: Sequence[Path]) -> Folded:
    store, artifacts = Store(workspace), workspace.artifacts / server
    with store.transaction(server) as transaction:
        known = {str(event["id"]): event for event in transaction.events}
        for event in theirs:
            if known.get(str(event["id"]), event) != event:
                raise StateError(
                    f"event {event['id']} of {server} is not the one that the workspace has under this id",
                    hint="fold results of a run that started from this commit",
                )
        new = {str(event["id"]): event for event in theirs if str(event["id"]) not in known}
        merged = sorted((*transaction.events, *new.values()), key=lambda event: str(event["id"]))
        state = fold(server, merged)
        files = unpack(artifacts, state, folders)
        write_files(files)  # first: a candidate without its files is of less use than files without an event
        if new:
            history.append(
                store.history_file(server), [new[key] for key in sorted(new)], store.where(server, "history")
            )
            store.write_state(server, state)
    return _result(workspace, state, len(new), len(files))


def _result(workspace: Workspace, state: ServerState, events: int, files: int) -> Folded:
    newest = artifact_of(workspace, state)
    return Folded(
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


def summary(folded: Sequence[Folded]) -> str:
    """Return Markdown for the summary of a CI run: what did not pass first, with what was found."""
    bad = [server for server in folded if not server.passed]
    lines = ["## mcpfactory", ""]
    if not folded:
        return "\n".join([*lines, "Nothing was due: no server has changed.", ""])
    passed = len(folded) - len(bad)
    lines += [
        f"{pluralize(len(folded), 'server')} ran, {passed} passed" + (f", **{len(bad)} did not**" if bad else "") + ".",
        "",
    ]
    if bad:
        lines += ["| server | stage | outcome | what was found |", "|---|---|---|---|"]
        lines += [
            f"| {escape_markdown(one.server)} | {escape_markdown(stage)} | {outcome} | {escape_markdown(one.messages.get(stage, ''))} |"
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
