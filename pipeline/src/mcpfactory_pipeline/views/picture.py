"""The picture of a workspace, or of one server of it, as a file: what is read for it, and what is drawn."""

from __future__ import annotations

from functools import partial

from mcpfactory_pipeline.base.ids import Clock, utc_now
from mcpfactory_pipeline.plan.policy import read_channels
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.views.drawing import to_svg
from mcpfactory_pipeline.views.graph import graph_of
from mcpfactory_pipeline.views.inbox import InboxReader
from mcpfactory_pipeline.views.places import Stand, server_places, stands_of, workspace_places
from mcpfactory_pipeline.views.status import status_row
from mcpfactory_pipeline.workspace.broken import contain
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

__all__ = ["read_picture"]


def read_picture(workspace: Workspace, server: str = "", *, clock: Clock = utc_now) -> str:
    """Return the picture of one server, or of all of them with "", as the text of an SVG file.

    What cannot be read stands nowhere in it; `mcpfactory pipeline status` says what is wrong with it.

    Raises:
        NotFoundError: for an unknown server.
        ConfigError: for a workspace, or the one server, that cannot be read.
    """
    stages, channels = workspace_stages(workspace), read_channels(workspace)
    desk = InboxReader(workspace, stages, channels, clock())
    if server:
        row, state = status_row(workspace, desk.store, stages, workspace.server(server))
        items = list(desk.of(workspace.server(server), row, state))
        return to_svg(server_places(row, items, stages, channels), f"Pipeline of {server}")
    found: list[Stand] = []
    servers, broken = workspace.survey(None)
    for one in servers:
        stands = contain(one.name, partial(_stands, desk, one))
        found += stands if isinstance(stands, tuple) else ()
    places = workspace_places(graph_of(stages, None, channels), found, len(servers) + len(broken))
    return to_svg(places, f"Pipeline of {workspace.name}")


def _stands(desk: InboxReader, server: WorkspaceServer) -> tuple[Stand, ...]:
    row, state = status_row(desk.workspace, desk.store, desk.stages, server)
    return stands_of(row, desk.of(server, row, state), desk.stages, desk.channels)
