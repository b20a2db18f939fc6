"""Processes that are killed (-9) at random moments, and continued.

Half of the kills come after a random time, half before a random file operation: so the few moments in which files change are
met as often as the long ones in which nothing does. What no kill shows, for the system still has what a dead process wrote: that an
event is on disk before anybody is told, and a state before it takes its place; there the calls are looked at.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

from benchmarks.exam.results import Outcome, judged
from benchmarks.trials.command_process import Forked, carry_out
from benchmarks.trials.fake_stages import kept_promises, make, stage_all, violated_invariants
from benchmarks.trials.mutants import has_mutant
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace

SERVERS = ("a", "b")
_LIMIT = 300  # seconds for a command that nobody kills
# What is killed, and how often; {server} is one of the two. A retirement and a hold are lifted again after the trial.
_COMMANDS: dict[str, int] = {
    "run --force": 10,
    "promote {server} --channel production": 2,
    "approve {server} --channel production": 1,
    "reject {server} --channel production --reason bad": 1,
    "rollback {server} --channel production --reason bad": 2,
    "rollback {server} --channel staging --reason bad": 1,
    "hold {server} --channel staging --reason audit": 1,
    "retire {server} --reason old": 1,
    "retire {server} --channel production --reason old": 1,
    "verify --repair": 1,
    "restore": 1,
}


def run(folder: Path, times: int, seed: int) -> Outcome:
    """Kills `times` processes; the figure says how many were under way, and how many promises were broken."""
    trial = _Trial(make(folder / "space", *SERVERS), random.Random(seed))
    trial.begin()
    faults = [*trial.not_on_disk(), *trial.torn_line()]
    for fault in faults:
        print(fault, flush=True)
    for number in range(1, times + 1):
        if faults and has_mutant():
            break  # it is noticed, and more would say nothing new
        found = trial.once()
        faults += [f"kill {number}: {fault}" for fault in found]
        for fault in found:
            print(f"kill {number} ({trial.told}): {fault}", flush=True)
        if number % 20 == 0:
            print(f"{number} kills, {trial.cut} of running processes, {len(faults)} faults", flush=True)
    print(", ".join(f"{what} {count}" for what, count in sorted(trial.met.items())))
    events = sum(len(Store(trial.space).history(name)) for name in SERVERS)
    figure = f"{times} killed, {trial.cut} under way; {events} events in history; {len(faults)} broken promises"
    return judged(figure, good=not faults and trial.cut > times / 3)


class _Trial:
    def __init__(self, space: Workspace, choose: random.Random) -> None:
        self.space, self.choose = space, choose
        self.cut, self.told, self.met = 0, "", Counter[str]()
        self._operations: dict[str, int] = {}
        self._halves: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self._edits = 0

    def begin(self) -> None:
        """Everything is in production, in two versions."""
        for run in (lambda: stage_all(self.space), lambda: self._finish("run")):
            for name in SERVERS:
                self._edit(name)
            assert not run()
            for name in SERVERS:
                assert self._finish(f"promote {name} --channel production") == 0

    def not_on_disk(self) -> list[str]:
        """What was not synced before somebody relied on it, in one command that is not killed."""
        trace, place = self.space.root / "trace.txt", self.space.pipeline.resolve()
        os.environ["TRIAL_TRACE"] = str(trace)
        assert self._finish("hold a --channel staging --reason audit") == 0
        del os.environ["TRIAL_TRACE"]
        done = trace.read_text().splitlines()
        trace.unlink()
        self._lift()
        event, moved, folder = f"sync {place}/history/a.jsonl", f"rename {place}/state/a.json", f"sync {place}/state"
        at = done.index(moved) if moved in done else len(done)
        before, after = done[:at], done[at:]
        wanted = {
            "the state takes no place of its own": moved in done,
            "the event is not on disk before the state moves": event in before,
            "the state is not on disk before it moves": any(f"{place}/state/.a.json." in line for line in before),
            "that the state moved is not on disk": folder in after,
        }
        return [f"{fault}: {done}" for fault, kept in wanted.items() if not kept]

    def torn_line(self) -> list[str]:
        """What does not hold after the next command, where a writer died in the middle of an event."""
        store = Store(self.space)
        file, before = self.space.pipeline / "history" / "a.jsonl", store.history("a")
        whole = file.read_bytes()
        last = whole.splitlines()[-1]
        file.write_bytes(whole + last[: len(last) // 2])
        code = self._finish("hold a --channel staging --reason audit")
        found = [f"after a torn line, hold ended in {code}"] if code else []
        found += [f"after a torn line, {fault}" for fault in kept_promises(self.space)]
        kept = file.read_bytes()
        if not kept.startswith(whole) or kept[len(whole) :].count(b"\n") != 1 or not kept.endswith(b"\n"):
            found.append("after a torn line, the history is not the whole lines and the new event")
        if not found and len(store.history("a")) != len(before) + 1:
            found.append("after a torn line, the new event is not in the history")
        if found:
            file.write_bytes(whole)  # the kills begin on sound ground
            self._finish("verify --repair")
        self._lift()
        return found

    def once(self) -> list[str]:
        """One command is killed and continued; gives the promises that were broken."""
        template = self.choose.choices(list(_COMMANDS), list(_COMMANDS.values()))[0]
        command = template.format(server=self.choose.choice(SERVERS))
        self._prepare(template)
        died = self._kill(command)
        self.met[f"{template.split()[0]} {'killed' if died else 'ended'}"] += 1
        found = (
            list(violated_invariants(self.space)) if not template.startswith("verify") else []
        )  # there the trial itself did harm
        for again in (command, "run") if template != "run --force" else ("run",):
            if (code := self._finish(again)) not in {0, 1}:
                found.append(f"{again}, when continued, ended in {code}")
        found += kept_promises(self.space)
        self._lift()
        return found

    def _prepare(self, template: str) -> None:
        if self.choose.random() < 0.5:
            self._edit(self.choose.choice(SERVERS))
        if template.startswith("verify"):
            Store(self.space).state_file(self.choose.choice(SERVERS)).write_text("<<<<<<<\n")
        if template.startswith("restore"):
            for page in (self.space.pipeline / "channels").glob("*/simple/*/index.html"):
                page.unlink()
        if template.startswith("promote"):
            self._finish("run")

    def _edit(self, server: str) -> None:
        self._edits += 1
        (self.space.root / "servers" / server / "source.txt").write_text(f"{server} {self._edits}")

    def _kill(self, command: str) -> bool:
        by_time = self.choose.random() < 0.5
        most = self._operations.get(command.split(maxsplit=1)[0], 20)
        halves = self._halves.get(command.split(maxsplit=1)[0], [])
        number = (
            0
            if by_time
            else self.choose.choice([self.choose.randint(1, most), *self.choose.sample(halves, min(1, len(halves)))])
        )
        moment = self.choose.uniform(0.05, self._seconds.get(command.split(maxsplit=1)[0], 1.5)) if by_time else _LIMIT
        self.told = f"{command}, " + (
            f"after {moment:.3f} s" if by_time else f"before file operation {number} of {most}"
        )
        started = Forked(carry_out, self.space.root, command.split(), number)
        started.process.join(moment)
        started.process.kill()
        died = started.end()[0] == -signal.SIGKILL
        self.cut += died
        return died

    def _finish(self, command: str) -> int:
        """Runs a command to its end; learns how long it takes."""
        started = time.monotonic()
        code, _, err = Forked(carry_out, self.space.root, command.split(), 0).end()
        word = command.split(maxsplit=1)[0]
        if code == 0:
            self._seconds[word] = time.monotonic() - started
            count, *halves = map(int, err.splitlines()[-1].split()[1:])
            self._operations[word], self._halves[word] = max(count, 5), halves
        return code

    def _lift(self) -> None:
        for name in SERVERS:
            state = Store(self.space).state(name)
            if state.retired:
                self._finish(f"revive {name}")
            for channel in state.holds:
                self._finish(f"unhold {name} --channel {channel}")
