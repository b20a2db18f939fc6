"""Where one server stands, as the fold of its history. Pure: no file, no clock.

The rules of the fold (docs/reference/state.md):

- `stage.started` says nothing about the result and changes nothing.
- `stage.finished` replaces the stage's record. With `built` it also makes a candidate, which becomes the server's; with
  `channel` it also moves a channel; otherwise, when it names a candidate, it is a check of that candidate.
- `stage.interrupted` replaces the stage's record: whatever was known before no longer describes what lies on disk.
- `promoted` moves a channel.

A candidate built before keeps its number and its checks. The newest ten are kept, and those that are in a channel.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mcpfactory_pipeline.errors import StateError

__all__ = ["SCHEMA", "Candidate", "Event", "Release", "StageRecord", "State", "apply", "fold", "parse", "to_text"]

SCHEMA = 1
_KEPT = 10
_UPGRADE = "update mcpfactory: a newer version wrote this"

Event = Mapping[str, Any]


@dataclass(frozen=True)
class StageRecord:
    """The last run of one stage: its outcome, what it read, which candidate it was about, and what it found.

    `inputs` maps what the stage reads to a version or to `sha256:…`; `fingerprint` is the hash of all of them;
    `artifacts` maps logs and reports below `pipeline/artifacts/<server>/` to their `sha256:…`.
    """

    outcome: str
    fingerprint: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    candidate: str | None = None
    message: str = ""
    summary: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Candidate:
    """What was built once: its files with their `sha256:…`, what went in, and the checks that were made on these bytes."""

    version: str
    number: int
    files: Mapping[str, str]
    inputs: Mapping[str, str] = field(default_factory=dict)
    checks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Release:
    """What a channel offers of a server."""

    candidate: str
    version: str


@dataclass(frozen=True)
class State:
    """Where one server stands. `candidate` is the one that was built last."""

    server: str
    candidate: str | None = None
    stages: Mapping[str, StageRecord] = field(default_factory=dict)
    candidates: Mapping[str, Candidate] = field(default_factory=dict)
    channels: Mapping[str, Release] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The state as plain data, the shape of the file."""
        return {"state": SCHEMA, **asdict(self)}


def fold(server: str, events: Iterable[Event]) -> State:
    """The state after all events, oldest first. Raises `StateError` on an event that this version does not know."""
    state = State(server)
    for event in events:
        state = apply(state, event)
    return state


def apply(state: State, event: Event) -> State:
    """The state after one more event."""
    kind = event.get("event")
    rule = _RULES.get(str(kind))
    if rule is None:
        raise StateError(f"history of {state.server}: unknown event {kind!r} ({event.get('id')})", hint=_UPGRADE)
    try:
        return rule(state, event)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise StateError(
            f"history of {state.server}: event {event.get('id')} ({kind}) is incomplete: {error!r}",
            hint="restore the line from version control",
        ) from error


def _started(state: State, _event: Event) -> State:
    return state


def _finished(state: State, event: Event) -> State:
    stage, candidate = str(event["stage"]), event.get("candidate")
    record = StageRecord(
        outcome=str(event["outcome"]),
        fingerprint=str(event["fingerprint"]),
        inputs=dict(event["inputs"]),
        candidate=candidate,
        message=str(event.get("message", "")),
        summary=dict(event.get("summary", {})),
        artifacts=dict(event.get("artifacts", {})),
    )
    state = replace(state, stages={**state.stages, stage: record})
    if (built := event.get("built")) is not None:
        return _with_candidate(state, str(candidate), built, record.inputs)
    if (channel := event.get("channel")) is not None:
        return _with_release(state, str(channel), str(candidate), str(event["version"]))
    if candidate in state.candidates:
        return _with_check(state, str(candidate), stage, record)
    return state


def _interrupted(state: State, event: Event) -> State:
    record = StageRecord("interrupted", message=str(event.get("message", "")))
    return replace(state, stages={**state.stages, str(event["stage"]): record})


def _promoted(state: State, event: Event) -> State:
    return _with_release(state, str(event["channel"]), str(event["candidate"]), str(event["version"]))


_RULES = {
    "stage.started": _started,
    "stage.finished": _finished,
    "stage.interrupted": _interrupted,
    "promoted": _promoted,
}


def _with_candidate(state: State, name: str, built: Mapping[str, Any], inputs: Mapping[str, str]) -> State:
    known = state.candidates.get(name)
    if known is None:
        number = 1 + max((candidate.number for candidate in state.candidates.values()), default=0)
        known = Candidate(str(built["version"]), number, dict(built["files"]))
    candidates = {**state.candidates, name: replace(known, inputs=dict(inputs))}
    return _pruned(replace(state, candidate=name, candidates=candidates))


def _with_check(state: State, name: str, stage: str, record: StageRecord) -> State:
    check = {"outcome": record.outcome, "fingerprint": record.fingerprint, "summary": dict(record.summary)}
    known = state.candidates[name]
    checked = replace(known, checks={**known.checks, stage: check})
    return replace(state, candidates={**state.candidates, name: checked})


def _with_release(state: State, channel: str, candidate: str, version: str) -> State:
    return _pruned(replace(state, channels={**state.channels, channel: Release(candidate, version)}))


def _pruned(state: State) -> State:
    newest = sorted(state.candidates, key=lambda name: state.candidates[name].number)[-_KEPT:]
    kept = {*newest, state.candidate, *(release.candidate for release in state.channels.values())}
    return replace(state, candidates={name: c for name, c in state.candidates.items() if name in kept})


def to_text(state: State) -> str:
    """The canonical text: equal states have equal bytes; one fact a line, so that a change reads well and merges well."""
    return json.dumps(state.to_json(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def parse(text: str, where: str) -> State:
    """The state in a file's text; `where` is the path that a `StateError` names."""
    mend = f"delete {where}; the next run derives it from the history again"
    try:
        data = json.loads(text)
        schema = data["state"]
    except (ValueError, TypeError, KeyError) as error:
        what = "holds the marks of a merge conflict" if "\n<<<<<<<" in f"\n{text}" else "is not a state"
        raise StateError(f"{where} {what}: {error!r}", hint=mend) from error
    if schema != SCHEMA:
        newer = isinstance(schema, int) and schema > SCHEMA
        raise StateError(
            f"{where} has state schema {schema!r}; this version reads {SCHEMA}", hint=_UPGRADE if newer else mend
        )
    try:
        return State(
            server=str(data["server"]),
            candidate=data["candidate"],
            stages={name: StageRecord(**record) for name, record in data["stages"].items()},
            candidates={name: Candidate(**candidate) for name, candidate in data["candidates"].items()},
            channels={name: Release(**release) for name, release in data["channels"].items()},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise StateError(f"{where} is not a state: {error!r}", hint=mend) from error
