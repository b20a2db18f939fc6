from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mcpfactory_pipeline.base.errors import ReleaseError
from mcpfactory_pipeline.channels.contract import Contract, read_source_version
from mcpfactory_pipeline.delivery.releases.apply import ReleaseResult, apply_releases
from mcpfactory_pipeline.delivery.releases.git import Repository
from mcpfactory_pipeline.delivery.releases.plan import ReleaseProposal, plan_releases
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

DAY = datetime(2030, 5, 4, tzinfo=UTC)


def read(server: WorkspaceServer) -> Contract:
    """Return the tools in the file of a server: a line `name: argument…` for each."""
    tools = []
    for line in (server.folder / "tools.txt").read_text().splitlines():
        name, _, arguments = line.partition(":")
        schema = {"type": "object", "properties": {one: {"type": "string"} for one in arguments.split()}}
        tools.append({"name": name, "inputSchema": schema})
    return Contract(tuple(tools), read_source_version(server), "source")


class Space:
    """Workspace in a separate git repository, with actions of people."""

    def __init__(self, root: Path) -> None:
        self.root = root
        if (root / ".git").is_dir():
            self.workspace = Workspace.find(root)
            return
        self.workspace = apply_setup(plan_workspace_setup(root))
        for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
            self.git("config", key, value)

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, message: str = "work") -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def server(self, name: str, tools: str = "find: text\n", version: str = "1.0.0") -> Path:
        folder = self.root / "servers" / name
        folder.mkdir()
        (folder / "mcpfactory.toml").write_text(f'[server]\nname = "{name}"\npackage = "p"\ntemplate = "none"\n')
        (folder / "pyproject.toml").write_text(f'[project]\nname = "{name}"\nversion = "{version}"\n')
        (folder / "tools.txt").write_text(tools)
        return folder

    def plan(self, *names: str) -> dict[str, ReleaseProposal]:
        workspace = Workspace.find(self.root)
        found = plan_releases(workspace, Repository.around(self.root), names, read)
        return {one.server: one for one in found}

    def apply(self, *names: str, **options: bool) -> list[ReleaseResult]:
        return apply_releases(Workspace.find(self.root), names, read, clock=lambda: DAY, **options)

    def refused(self, *names: str) -> str:
        """Return the code with which an apply is refused; check that it changes nothing."""
        before = (self.git("rev-parse", "HEAD"), self.tags, self.git("status", "--porcelain"))
        with pytest.raises(ReleaseError) as caught:
            self.apply(*names)
        assert caught.value.hint
        assert (self.git("rev-parse", "HEAD"), self.tags, self.git("status", "--porcelain")) == before
        return caught.value.code

    @property
    def tags(self) -> Sequence[str]:
        return self.git("tag", "--list").split()


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the original of `space`."""
    made = Space(tmp_path_factory.mktemp("releases") / "space")
    made.server("books")
    made.server("notes")
    made.commit()
    assert [one.outcome for one in made.apply()] == ["released", "released"]
    return made.root


@pytest.fixture
def space(made_once: Path, tmp_path: Path) -> Space:
    """Return a workspace with two servers that were released as 1.0.0."""
    return Space(shutil.copytree(made_once, tmp_path / "space"))


@pytest.fixture
def contract_of(space):
    """Return the tool list in a release."""
    return lambda tag, name: json.loads(space.git("show", f"{tag}:servers/{name}/changes/released.json"))
