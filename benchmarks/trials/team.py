"""Two developers and CI, each in a clone, with real merges of Git.

Each step edits a source and runs the pipeline, or decides, then commits; often it also pulls and pushes. A merge must not
conflict below `pipeline/`, and `verify` must find nothing but notes. At the end, each damage to a merged clone must be found.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from benchmarks.exam.results import Outcome, judged
from benchmarks.trials.fake_stages import FAKE_STAGES, make, stage_all
from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.decisions.integrity import channel_folder_faults, faults
from mcpfactory_pipeline.decisions.promote import promote, rollback
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import refresh_views
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.inprocess_executor import InProcessExecutor

SERVERS: Final = ("a", "b")
PEOPLE: Final = ("ada", "bob", "ci")
_DAMAGES: Final = 20
_PULLS: Final = 0.5  # share of the steps of a developer that end with a pull and a push
_ACTIONS: Final[dict[str, Callable[[Workspace, str], object]]] = {
    "approve": lambda space, server: decision.approve(space, server, "production", stages=FAKE_STAGES),
    "promote": lambda space, server: promote(space, server, "production", stages=FAKE_STAGES),
    "rollback": lambda space, server: rollback(space, server, "production", reason="bad", stages=FAKE_STAGES),
    "hold": lambda space, server: decision.hold(space, server, "staging", reason="audit", stages=FAKE_STAGES),
    "unhold": lambda space, server: decision.unhold(space, server, "staging", stages=FAKE_STAGES),
}


def run(folder: Path, times: int, seed: int) -> Outcome:
    """So many steps; the figure counts merges, conflicts, false alarms of `verify`, and damages that it missed."""
    team, choose = _Team(folder), random.Random(seed)
    for number in range(times):
        team.step(choose, number)
    for who in PEOPLE:
        team.exchange(who)
    missed = [name for name, found in _damaged(folder, choose) if not found]
    for fault in (*team.faults, *(f"verify does not find: {name}" for name in missed)):
        print(fault)
    lines = ", ".join(f"{name} {count}" for name, count in team.changed_lines().items())
    figure = (
        f"{times} steps, {team.merges} merges; {len(team.faults)} conflicts or false alarms; "
        f"{_DAMAGES - len(missed)} of {_DAMAGES} damages found; changed lines: {lines}"
    )
    return judged(figure, good=team.merges > 0 and not team.faults and not missed)


class _Team:
    def __init__(self, folder: Path) -> None:
        self.faults, self.merges = list[str](), 0
        start = make(folder / "start", *SERVERS, approvals=1)
        stage_all(start)
        git(start.root, "init", "--quiet", "--initial-branch", "main")
        git(start.root, "add", ".")
        git(start.root, "commit", "--quiet", "-m", "start")
        git(folder, "clone", "--quiet", "--bare", str(start.root), "origin.git")
        self.clones = {who: _clone(folder, who, start) for who in PEOPLE}

    def step(self, choose: random.Random, number: int) -> None:
        who, server = choose.choice(PEOPLE), choose.choice(SERVERS)
        space = Workspace.find(self.clones[who])
        os.environ["MCPFACTORY_ACTOR"] = who
        if who == "ci":
            self.exchange(who)
            run_pipeline(space, stages=FAKE_STAGES, executor=InProcessExecutor(), jobs=1)
        elif choose.random() < 0.5:
            (space.root / "servers" / server / "source.txt").write_text(f"{server} {number}")
            run_pipeline(space, [server], stages=FAKE_STAGES, executor=InProcessExecutor(), jobs=1)
        else:
            try:
                choose.choice(list(_ACTIONS.values()))(space, server)
            except PipelineError:
                return  # refused, as most rollbacks are
        _commit(space.root)
        if who == "ci" or choose.random() < _PULLS:
            self.exchange(who)

    def exchange(self, who: str) -> None:
        """Pull, verify, push."""
        root = self.clones[who]
        before = git(root, "rev-parse", "HEAD").stdout
        git(root, "pull", "--no-rebase", "--quiet", "origin", "main")
        conflicts = git(root, "diff", "--name-only", "--diff-filter=U").stdout.split()
        self.faults += [f"{who}: conflict in {path}" for path in conflicts if path.startswith("pipeline/")]
        if conflicts:  # both changed a source; that is for people
            git(root, "checkout", "--theirs", "--", "servers")
            git(root, "add", "--all")
            git(root, "commit", "--quiet", "--no-edit")
        if git(root, "rev-parse", "HEAD").stdout != before:
            self.merges += 1
            self.faults += [f"{who}: {words}" for words in _alarms(Workspace.find(root))]
            _commit(root)
        if git(root, "push", "--quiet", "origin", "HEAD:main").returncode:
            self.faults.append(f"{who}: the push was refused")

    def changed_lines(self) -> Counter[str]:
        """Return how many lines the commits of all changed in each folder, without those that merges repeat."""
        changed = Counter[str]()
        log = git(self.clones["ci"], "log", "--min-parents=1", "--max-parents=1", "--format=", "--numstat").stdout
        for added, deleted, path in (line.split("\t") for line in log.splitlines()):
            folder = path.split("/")
            changed["/".join(folder[: 1 + (folder[0] == "pipeline")])] += int(added) + int(deleted)
        return changed


def _alarms(space: Workspace) -> Iterator[str]:
    found = [*faults(space), *channel_folder_faults(space)]
    yield from (f"{wrong['server']}: {wrong['message']}" for wrong in found if wrong.get("level") != "warning")
    refresh_views(space)
    if refresh_views(space):
        yield "a note about a merge is repeated"


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Git as a member of the team."""
    identity = ("-c", "user.name=team", "-c", "user.email=team@example.org")
    return subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=False)


