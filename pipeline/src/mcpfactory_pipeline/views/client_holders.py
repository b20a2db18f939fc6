"""Which clients of this machine have a server that is no longer what was adopted: said beside what waits because of that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from mcpfactory_pipeline.clients.files import Home
from mcpfactory_pipeline.clients.installed import installed
from mcpfactory_pipeline.views.inbox import InboxItem
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["name_holders"]


def name_holders(items: Iterable[InboxItem], workspace: Workspace, home: Home, project: Path) -> list[InboxItem]:
    """Return what waits; what is about another offer at a URL also names the clients that have it, and what takes it out there.

    The clients' files are read only where there is such an item.
    """
    listed = list(items)
    if not any(_about_url(item) for item in listed):
        return listed
    rows = [row for row in installed(workspace, home, project) if row.state == "drifted"]
    found = []
    for item in listed:
        has = [row for row in rows if _about_url(item) and row.server == item.server]
        words = [
            f"{row.client} has it (mcpfactory uninstall {row.name} --client {row.client}{' --project' * (row.scope == 'project')})"
            for row in has
        ]
        found.append(replace(item, message="; ".join([item.message, *words])))
    return found


def _about_url(item: InboxItem) -> bool:
    return (item.kind, item.about) == ("drift", "offers")
