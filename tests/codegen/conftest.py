"""Fixtures of all generator tests. A shipped template is rendered once for equal answers, because copier is slow."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.servers import scaffold
from mcpfactory_codegen.servers.scaffold import render_in_process

TEMPLATES = Path(__file__).parents[2] / "templates"


@pytest.fixture(scope="session", autouse=True)
def rendered_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Copy the earlier result of a shipped template, if its answers are the same."""
    known: dict[str, Path] = {}

    def render(template: Path, folder: Path, data: Mapping[str, Any]) -> None:
        if not template.resolve().is_relative_to(TEMPLATES):  # a test may change it
            render_in_process(template, folder, data)
            return
        key = f"{template} {json.dumps(dict(data), sort_keys=True)}"
        if key not in known:
            made = tmp_path_factory.mktemp("rendered")
            render_in_process(template, made, data)
            known[key] = made
        shutil.copytree(known[key], folder, symlinks=True, dirs_exist_ok=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scaffold, "render_in_process", render)
        yield
