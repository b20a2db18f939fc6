"""Eight processes run, approve, promote and roll back on one workspace at once.

Each worker forks a process for every command. What that process says with its exit code is noted: 0 is accepted, 1 refused.
Every command has a reason of its own, so that the history can be held against the notes: what was accepted is in it exactly
once, what was refused is not in it at all, and every event was possible after those before it. A promotion that says that the
channel offers the candidate already leaves no event: then the history must have what made it so, while the command ran. Between reading a history and adding to it each takes a moment, as on a slow disk:
who does not wait for the others is then seen.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.exam.results import Outcome, judged
from benchmarks.trials.command_process import Forked, act
from benchmarks.trials.fake_stages import kept_promises, ledger, make, stage_all
from mcpfactory_pipeline.base.ids import id_creation_time
from mcpfactory_pipeline.build.factory_distributions import cached_runtime_wheel
from mcpfactory_pipeline.state import history
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace

WORKERS = 8
SERVERS = ("a", "b", "c")
Note = Mapping[str, Any]  # of a command, or an event
_DECISIONS = (
    "approve {server} --channel production", "promote {server} --channel production", "reject {server} --channel production",
    "rollback {server} --channel production", "hold {server} --channel production", "hold {server} --channel staging",
    "unhold {server} --channel production", "unhold {server} --channel staging",
)  # fmt: skip
_WEIGHTS = (6, 6, 1, 2, 1, 1, 4, 4)
_RUNS = 0.08  # the share of commands that are runs: they take longest
_NEVER_REFUSED = "reject {server} --channel production"
_RUNNERS: Final = 2  # workers that begin each turn with a run of the server that all crowd at
_MOMENT = 0.2  # seconds at most
_TURN = 4  # seconds in which all crowd at one server
_SLACK: Final = 0.005  # seconds that the moments of ids and of notes may differ: ids have milliseconds


def run(folder: Path, times: int, seed: int) -> Outcome:
    """Eight workers for `times` seconds; the figure says how much was accepted, refused, lost, doubled."""
    space = make(folder / "space", *SERVERS, approvals=1)
    stage_all(space)
    cached_runtime_wheel(space.artifacts)  # which the first promotion would build while the others wait
    workers = [Forked(work, space.root, times, number, seed) for number in range(WORKERS)]
    notes: list[Note] = [json.loads(line) for worker in workers for line in worker.end()[1].splitlines()]
    if (code := Forked(act, space.root, ["run"]).end()[0]) != 0:
        notes.append({"command": "run", "server": "all", "reason": "the last run", "code": code})
    faults = [*_against(space, notes), *kept_promises(space)]
    for fault in faults:
        print(fault)
    commands = Counter((note["command"], {0: "accepted", 1: "refused"}.get(note["code"], "broken")) for note in notes)
    print(", ".join(f"{command} {count} {word}" for (command, word), count in sorted(commands.items())))
    accepted = sum(note["code"] == 0 for note in notes)
    figure = f"{len(notes)} commands of {WORKERS} processes in {times} s, {accepted} accepted; {len(faults)} lost, doubled or broken"
    return judged(figure, good=not faults and accepted > 0)


def _against(space: Workspace, notes: Sequence[Note]) -> Iterator[str]:
    """Holds the notes against the histories, and the histories against what came to its end."""
    histories = {server: Store(space).history(server) for server in SERVERS}
    yield from faults_of(notes, histories)
    ended = Counter(ledger(space))
    recorded = Counter(
        f"{server}:{event['run']}-{event['stage']}"
        for server, events in histories.items()
        for event in events
        if event["event"] == "stage.finished"
    )
    for token in ended.keys() | recorded.keys():
        if (ended[token], recorded[token]) != (1, 1):
            yield f"stage {token} ended {ended[token]} times and is recorded {recorded[token]} times"


def faults_of(notes: Sequence[Note], histories: Mapping[str, Sequence[Note]]) -> Iterator[str]:
    """What the commands said and the histories do not have, or the other way round; and events that could not follow each other.

    A note has `command`, `server`, `reason`, `code`, when it `began` and `ended`, and of a promotion what it printed: `said`.
    """
    decided = Counter(
        event.get("reason")
        for events in histories.values()
        for event in events
        if not event["event"].startswith("stage.")
    )
    for note in notes:
        reason, code, command = note["reason"], note["code"], note["command"]
        if code not in {0, 1}:
            yield f"{command} ({reason}) ended in {code}"
        already = code == 0 and note.get("said", {}).get("already", False)
        if already and not _offered(histories[note["server"]], note):
            yield f"{command} ({reason}) says that {note['said']['candidate']} was offered already, and the history does not"
        if command != "run" and decided[reason] != (code == 0 and not already):
            yield f"{command} ({reason}) ended in {code} and is in the history {decided[reason]} times"
    known = {note["reason"] for note in notes}
    yield from (f"in the history, and nobody's: {reason}" for reason in decided if reason not in known)
    for server, events in histories.items():
        yield from (f"{server}: {fault}" for fault in _impossible(events))


def _offered(events: Sequence[Note], note: Note) -> bool:
    """Whether the channel offered what a promotion says that it did, at some moment between its beginning and its end."""
    said = note["said"]
    moves = [event for event in events if event.get("channel") == said["channel"] and _moves(event)]
    times = [id_creation_time(event["id"]) for event in moves]
    until = [*times[1:], float("inf")]
    return any(
        event["candidate"] == said["candidate"] and start <= note["ended"] + _SLACK and end >= note["began"] - _SLACK
        for event, start, end in zip(moves, times, until, strict=True)
    )


def _moves(event: Note) -> bool:
    """Whether an event brings a candidate into the channel that it names."""
    return event["event"] in {"promoted", "rolled-back"} or (event["event"], event.get("outcome")) == (
        "stage.finished",
        "passed",
    )


def _impossible(events: Sequence[Note]) -> Iterator[str]:
    """Events that nobody who knew those before would have written: the same promotion, hold or release twice."""
    offers: dict[str, str] = {}
    held: set[str] = set()
    runs = [event["run"] for event in events if event["event"].startswith("stage.")]
    changes = [run for before, run in zip(["", *runs], runs, strict=False) if run != before]
    yield from (
        f"the stages of run {run} are among those of another" for run, count in Counter(changes).items() if count > 1
    )
    for event in events:
        kind, channel, reason = event["event"], event.get("channel") or "", event.get("reason")
        if kind == "promoted" and offers.get(channel) == event["candidate"]:
            yield f"promoted ({reason}) although {channel} offered that already"
        if (kind == "held" and channel in held) or (kind == "released" and channel not in held):
            yield f"{kind} ({reason}) although {channel} was {'held' if channel in held else 'not held'}"
        if channel and _moves(event):
            offers[channel] = event["candidate"]
        if kind in {"held", "rolled-back"}:
            held.add(channel)
        if kind == "released":
            held.discard(channel)


def work(root: Path, seconds: float, number: int, seed: int) -> int:
    """One worker: commands until the time is over, a note about each on stdout."""
    choose = random.Random(f"{seed}.{number}")
    _hesitate(choose)
    os.environ["MCPFACTORY_ACTOR"] = f"worker-{number}"
    until, count, turn = time.monotonic() + seconds, 0, 0
    while time.monotonic() < until:
        count += 1
        turn, before, began = int(time.monotonic()) // _TURN, turn, time.time()
        reason, server = f"{number}.{count}", SERVERS[turn % len(SERVERS) if before else 0]
        if number < _RUNNERS if turn != before else choose.random() < _RUNS:
            (root / "servers" / server / "source.txt").write_text(f"{server} {reason}")
            command, (code, out, _) = "run", Forked(act, root, ["run", server, "--force"]).end()
        else:
            # Each turn begins with what nobody is refused, so that all of them write at once.
            decision = choose.choices(_DECISIONS, _WEIGHTS)[0] if turn == before else _NEVER_REFUSED
            words = decision.format(server=server).split()
            command, (code, out, _) = words[0], Forked(act, root, [*words, "--reason", reason, "--json"]).end()
        note = {
            "command": command,
            "server": server,
            "reason": reason,
            "code": code,
            "began": began,
            "ended": time.time(),
        }
        said = {"said": json.loads(out)} if command == "promote" and code == 0 else {}
        print(json.dumps({**note, **said}), flush=True)
    return 0


def _hesitate(choose: random.Random) -> None:
    """Lets the commands of this worker take a moment between reading a history and what they do with it."""
    read = history.read

    def slowly(file: Path, where: str) -> list[Event]:
        events = read(file, where)
        time.sleep(choose.random() * _MOMENT)
        return events

    history.read = slowly
