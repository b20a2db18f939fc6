"""What jobs found, folded into the workspace: histories are merged by the ids of their events, states follow from them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mcpfactory_pipeline import history
from mcpfactory_pipeline.errors import NotFoundError, StateError
from mcpfactory_pipeline.state import Event, State, fold
from mcpfactory_pipeline.store import Store
from mcpfactory_pipeline.words import counted
from mcpfactory_pipeline.workspace import Workspace

__all__ = ["Folded", "fold_in", "summary"]


@dataclass(frozen=True)
class Folded:
    """One server: how many events were new, and where it stands now: its version, and the outcome of each stage."""

    server: str
    events: int
    version: str | None
    outcomes: Mapping[str, str]
    messages: Mapping[str, str]

    @property
    def passed(self) -> bool:
        """Whether every stage that ran has passed."""
        return all(outcome == "passed" for outcome in self.outcomes.values())

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def fold_in(workspace: Workspace, folders: Sequence[Path]) -> list[Folded]:
    """Adds the events of every `<server>.jsonl` below the folders to the workspace, and writes the states that follow.

    Each server is written whole or not at all; what is known already is not added again, so folding twice does no harm.
    Raises `NotFoundError` for a folder or a server that is not there, `StateError` for a history that cannot be read.
    """
    found: dict[str, list[Event]] = {}
    for folder in folders:
        if not folder.is_dir():
            raise NotFoundError(f"there is no folder {folder}", hint="name folders that hold histories of shards")
        for file in sorted(folder.rglob("*.jsonl")):
            found.setdefault(file.stem, []).extend(history.read(file, str(file)))
    for server in found:
        workspace.server(server)
    return [_fold_server(Store(workspace), server, events) for server, events in sorted(found.items())]


def _fold_server(store: Store, server: str, theirs: Sequence[Event]) -> Folded:
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
        if new:
            history.append(
                store.history_file(server), [new[key] for key in sorted(new)], store.where(server, "history")
            )
            store.write_state(server, state)
    return _told(state, len(new))


def _told(state: State, events: int) -> Folded:
    candidate = state.candidates.get(state.candidate or "")
    return Folded(
        state.server, events, candidate.version if candidate else None,
        {name: record.outcome for name, record in state.stages.items()},
        {name: record.message for name, record in state.stages.items()},
    )  # fmt: skip


def summary(folded: Sequence[Folded]) -> str:
    """Markdown for people who look at a CI run: what did not pass first, with what was found."""
    bad = [server for server in folded if not server.passed]
    lines = ["## mcpfactory", ""]
    if not folded:
        return "\n".join([*lines, "Nothing was due: no server has changed.", ""])
    passed = len(folded) - len(bad)
    lines += [
        f"{counted(len(folded), 'server')} ran, {passed} passed" + (f", **{len(bad)} did not**" if bad else "") + ".",
        "",
    ]
    if bad:
        lines += ["| server | stage | outcome | what was found |", "|---|---|---|---|"]
        lines += [
            f"| {_cell(one.server)} | {_cell(stage)} | {outcome} | {_cell(one.messages.get(stage, ''))} |"
            for one in bad
            for stage, outcome in one.outcomes.items()
            if outcome != "passed"
        ]
        lines.append("")
    if passed:
        names = ", ".join(f"{_cell(one.server)} {_cell(one.version or '')}".strip() for one in folded if one.passed)
        lines += ["<details><summary>passed</summary>", "", names, "", "</details>", ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Text that comes from servers and their tests: nothing of it is Markdown or HTML."""
    plain = re.sub(r"\s+", " ", text)[:300].replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_{}\[\]|!@#~])", r"\\\1", plain)
