"""Whether a package index has a server of the workspace, and nobody else's package of that name.

Who names a package that nobody published invites a stranger to publish it, and to receive the server's credentials. So a
name is believed when the state says that it was published, or when the index is asked and has the promoted candidate,
byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from mcpfactory_pipeline.base.errors import PublishError, StateError, TargetError
from mcpfactory_pipeline.build.wheels import wheel_name
from mcpfactory_pipeline.clients.errors import ClientError
from mcpfactory_pipeline.plan.policy import read_channels
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

__all__ = ["IndexedPackage", "query_index", "recorded_package"]

_TARGET: Final = "pypi"


class IndexedPackage(NamedTuple):
    """What an index has of a server: the version, and the page of the project there."""

    version: str
    page: str

    @property
    def url(self) -> str:
        """The URL of the index; "" for the one that uv asks by itself."""
        from mcpfactory_pipeline.publish.table import TARGETS  # noqa: PLC0415 - heavy, and seldom asked for

        url = self.page.rstrip("/").rpartition("/")[0]
        return "" if url == TARGETS[_TARGET].options["index"].rstrip("/") else f"{url}/"


def recorded_package(workspace: Workspace, server: WorkspaceServer, project: str) -> IndexedPackage | None:
    """Return what the state says was published under the normalised name of a project; None when nothing was. Nobody is asked."""
    live = Store(workspace).state(server.name).published.get(_TARGET)
    known = live.evidence if live and "index" in live.evidence else {}
    if live is None or project not in {wheel_name(file) for file in known if file.endswith(".whl")}:
        return None
    return IndexedPackage(live.version, live.evidence["index"])


def query_index(
    workspace: Workspace, server: WorkspaceServer, project: str, environ: Mapping[str, str]
) -> IndexedPackage:
    """Return what the workspace's index has now.

    Raises:
        ClientError: that is not the promoted candidate, or the index does not answer.
    """
    from mcpfactory_pipeline.publish.publish import find_release, target_settings  # noqa: PLC0415 - heavy, and seldom asked for
    from mcpfactory_pipeline.publish.table import TARGETS  # noqa: PLC0415 - as above

    offered = Store(workspace).state(server.name).channels
    channel = next((row.name for row in reversed(read_channels(workspace)) if row.name in offered), None)
    if channel is None:
        raise ClientError(
            f"{server.name} was neither published nor promoted, so {project} on an index would be somebody else's",
            hint=f"--from source, or mcpfactory pipeline run {server.name}, promote and publish it",
        )
    otherwise = f"--from source, or --from {channel}"
    target = TARGETS[_TARGET]
    try:
        release = find_release(workspace, server.name, channel)
        settings = target_settings(workspace, release, target, environ)
        live = target.inspect(release, settings) if target.inspect else None
    except TargetError as error:
        raise ClientError(f"nobody knows whose {project} is: {error}", hint=otherwise) from error
    except (PublishError, StateError) as error:
        raise ClientError(f"{server.name} cannot come from an index: {error}", hint=otherwise) from error
    where = settings["index"]
    if live is None or live.other:
        raise ClientError(f"this is not our {project}: {live.other if live else where}", hint=otherwise)
    if live.same is None or project != release.metadata.project:
        raise ClientError(
            f"{where} has no {project} {release.version}, and a stranger could publish one",
            hint=f"mcpfactory publish {server.name} --target {_TARGET} --channel {channel}, or {otherwise}",
        )
    return IndexedPackage(release.version, live.same.facts["index"])
