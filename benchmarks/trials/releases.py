"""Releases that are killed (-9) at random moments, then continued: one commit, every tag on it, and a clean tree.

The servers only say what their tools are, in a file; git and everything else is real.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from benchmarks.exam.outcome import Outcome, judged
from benchmarks.trials.mutants import apply_mutant
from mcpfactory_pipeline.channels.contract import Contract, source_version
from mcpfactory_pipeline.init import init_workspace
from mcpfactory_pipeline.releases.apply import apply_releases
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

__all__ = ["run"]

_SERVERS = 6
_LONGEST = 0.5  # seconds until it is killed; some come to their end before


def run(folder: Path, times: int, seed: int) -> Outcome:
    """`times` releases; the figure says where they were killed, and how many did not come to what was promised."""
    choose, met, faults = random.Random(seed), Counter[str](), 0
    base = _base(folder / "base")
    for number in range(times):
        root = Path(shutil.copytree(base, folder / f"space-{number}"))
        with subprocess.Popen(_command(root), stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(choose.random() * _LONGEST)
            process.kill()
        while (root / ".git/index.lock").exists():  # the git that it had started goes on for a moment
            time.sleep(0.02)
        met[_where(root)] += 1
        done = subprocess.run(_command(root), capture_output=True, text=True, check=False)
        if fault := _fault(root, done.returncode):
            faults += 1
            print(f"trial {number}: {fault}; {done.stderr[-300:]}")
        shutil.rmtree(root)
    places = ", ".join(f"{count} {where}" for where, count in met.most_common())
    return judged(f"{times} releases killed: {places}; {faults} not as promised", good=not faults)


def _base(root: Path) -> Path:
    """A workspace whose servers were released as 1.0.0 and break their callers since."""
    init_workspace(root)
    for key, value in (("user.name", "trial"), ("user.email", "trial@example.org")):
        _git(root, "config", key, value)
    for name in (f"s{number}" for number in range(_SERVERS)):
        folder = root / "servers" / name
        folder.mkdir()
        (folder / "mcpfactory.toml").write_text(f'[server]\nname = "{name}"\npackage = "p"\ntemplate = "none"\n')
        (folder / "pyproject.toml").write_text(f'[project]\nname = "{name}"\nversion = "1.0.0"\n')
        (folder / "tools.txt").write_text("find\nread\n")
    _commit(root)
    apply_releases(Workspace.find(root), None, _read)
    for folder in (root / "servers").glob("s*"):
        (folder / "tools.txt").write_text("find\n")
        (folder / "changes/gone.removed.md").write_text("No reading any more.\n")
    _commit(root)
    return root


def _read(server: WorkspaceServer) -> Contract:
    names = (server.folder / "tools.txt").read_text().split()
    return Contract(tuple({"name": name, "inputSchema": {"type": "object"}} for name in names), source_version(server))


def _command(root: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.trials.releases", str(root)]


def _where(root: Path) -> str:
    """How far it had come."""
    if _git(root, "log", "-1", "--format=%s") == "work":
        return "while it wrote" if _git(root, "status", "--porcelain") else "before it wrote"
    tags = len(_tags(root))
    return "when done" if tags == _SERVERS else "between tags" if tags else "between commit and tags"


def _fault(root: Path, code: int) -> str:
    """What is not as promised after it was continued; empty when all is."""
    commits = {_git(root, "rev-parse", f"{tag}^{{commit}}") for tag in _tags(root)}
    if code or len(_tags(root)) != _SERVERS:
        return f"exit code {code}, tags {_tags(root)}"
    if commits != {_git(root, "rev-parse", "HEAD")} or _git(root, "rev-list", "--count", "HEAD") != "4":
        return f"the tags are on {commits}"
    return _git(root, "status", "--porcelain")


def _tags(root: Path) -> list[str]:
    return _git(root, "tag", "--list", "*-v2.0.0").split()


def _commit(root: Path) -> None:
    _git(root, "add", "-A")
    _git(root, "commit", "-qm", "work")


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    apply_mutant()
    print("started", flush=True)
    apply_releases(Workspace.find(Path(sys.argv[1])), None, _read)
