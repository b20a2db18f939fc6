from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.state.state import state_to_text
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.adoption.registries import Registry, serving
from tests.cli.conftest import InProcessCli
from tests.pipeline.staged_workspace import configured


@pytest.fixture
def registry() -> Iterator[tuple[Registry, dict[str, str]]]:
    """Yield an empty package index and npm registry on loopback, and the variables that select them."""
    found = Registry()
    with serving(found) as environ:
        yield found, environ


def commands_in(folder: Path) -> InProcessCli:
    """Return commands in the workspace below a folder. They run in this process, with their own home and cache."""
    (folder / "home").mkdir(exist_ok=True)
    places = {"HOME": "home", "UV_CACHE_DIR": "uv", "npm_config_cache": "npm"}
    return InProcessCli(folder / "space", {name: str(folder / place) for name, place in places.items()})


@pytest.fixture(scope="session")
def empty_space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty workspace, to be copied."""
    root = tmp_path_factory.mktemp("adoption") / "space"
    configured(apply_setup(plan_workspace_setup(root), git=False))
    return root


@pytest.fixture
def space(tmp_path: Path, empty_space: Path) -> InProcessCli:
    """An empty workspace."""
    shutil.copytree(empty_space, tmp_path / "space")
    return commands_in(tmp_path)


def done(space: InProcessCli, *words: str) -> str:
    """Return the output of a command that must succeed."""
    found = space(*words)
    assert found.code == 0, f"{words}: {found.out}\n{found.err}"
    return found.out


def state(space: InProcessCli, server: str) -> dict[str, Any]:
    return json.loads(state_to_text(Store(Workspace.find(space.folder)).state(server)))


def put(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder
