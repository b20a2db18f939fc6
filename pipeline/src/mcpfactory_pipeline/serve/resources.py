"""Resources of the factory's server: the inbox, where servers stand, reports and histories, as JSON."""

from __future__ import annotations

import json
from typing import Any

from mcpfactory_pipeline.base.errors import NotFoundError, PromotionError
from mcpfactory_pipeline.plan.policy import read_channels
from mcpfactory_pipeline.serve.access import WorkspaceAccess
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.views.inbox import read_inbox
from mcpfactory_pipeline.views.status import history, read_report, status
from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime import Server

__all__ = ["FactoryResources"]


class FactoryResources:
    """The resources of one workspace, and what completes the names in their URIs."""

    def __init__(self, access: WorkspaceAccess) -> None:
        self._access = access

    def register(self, server: Server) -> None:
        """Offers the resources."""
        for uri, name, function in (
            ("factory://inbox", "inbox", self.inbox),
            ("factory://status", "status", self.status),
            ("factory://servers/{server}/status", "status of a server", self.server_status),
            ("factory://servers/{server}/report.json", "report of a server", self.report),
            ("factory://servers/{server}/history.json", "history of a server", self.history),
        ):
            server.resource(uri, name=name, mime_type="application/json")(function)
        server.completion(self.complete)

    async def inbox(self) -> list[dict[str, Any]]:
        """Return what waits for somebody, the most blocking first, with the command that comes next."""
        return [item.to_json() for item in await self._read(read_inbox)]

    async def status(self) -> Any:
        """Where every server stands, in the shape of `mcpfactory pipeline status --json`."""
        return await self._read(status)

    async def server_status(self, server: str) -> Any:
        """Where one server stands."""
        found = await self._read(status, [server])
        return found and found[0]

    async def report(self, server: str) -> Any:
        """Return the report of `validate` on the newest candidate of a server: every finding with its proof."""
        found = await self._read(read_report, server)
        return found and json.loads(found[2])

    async def history(self, server: str) -> Any:
        """Every event of a server, oldest first: who did what, when and why."""
        return await self._read(history, server)

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
