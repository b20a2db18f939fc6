"""Measure a tree: the figures of its modules, its recipes, and the files that one operation and one call lead through."""

from __future__ import annotations

import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.codebase import call_trace
from benchmarks.codebase.figures import Figures, figures
from benchmarks.codebase.modules import read_tree
from benchmarks.codebase.recipes import read_recipes

ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Measured:
    """Everything that is measured of a tree.

    Attributes:
        name: which tree: a commit, or "here".
        figures: what its modules say.
        recipes: for each recipe of CONTRIBUTING.md how many files it touches.
        ways: for an operation and a call, how many files each leads through, and how many calls lead back.
    """

    name: str
    figures: Figures
    recipes: dict[str, int]
    ways: dict[str, int]


def measure(root: Path, name: str) -> Measured:
    """Measure the tree below a folder that has the layout of this repository."""
    recipes = {recipe.name.lower(): len(recipe.files) for recipe in read_recipes(root).values()}
    return Measured(name, figures(read_tree(root)), recipes, _ways(root))


@contextmanager
def commit_tree(commit: str) -> Iterator[Path]:
    """Extract a commit of this repository into a temporary folder.

    Raises:
        SystemExit: when there is no such commit.
    """
    with tempfile.TemporaryDirectory(prefix="mcpfactory-house-") as folder:
        archive = Path(folder, "tree.zip")
        done = subprocess.run(
            ["git", "archive", "--format=zip", f"--output={archive}", "--end-of-options", commit],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"error: no tree of {commit}: {done.stderr.strip()}\nhint: git log --oneline")
        root = Path(folder, "tree")
        # A zip: how a tar is unpacked safely differs between releases of Python 3.11.
        with zipfile.ZipFile(archive) as files:
            files.extractall(root)
        yield root


def _ways(root: Path) -> dict[str, int]:
    """Trace the tree's own code; what the tracer cannot reach in that tree is left out."""
    found = {}
    for subject in call_trace.SUBJECTS:
        with suppress(RuntimeError):
            traced = call_trace.trace(subject, root)
            found[f"one {subject}"] = len(traced.files)
            found[f"one {subject}: calls against their order"] = traced.back
    return found