def _commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "step")


def _clone(folder: Path, name: str, start: Workspace) -> Path:
    git(folder, "clone", "--quiet", "-c", f"core.autocrlf={str(name == 'bob').lower()}", "origin.git", name)
    (folder / name / "pipeline/artifacts").symlink_to(start.artifacts)
    (folder / name / ".git/info/exclude").write_text("pipeline/artifacts\n")
    return folder / name


def _damaged(folder: Path, choose: random.Random) -> Iterator[tuple[str, bool]]:
    """Damage copies of CI's clone, and yield whether `verify` exits with 1."""
    sound = folder / "ci"
    if (code := _verify(sound)) != 0:
        yield f"nothing, but the exit code is {code}", False
    for number in range(_DAMAGES):
        (kind, name), damage = list(_DAMAGE.items())[number % len(_DAMAGE)]
        place = folder / "damaged"
        shutil.copytree(sound, place, symlinks=True)
        server = choose.choice(SERVERS)
        path = place / Store(Workspace.find(place)).where(server, kind)
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(damage(lines, choose)))
        yield f"{kind} of {server} {name}", _verify(place) == 1
        shutil.rmtree(place)


def _verify(root: Path) -> int:
    command = [sys.executable, "-m", "mcpfactory", "pipeline", "verify"]
    return subprocess.run(command, cwd=root, capture_output=True, check=False).returncode


def _changed(member: str, value: str) -> Callable[[list[str], random.Random], list[str]]:
    def damage(lines: list[str], choose: random.Random) -> list[str]:
        at = choose.choice([at for at, line in enumerate(lines) if member in json.loads(line)])
        return [*lines[:at], json.dumps({**json.loads(lines[at]), member: value}) + "\n", *lines[at + 1 :]]

    return damage


def _without_one(lines: list[str], choose: random.Random) -> list[str]:
    at = choose.randrange(len(lines))
    return [*lines[:at], *lines[at + 1 :]]


def _cut(lines: list[str], choose: random.Random) -> list[str]:
    at = choose.randrange(len(lines) - 1)
    return [*lines[:at], lines[at][: len(lines[at]) // 2] + "\n", *lines[at + 1 :]]


_DAMAGE: Final[dict[tuple[str, str], Callable[[list[str], random.Random], list[str]]]] = {
    ("history", "with another actor"): _changed("actor", "mallory"),
    ("history", "with another candidate"): _changed("candidate", "f" * 16),
    ("history", "with another outcome"): _changed("outcome", "errored"),
    ("history", "with another message"): _changed("message", "trust me"),
    ("history", "without a line"): _without_one,
    ("history", "with a line cut in the middle"): _cut,
    ("history", "with a marker of a merge"): lambda lines, _: ["<<<<<<< ours\n", *lines],
    ("state", "with another outcome"): lambda lines, _: [line.replace("passed", "trusted") for line in lines],
    ("state", "with another version"): lambda lines, _: [line.replace('"1.0', '"9.0') for line in lines],
    ("state", "with an approval"): lambda lines, _: [
        lines[0],
        '  "approvals": {"production f mallory": "good"},\n',
        *lines[1:],
    ],
}
