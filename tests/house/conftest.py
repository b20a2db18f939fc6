from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.house.figures import Figures, figures
from benchmarks.house.modules import read_tree

ROOT = Path(__file__).resolve().parents[2]
MEMBERS = ("factory/runtime/src", "factory/codegen/src", "factory/cli/src", "pipeline/src")


class Module(NamedTuple):
    """One source file of ours."""

    path: str
    text: str
    tree: ast.Module


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All rules about the tree run in one worker, which reads the tree once."""
    for item in items:
        if item.path.is_relative_to(ROOT / "tests/house") and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("house"))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def modules() -> list[Module]:
    """Every hand-written Python module of the members."""
    files = (
        file for member in MEMBERS for file in sorted((ROOT / member).rglob("*.py")) if "_templates" not in file.parts
    )
    return _read(files)


@pytest.fixture(scope="session")
def tree() -> Figures:
    """What is counted of the members: circles, class names."""
    return figures(read_tree(ROOT))


@pytest.fixture(scope="session")
def tests() -> list[Module]:
    """Every Python module below tests/."""
    return _read(sorted((ROOT / "tests").rglob("*.py")))


def _read(files: Iterable[Path]) -> list[Module]:
    found = []
    for file in files:
        text = file.read_text(encoding="utf-8")
        found.append(Module(file.relative_to(ROOT).as_posix(), text, ast.parse(text)))
    assert len(found) > 50, "the walk must find the files, or every rule about them would pass over nothing"
    return found


@pytest.fixture(scope="session")
def docs() -> str:
    """Everything that the documentation says, as one text."""
    return "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "docs").rglob("*.md")))
