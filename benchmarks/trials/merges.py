"""Clones of one workspace that worked apart, and merge.

In each trial two clones do different things to different servers, and one of them gets a new one: the merge must have no
conflict, and the states be what the histories say. Then both decide differently about the same server: git must name the
state file and nothing else, both sides stand in it readably, `pipeline verify` says so, and `--repair` settles it.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks.exam.outcome import Outcome, judged
from benchmarks.trials.crowd import act_in_child
from benchmarks.trials.ground import make
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import mend, verify
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["run"]

SERVERS = ("a", "b", "c", "d", "e", "f")
_COMMANDS = (
    "promote {server} --channel production --reason {number}", "hold {server} --channel staging --reason {number}",
    "rollback {server} --channel staging --reason {number}", "retire {server} --reason {number}",
    "retire {server} --channel staging --reason {number}", "run {server}",
)  # fmt: skip


def run(folder: Path, times: int, seed: int) -> Outcome:
    """`times` pairs of clones; the figure says how many conflicts there were where none may be, and the other way round."""
    origin, choose = make(folder / "origin", *SERVERS), random.Random(seed)
    for number in range(2):  # two candidates, so that there is something to go back to
        for server in SERVERS:
            (origin.root / "servers" / server / "source.txt").write_text(f"{server} {number}")
        assert act_in_child(origin.root, ["run"]) == 0
    _git(origin.root, "init", "--quiet", "--initial-branch", "main")
    _commit(origin)
    faults: list[str] = []
    for number in range(times):
        left, right = _clone(origin, folder / "left"), _clone(origin, folder / "right")
        for part in (_apart, _at_odds):
            faults += [f"trial {number}: {fault}" for fault in part(left, right, choose, number)]
        shutil.rmtree(left.root)
        shutil.rmtree(right.root)
    for fault in faults:
        print(fault)
    figure = f"{times} merges of different servers and {times} of the same one; {len(faults)} not as promised"
    return judged(figure, good=not faults)


def _apart(left: Workspace, right: Workspace, choose: random.Random, number: int) -> Iterator[str]:
    """Different servers, in random number."""
    servers = choose.sample(SERVERS, len(SERVERS))
    cut = choose.randint(1, len(SERVERS) - 1)
    for space, mine, new in ((left, servers[:cut], "left"), (right, servers[cut:], "right")):
        for server in mine:
            command = choose.choice(_COMMANDS).format(server=server, number=number)
            (space.root / "servers" / server / "source.txt").write_text(f"{server} {new} {number}")
            if (code := act_in_child(space.root, command.split())) != 0:
                yield f"{command} ended in {code}"
        shutil.copytree(space.root / "servers" / "a", space.root / "servers" / new)
        config = space.root / "servers" / new / "mcpfactory.toml"
        config.write_text(config.read_text().replace('"a"', f'"{new}"'))
        act_in_child(space.root, ["run", new])
        _commit(space)
    merged = _git(left.root, "pull", "--no-rebase", "--quiet", str(right.root), "main")
    if merged.returncode != 0:
        yield f"a conflict between different servers: {merged.stdout}{merged.stderr}"
    yield from (f"after the merge: {entry['message']}" for entry in verify(left))
    _git(right.root, "pull", "--no-rebase", "--quiet", str(left.root), "main")


def _at_odds(left: Workspace, right: Workspace, choose: random.Random, number: int) -> Iterator[str]:
    """The same server, which both clones have in the same state by now."""
    store, where = Store(left), "pipeline/state/{server}.json"
    server = choose.choice([name for name in SERVERS if not store.state(name).retired])
    for space, side in ((left, "left"), (right, "right")):
        words = f"hold {server} --channel production --reason {side}{number}"
        if (code := act_in_child(space.root, words.split())) != 0:
            yield f"{words} ended in {code}"
        _commit(space)
    merged = _git(left.root, "pull", "--no-rebase", "--quiet", str(right.root), "main")
    conflicts = _git(left.root, "diff", "--name-only", "--diff-filter=U").stdout.split()
    if merged.returncode == 0 or conflicts != [where.format(server=server)]:
        yield f"conflicts in {conflicts}, expected in the state of {server} only"
    text = store.state_file(server).read_text()
    shown = text[text.find("<<<<<<<") : text.find(">>>>>>>")]
    if f"left{number}" not in shown or f"right{number}" not in shown:
        yield f"the conflict does not show both sides: {shown}"
    if ["merge conflict" in entry["message"] for entry in verify(left)] != [True]:
        yield f"verify says {verify(left)}"
    if (
        act_in_child(left.root, ["verify"]) != 1
        or act_in_child(left.root, ["unhold", server, "--channel", "production"]) != 5
    ):
        yield "a command went on as if there were no conflict"
    if not all(entry["mended"] for entry in mend(left)) or verify(left):
        yield f"--repair did not settle it: {verify(left)}"
    if store.state(server).holds.get("production", {}).get("reason") != f"right{number}":
        yield "the later word does not count"
    reasons = [event.get("reason") for event in store.history(server)]
    if reasons.count(f"left{number}") != 1 or reasons.count(f"right{number}") != 1:
        yield "an event was lost or doubled"


def _clone(origin: Workspace, folder: Path) -> Workspace:
    _git(origin.root, "clone", "--quiet", str(origin.root), str(folder))
    shutil.copytree(
        origin.artifacts, folder / "pipeline" / "artifacts"
    )  # what is not tracked, as if it had been built here
    return Workspace.find(folder)


def _commit(space: Workspace) -> None:
    _git(space.root, "add", ".")
    done = _git(space.root, "commit", "--quiet", "--allow-empty", "-m", "work")
    assert done.returncode == 0, done.stderr


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    return subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=False)
