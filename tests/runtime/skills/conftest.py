from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

MakeSkill = Callable[..., Path]


@pytest.fixture
def make_skill(tmp_path: Path) -> MakeSkill:
    """Return a function that writes a skill's folder: lines of the front matter, and further files by path."""

    def make(name: str = "brew-tea", front: str | None = None, files: dict[str, str | bytes] | None = None) -> Path:
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        lines = f"name: {name}\ndescription: Brew tea well." if front is None else front
        (folder / "SKILL.md").write_text(f"---\n{lines}\n---\n\n# Tea\n", "utf-8")
        for path, content in (files or {}).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder

    return make
