"""Whether a tag is a release that may be published from what is checked out; for CI, before anything of it runs."""

from __future__ import annotations

from dataclasses import dataclass

from mcpfactory_pipeline.base.errors import ReleaseError
from mcpfactory_pipeline.base.records import JsonRecord
from mcpfactory_pipeline.channels.contract import source_version
from mcpfactory_pipeline.releases.git import Repository, Tag
from mcpfactory_pipeline.releases.packages import read_packages
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["Checked", "check_tag"]


@dataclass(frozen=True, slots=True)
class Checked(JsonRecord):
    """A tag that is a release: of which server, which version; `candidate` is what was built of it here, "" before that."""

    tag: str
    server: str
    version: str
    commit: str
    candidate: str = ""


def check_tag(workspace: Workspace, name: str, *, branch: str = "") -> Checked:
    """Check that a tag exists, that what it names is checked out and has its version, and with `branch` that this contains it.

    Raises:
        NotFoundError: the workspace has no such server.
        ReleaseError: the tag is not a release that may be published from here.
    """
    repository, wanted = Repository.around(workspace.root), Tag.read(name)
    if wanted is None:
        raise ReleaseError(
            "tag", f"{name} is no tag of a release", hint="<server>-vX.Y.Z, as mcpfactory release apply makes it"
        )
    packages = read_packages(workspace)
    shared = packages if packages and packages.name == wanted.server else None
    server = None if shared else workspace.server(wanted.server)
    there = repository.tags().get(name)
    if there is None:
        raise ReleaseError("tag", f"there is no tag {name} here", hint="git fetch --tags")
    if there.commit != repository.head():
        raise ReleaseError(
            "tag", f"{name} is {there.commit[:12]}, and that is not checked out", hint=f"git checkout {name}"
        )
    stated = shared.version if shared else source_version(server) if server else ""
    if stated != wanted.version:
        raise ReleaseError(
            "tag", f"{name} is not the version of its sources, {stated}", hint="mcpfactory release apply makes tags"
        )
    if branch and not repository.contains(branch, there.commit):
        raise ReleaseError("tag", f"{branch} does not contain {name}", hint=f"merge it into {branch} first")
    if server is None:
        return Checked(name, wanted.server, wanted.version, there.commit)
    state = Store(workspace).state(server.name)
    known = state.candidates.get(state.candidate or "")
    built = state.candidate if known and known.version == wanted.version else None
    return Checked(name, server.name, wanted.version, there.commit, built or "")
