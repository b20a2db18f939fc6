"""Rollbacks that automation must leave alone: whatever runs afterwards, the channel offers what it was rolled back to.

In each trial a server gets some candidates, a person rolls a channel back, and then runs, forced runs and `promote --due` follow
in random order, with other sources or the same ones. When the hold is released, the next of them brings the newest candidate.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.exam.outcome import Outcome, judged
from benchmarks.trials.crowd import act_in_child
from benchmarks.trials.ground import kept_promises, make
from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.build.distributions import runtime_wheel
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["run"]

_AUTOMATION = ("run a", "run a --force", "promote --due --channel production", "promote --due --channel staging")
_NEWEST = {"staging": "run a", "production": "promote --due --channel production"}


def run(folder: Path, times: int, seed: int) -> Outcome:
    """`times` rollbacks; the figure says how many commands followed and how many rollbacks they undid."""
    choose, faults, followed = random.Random(seed), list[str](), 0
    space = make(folder / "space", "a")
    runtime_wheel(space.artifacts)
    for number in range(times):
        channel = choose.choice(tuple(_NEWEST))
        for step in range(choose.randint(2, 3)):
            _candidate(space, f"{number}.{step}")
        after = [choose.choice(_AUTOMATION) for _ in range(choose.randint(1, 4))]
        followed += len(after)
        faults += [f"trial {number}, {channel}: {fault}" for fault in _rolled_back(space, channel, after, choose)]
    faults += kept_promises(space)
    for fault in faults:
        print(fault)
    return judged(f"{times} rollbacks, {followed} commands after them; {len(faults)} not as promised", good=not faults)


def _rolled_back(space: Workspace, channel: str, after: list[str], choose: random.Random) -> Iterator[str]:
    release = Store(space).state("a").channels[channel]
    yield from _does(space, f"rollback a --channel {channel} --reason broken")
    back = Store(space).state("a").channels[channel].candidate
    if back != release.before[0]:
        yield f"rolled back to {back}, offered before was {release.before[0]}"
    for command in after:
        if choose.random() < 0.5:
            (space.root / "servers/a/source.txt").write_text(f"{channel} {choose.random()}")
        yield from _does(space, command)
        yield from _offers(space, channel, back, f"after {command}")
    yield from _does(space, f"unhold a --channel {channel}")
    yield from _does(space, "run a")
    yield from _does(space, _NEWEST[channel])
    yield from _offers(space, channel, str(Store(space).state("a").candidate), "after the release")


def _candidate(space: Workspace, source: str) -> None:
    """A new candidate in both channels."""
    (space.root / "servers/a/source.txt").write_text(source)
    assert act_in_child(space.root, ["run", "a"]) == 0
    assert act_in_child(space.root, ["promote", "a", "--channel", "production"]) == 0


def _does(space: Workspace, command: str) -> Iterator[str]:
    if (code := act_in_child(space.root, command.split())) != 0:
        yield f"{command} ended in {code}"


def _offers(space: Workspace, channel: str, candidate: str, when: str) -> Iterator[str]:
    """The state says so, and the bytes behind the link of the index are those."""
    state = Store(space).state("a")
    if state.channels[channel].candidate != candidate:
        yield f"{when} the state says {state.channels[channel].candidate}, expected {candidate}"
    page = space.pipeline / "channels" / channel / "simple" / "a" / "index.html"
    links = re.findall(r'href="([^"#]+)#', page.read_text())
    found = {hash_bytes((page.parent / link).read_bytes()) for link in links}
    if found != set(state.candidates[candidate].files.values()):
        yield f"{when} the index has other bytes than {candidate}"
