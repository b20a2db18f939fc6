from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_pipeline.maintenance.setup import apply_setup, read_setup
from tests.adoption.registries import Registry, serving
from tests.cli.conftest import InProcessCli
from tests.pipeline.staged_workspace import configured


@pytest.fixture
def registry() -> Iterator[tuple[Registry, dict[str, str]]]:
    """An index and an npm registry on loopback that have nothing yet, and the variables that lead there."""
    found = Registry()
    with serving(found) as environ:
        yield found, environ


@pytest.fixture
def space(tmp_path: Path) -> InProcessCli:
    """An empty workspace; commands run in this process, with a home and a cache of their own."""
    root = tmp_path / "space"
    configured(apply_setup(read_setup(root), git=False))
    home = tmp_path / "home"
    home.mkdir()
    return InProcessCli(
        root, {"HOME": str(home), "UV_CACHE_DIR": str(tmp_path / "uv"), "npm_config_cache": str(tmp_path / "npm")}
    )


def done(space: InProcessCli, *words: str) -> str:
    """What a command printed that must end well."""
    found = space(*words)
    assert found.code == 0, f"{words}: {found.out}\n{found.err}"
    return found.out


def state(space: InProcessCli, server: str) -> dict[str, Any]:
    return json.loads((space.folder / f"pipeline/state/{server}.json").read_bytes())


def put(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder
