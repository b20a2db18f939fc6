"""What the pages are made of, read from a workspace: status, state, history, and the reports that lie beside them.

The only module of the dashboard that reads files. What is missing or damaged is left out and never an exception: a page
about a broken server is of more use than an error page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpfactory_pipeline.errors import PipelineError
from mcpfactory_pipeline.status import status
from mcpfactory_pipeline.store import Store
from mcpfactory_pipeline.workspace import Workspace

__all__ = ["ServerFacts", "WorkspaceFacts", "read_server", "read_workspace"]

_MAX_REPORT = 32 * 1024 * 1024  # bytes of one report that are read


@dataclass(frozen=True)
class ServerFacts:
    """Everything known of one server, as plain data. Empty where there is nothing."""

    workspace: str
    name: str
    row: Mapping[str, Any]  # see mcpfactory_pipeline.status
    template: str = ""
    source: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)
    history: tuple[Mapping[str, Any], ...] = ()
    report: Mapping[str, Any] = field(default_factory=dict)  # .mcpfactory/report.json: tools, skipped, environment
    validation: Mapping[str, Any] = field(default_factory=dict)  # the report of the last validation


@dataclass(frozen=True)
class WorkspaceFacts:
    """The workspace's name and its servers."""

    name: str
    servers: tuple[ServerFacts, ...]


def read_workspace(root: Path) -> WorkspaceFacts:
    """All servers of the workspace, without history. Raises WorkspaceError when `root` is in none."""
    workspace = Workspace.find(root)
    store = Store(workspace)
    rows = {row["server"]: row for row in status(workspace)}
    return WorkspaceFacts(workspace.name, tuple(_server(workspace, store, row, history=False) for row in rows.values()))


def read_server(root: Path, name: str) -> ServerFacts:
    """One server with its history. Raises NotFoundError when the workspace has none of that name."""
    workspace = Workspace.find(root)
    return _server(workspace, Store(workspace), status(workspace, [name])[0], history=True)


def _server(workspace: Workspace, store: Store, row: Mapping[str, Any], *, history: bool) -> ServerFacts:
    name = str(row["server"])
    server = workspace.server(name)
    try:
        state: Mapping[str, Any] = store.state(name).to_json()
        events = tuple(store.history(name)) if history else ()
    except PipelineError:
        state, events = {}, ()  # the row has the problem, and what to do about it
    return ServerFacts(
        workspace=workspace.name,
        name=name,
        row=row,
        template=server.template,
        source=server.source or "",
        state=state,
        history=events,
        report=_json(server.folder / ".mcpfactory" / "report.json"),
        validation=_validation(workspace.artifacts / name, state),
    )


def _validation(folder: Path, state: Mapping[str, Any]) -> Mapping[str, Any]:
    """The report that the stage `validate` kept, where it is still on this machine."""
    kept = state.get("stages", {}).get("validate", {}).get("artifacts", {})
    for relative in kept:
        file = folder / relative
        if relative.endswith(".json") and file.resolve().is_relative_to(folder.resolve()):
            report = _json(file)
            if "findings" in report:
                return report
    return {}


def _json(file: Path) -> Mapping[str, Any]:
    try:
        if file.stat().st_size > _MAX_REPORT:
            return {}
        data = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
