"""Resources of the factory's server: the inbox, where servers stand, reports and histories, as JSON and for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from mcpfactory_pipeline.base.errors import NotFoundError, PromotionError
from mcpfactory_pipeline.base.text import format_duration
from mcpfactory_pipeline.plan.policy import read_channels
from mcpfactory_pipeline.report.table import status_table
from mcpfactory_pipeline.serve.access import WorkspaceAccess
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.timeline import actor_of
from mcpfactory_pipeline.views.inbox import read_inbox
from mcpfactory_pipeline.views.status import history, read_report, status
from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime import Server

__all__ = ["FactoryResources"]

_MARKDOWN: Final = "text/markdown"
_JSON: Final = "application/json"


class FactoryResources:
    """The resources of one workspace, and what completes the names in their URIs."""

    def __init__(self, access: WorkspaceAccess) -> None:
        self._access = access

    def register(self, server: Server) -> None:
        """Offers the resources."""
        for uri, name, mime, function in (
            ("factory://inbox", "inbox", _JSON, self.inbox),
            ("factory://inbox.md", "inbox for people", _MARKDOWN, self.inbox_page),
            ("factory://status", "status", _JSON, self.status),
            ("factory://status.md", "status for people", _MARKDOWN, self.status_page),
            ("factory://servers/{server}/status", "status of a server", _JSON, self.server_status),
            ("factory://servers/{server}/report.json", "report of a server", _JSON, self.report),
            ("factory://servers/{server}/report.md", "report of a server for people", _MARKDOWN, self.report_page),
            ("factory://servers/{server}/history.json", "history of a server", _JSON, self.history),
            ("factory://servers/{server}/history.md", "history of a server for people", _MARKDOWN, self.history_page),
        ):
            server.resource(uri, name=name, mime_type=mime)(function)
        server.completion(self.complete)

    async def inbox(self) -> list[dict[str, Any]]:
        """Return what waits for somebody, the most blocking first, with the command that comes next."""
        return [item.to_json() for item in await self._read(read_inbox)]

    async def inbox_page(self) -> str:
        """Return what waits for somebody, as a table."""
        items = await self._read(read_inbox)
        rows = [
            (i.kind, i.server, i.message, format_duration(i.waited) if i.waited is not None else "", f"`{i.command}`")
            for i in items
        ]
        return _table("Inbox", ("what", "server", "message", "waits", "next"), rows)

    async def status(self) -> Any:
        """Where every server stands, in the shape of `mcpfactory pipeline status --json`."""
        return await self._read(status)

    async def status_page(self) -> str:
        """Where every server stands, as a table of servers and stages."""
        header, rows = status_table(await self._read(status))
        return _table("Status", [word.lower() for word in header], rows)

    async def server_status(self, server: str) -> Any:
        """Where one server stands."""
        found = await self._read(status, [server])
        return found and found[0]

    async def report(self, server: str) -> Any:
        """Return the report of `validate` on the newest candidate of a server: every finding with its proof."""
        found = await self._read(read_report, server)
        return found and json.loads(found[2])

    async def report_page(self, server: str) -> Any:
        """Return the report of `validate` on the newest candidate of a server: verdict, table, what to do."""
        found = await self._read(read_report, server, form="report.md")
        return found and found[2]

    async def history(self, server: str) -> Any:
        """Every event of a server, oldest first: who did what, when and why."""
        return await self._read(history, server)

    async def history_page(self, server: str) -> Any:
        """Every event of a server, oldest first, as a table."""
        events = await self._read(history, server)
        if events is None:
            return None
        fields = ("stage", "channel", "outcome", "candidate", "version", "reason")
        rows = [
            (e["at"], actor_of(e), e["event"], " ".join(f"{key}: {e[key]}" for key in fields if e.get(key)))
            for e in events
        ]
        return _table(f"History of {server}", ("at", "who", "what", "more"), rows)

    async def complete(self, ref: Any, argument: Any) -> list[str]:
        """Names of servers, stages and channels that begin with what was typed."""
        kinds = {"server": _servers, "stage": _stages, "channel": _channels}
        names = await self._read(kinds[argument.name]) if argument.name in kinds else []
        return [name for name in names if name.startswith(argument.value)]

    async def _read(self, function: Any, *arguments: Any, **options: Any) -> Any:
        """Return what a function of the workspace returns; None for a server, or a report, that is not there."""

        def read(workspace: Workspace) -> Any:
            try:
                return function(workspace, *arguments, **options)
            except (NotFoundError, PromotionError):  # the latter: there is no candidate yet
                return None

        return await self._access.read(read)


def _servers(workspace: Workspace) -> list[str]:
    return [server.name for server in workspace.servers()]


def _stages(workspace: Workspace) -> list[str]:
    return [stage.name for stage in workspace_stages(workspace)]


def _channels(workspace: Workspace) -> list[str]:
    return [channel.name for channel in read_channels(workspace)]


def _table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"# {title}", ""]
    cells = [" | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) for row in rows]
    if not cells:
        return "\n".join([*lines, "Nothing.", ""])
    return "\n".join(
        [*lines, f"| {' | '.join(header)} |", f"|{'---|' * len(header)}", *(f"| {row} |" for row in cells), ""]
    )
