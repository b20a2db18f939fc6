"""Each recipe of CONTRIBUTING.md, followed in a copy of the tree: it names what is touched, and a file that is forgotten is named."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from benchmarks.codebase.recipes import Recipe, read_recipes
from mcpfactory_pipeline.checks.report import RULES_VERSION
from tests.codegen.server_checks import CACHE
from tests.recipes.recipe_changes import TRIALS, Trial
from tests.timeouts import TIMEOUT

ROOT: Final = Path(__file__).resolve().parents[2]
RECIPES: Final = read_recipes(ROOT)
LEFT_OUT: Final = {".git", ".venv", "build", "dist", "exam-results", ".mypy_cache", ".ruff_cache", ".hypothesis"}
SOURCES: Final = ("factory/runtime/src", "factory/codegen/src", "factory/cli/src", "pipeline/src")
KEPT: Final = CACHE.relative_to(ROOT)
LITTER: Final = {"__pycache__", ".hypothesis", CACHE.name}
REFERENCE: Final = "tests/pipeline/checks/test_reference.py"
DIGEST: Final = re.compile(r"write it with '([0-9a-f]{16})' into WEIGHED")

pytestmark = pytest.mark.xdist_group("recipes")  # one copy of the tree for all


class Tree:
    """A copy of the repository that is changed and put back."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(ROOT, root, symlinks=True, ignore=self._left_out)
        (ROOT / KEPT).mkdir(parents=True, exist_ok=True)
        (root / KEPT).parent.mkdir()
        (root / KEPT).symlink_to(ROOT / KEPT)  # what mypy knows of the libraries
        self.before = self._read()

    @staticmethod
    def _left_out(folder: str, names: list[str]) -> set[str]:
        if Path(folder) == ROOT:
            return LEFT_OUT & set(names)
        return {"artifacts", "channels", "locks"} & set(names) if Path(folder) == ROOT / "pipeline" else set()

    def _read(self) -> dict[str, bytes]:
        files = (
            Path(at, name) for at, _, names in os.walk(self.root) if not LITTER & {*Path(at).parts} for name in names
        )
        return {file.relative_to(self.root).as_posix(): file.read_bytes() for file in files if not file.is_symlink()}

    @property
    def changed(self) -> set[str]:
        """The files that are not as they were."""
        now = self._read()
        return {path for path in {*now, *self.before} if now.get(path) != self.before.get(path)}

    def restore(self, *paths: str) -> None:
        """Put files back as they were, all of them if none is named."""
        for path in paths or self.changed:
            if path in self.before:
                (self.root / path).write_bytes(self.before[path])
            else:
                (self.root / path).unlink()

    def run(self, commands: str, tests: str) -> subprocess.CompletedProcess[str]:
        """Type commands in the copy, of whose tests those are run that are about the change."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "MCPFACTORY_"))}
        environ = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(str(self.root / path) for path in SOURCES),
            "PYTEST_ADDOPTS": f"-k '{tests}'",
        }
        return subprocess.run(
            ["bash", "-euc", commands], cwd=self.root, env=clean | environ, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=4 * TIMEOUT,
        )  # fmt: skip


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(tmp_path_factory.mktemp("recipes") / "tree")


@pytest.fixture
def tree(copied: Tree) -> Iterator[Tree]:
    yield copied
    copied.restore()


def follow(tree: Tree, recipe: Recipe, trial: Trial) -> None:
    """Make the change, and type the commands; where a test says what to write, as for the digest of rules, write it."""
    trial.change(tree.root)
    if REFERENCE in recipe.commands:
        page, told = tree.root / REFERENCE, DIGEST.search(tree.run(f"pytest -q {REFERENCE}", "").stdout)
        assert told
        weighed = re.sub(r"WEIGHED = .*", f'WEIGHED = ({RULES_VERSION + 1}, "{told[1]}")', page.read_text("utf-8"))
        page.write_text(weighed, "utf-8")
    done = tree.run(recipe.commands, trial.tests)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_recipe_has_a_trial() -> None:
    assert set(RECIPES) == set(TRIALS)
    assert len(RECIPES) >= 8


@pytest.mark.parametrize("name", TRIALS)
def test_a_recipe_names_what_it_touches_and_what_is_forgotten_is_noticed(name: str, tree: Tree) -> None:
    recipe, trial = RECIPES[name], TRIALS[name]
    follow(tree, recipe, trial)
    changed = tree.changed
    assert [path for path in changed if not recipe.covers(path)] == [], "the recipe does not name these"
    touched = {file for path in changed for file in recipe.covers(path)}
    assert [file for file in recipe.files if file not in touched] == [], "the recipe names what is not touched"
    assert trial.forgotten in changed
    tree.restore(trial.forgotten)
    without = tree.run(recipe.commands, trial.tests)
    assert without.returncode in {1, 2}, without.stdout + without.stderr
    said = without.stdout + without.stderr
    assert trial.forgotten in said or trial.forgotten.rpartition("/")[0] + "/" in said, said
