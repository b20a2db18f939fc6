"""State of a server, computed from the events in its history.

Effects of the events (docs/reference/state.md):

- `stage.started` has no effect. Only old histories contain this event.
- `stage.finished` replaces the stage's record. `stage.finished` may also have `built`, `channel` or `candidate`. With
  `built`, the event's candidate becomes the newest candidate. With `channel`, the channel offers the event's candidate.
  With only `candidate`, the event is a check of this candidate.
- `stage.interrupted` replaces the stage's record, because the previous record no longer matches the files on disk.
- `promoted` changes the candidate of a channel.
- `rolled-back` changes the candidate of a channel, and holds the channel.
- `held` sets a hold, and `released` lifts it.
- `approved` removes the rejections of the candidate, and `rejected` removes the approvals. With `stage`, a decision is
  about the content that the approval stage showed. A rejection with `restart` marks the named stage to run again.
- `retired` removes the server from one channel and holds the channel, or removes it from all channels. If `gone` is
  set, the server's folder was also removed. If `kept` is set, the channels keep their offers.
- `revived` reverts a retirement.
- `renamed` starts the history of a renamed server, and also reverts a retirement.
- `compacted` replaces events that the state does not depend on (compaction.py). `numbers` has candidates' numbers.
- `publish.started` starts a publication to a target.
- `published` ends a publication and records the release.

If a candidate is built again, its number, checks and decisions are kept. The state keeps the newest ten candidates,
candidates that a channel offers or recently offered, and published candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.hashing import canonical_json, hash_named_texts, shorten_hash
from mcpfactory_pipeline.state.event_schema import COMPACTED, STAGE_ENDS, STAGE_START, UPGRADE, Event, Step

SCHEMA: Final = 2  # of `to_json`: the content of state files before view.py, and of snapshots
_KEPT: Final = 10
_OFFERED_BEFORE: Final = 5  # number of earlier candidates per channel that are kept for rollbacks


@dataclass(frozen=True, slots=True)
class StageRecord:
    """Last run of a stage.

    Attributes:
        inputs: input of the stage → version or short hash (`shorten_hash`).
        artifacts: path of a report that an approval stage shows → hash. Old events have all logs and reports.
        manifest: hash of the manifest, which has all logs and reports.
    """

    outcome: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    candidate: str | None = None
    message: str = ""
    summary: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)
    manifest: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A build result.

    Attributes:
        number: position in the order of builds.
        files: file name → hash (`sha256:…`).
        checks: results of the stages that checked these files.
        facts: facts about the sources, such as coverage and tokens.
        channels: channels that have ever offered the candidate.
        approvals: channel → person → reason.
        rejections: channel → person → reason.
    """

    version: str
    number: int
    files: Mapping[str, str]
    inputs: Mapping[str, str] = field(default_factory=dict)
    checks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    channels: tuple[str, ...] = ()
    approvals: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    rejections: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def summary(self, stage: str) -> Mapping[str, Any]:
        """Return the summary of a stage's check. If the stage did not run, the summary is empty."""
        found: Mapping[str, Any] = self.checks.get(stage, {}).get("summary", {})
        return found


@dataclass(frozen=True, slots=True)
class Release:
    """A channel's current release of a server. `before` lists the channel's earlier candidates, newest first."""

    candidate: str
    version: str
    before: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Publication:
    """A release at an external target. `digest` and `evidence` are empty until the publication has finished."""

    candidate: str
    version: str
    channel: str
    actor: str
    digest: str = ""
    evidence: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StageDecisions:
    """Decisions about the content that an approval stage shows.

    Attributes:
        shown: part of the content → hash or version.
        candidate: the newest candidate at the time of the decision.
        approvals: person → reason.
        rejections: person → reason.
    """

    shown: Mapping[str, str]
    candidate: str | None = None
    approvals: Mapping[str, str] = field(default_factory=dict)
    rejections: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerState:
    """State of one server.

    Attributes:
        retired: actor and reason of the retirement. `gone` is set if the server's folder was removed.
        publishing: target → release whose publication is in progress or was interrupted.
        decisions: stage → decisions about the stage's latest content.
        sent_back: stage that must run again → the rejection that requires it.
        numbers: candidate → number in `compacted` events, which replaced earlier builds; not in `to_json`.
        timeline: the events that waiting times and blockers depend on (`_timeline`); not in `to_json`.
        last: ID of the newest event; not in `to_json`.
    """

    server: str
    candidate: str | None = None
    stages: Mapping[str, StageRecord] = field(default_factory=dict)
    candidates: Mapping[str, Candidate] = field(default_factory=dict)
    channels: Mapping[str, Release] = field(default_factory=dict)
    holds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    retired: Mapping[str, str] | None = None
    published: Mapping[str, Publication] = field(default_factory=dict)
    publishing: Mapping[str, Publication] = field(default_factory=dict)
    decisions: Mapping[str, StageDecisions] = field(default_factory=dict)
    sent_back: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    numbers: Mapping[str, int] = field(default_factory=dict, compare=False)
    timeline: tuple[Event, ...] = field(default=(), compare=False)
    last: str = field(default="", compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return all facts for a snapshot. Empty tables in `_OPTIONAL` are omitted."""
        found: dict[str, Any] = {"state": SCHEMA}
        for name in _STORED:
            value = getattr(self, name)
            if name in _RECORDS:
                value = {key: {part: getattr(one, part) for part in one.__slots__} for key, one in value.items()}
            if value or name not in _OPTIONAL:
                found[name] = value
        return found

    def offered(self, channel: str | None) -> str:
        """Return the candidate that a channel offers, or ""."""
        release = self.channels.get(channel or "")
        return release.candidate if release else ""


_STORED: Final = tuple(one.name for one in fields(ServerState) if one.compare)
_OPTIONAL: Final = ("published", "publishing", "decisions", "sent_back")
_RECORDS: Final[Mapping[str, Callable[..., Any]]] = {
    "stages": StageRecord,
    "candidates": Candidate,
    "channels": Release,
    "published": Publication,
    "publishing": Publication,
    "decisions": StageDecisions,
}


def fold(server: str, events: Iterable[Event]) -> ServerState:
    """Return the state after all events."""
    events, numbers = list(events), dict[str, int]()
    for event in events:
        numbers |= event["numbers"] if event.get("event") == COMPACTED else {}
    return extend(ServerState(server, numbers=numbers), events)


def extend(state: ServerState, events: Iterable[Event]) -> ServerState:
    """Return the state after further events."""
    events, last = list(events), state.last
    for event in events:
        state, last = apply_event(state, event), str(event.get("id"))
    return replace(state, timeline=_timeline([*state.timeline, *events]), last=last)


# Members of a stage's end that waiting times and blockers depend on.
_TIMED: Final = ("id", "at", "actor", "event", "stage", "outcome", "candidate", "channel", "version")


def _timeline(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the events without starts, compactions and superseded ends of stages, so that the result stays small."""
    kept, last, failing = dict[str, Event](), dict[Step, Event](), dict[object, Event]()
    for event in events:
        if event["event"] not in STAGE_ENDS:
            kept |= {str(event.get("id")): event} if event["event"] not in {STAGE_START, COMPACTED} else {}
            continue
        end = {name: event[name] for name in _TIMED if name in event}
        stage, outcome = end["stage"], end.get("outcome")
        last[stage, outcome] = end
        if "channel" in end:
            kept[str(end.get("id"))] = end
        if outcome == "passed":
            failing.pop(stage, None)
        else:
            failing.setdefault(stage, end)
    kept |= {str(end.get("id")): end for end in (*last.values(), *failing.values())}
    return tuple(kept[key] for key in sorted(kept))


def apply_event(state: ServerState, event: Event) -> ServerState:
    """Return the state after one event, without changes of `timeline` and `last`."""
    kind = event.get("event")
    rule = EVENT_HANDLERS.get(str(kind))
    if rule is None:
        raise StateError(f"history of {state.server}: unknown event {kind!r} ({event.get('id')})", hint=UPGRADE)
    try:
        return rule(state, event)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise StateError(
            f"history of {state.server}: event {event.get('id')} ({kind}) is incomplete: {error!r}",
            hint="restore the line from version control",
        ) from error


def _with_record(state: ServerState, event: Event, record: StageRecord) -> ServerState:
    return replace(state, stages={**state.stages, str(event["stage"]): record})


def finished_record(event: Event) -> StageRecord:
    """Return the record for a `stage.finished` event."""
    return StageRecord(
        outcome=str(event["outcome"]),
        inputs=_inputs(event),
        candidate=event.get("candidate"),
        message=str(event.get("message", "")),
        summary=dict(event.get("summary", {})),
        artifacts=dict(event.get("artifacts", {})),
        manifest=str(event.get("manifest", "")),
    )


def _inputs(event: Event) -> dict[str, str]:
    """Return the inputs of a stage. Old events have whole hashes, and also the candidate."""
    checked = {"candidate": str(event["candidate"])} if "candidate" in event and "built" not in event else {}
    return checked | {name: shorten_hash(value) for name, value in event["inputs"].items()}


def _finished(state: ServerState, event: Event) -> ServerState:
    stage, candidate, record = str(event["stage"]), event.get("candidate"), finished_record(event)
    state = _with_record(state, event, record)
    if stage in state.sent_back:
        state = replace(state, sent_back={name: who for name, who in state.sent_back.items() if name != stage})
    if (built := event.get("built")) is not None:
        return _with_candidate(state, str(candidate), built, record.inputs)
    if (channel := event.get("channel")) is not None:
        return _with_release(state, str(channel), str(candidate), str(event["version"]))
    if candidate in state.candidates:
        return _with_check(state, str(candidate), stage, record)
    return state


def _interrupted(state: ServerState, event: Event) -> ServerState:
    return _with_record(state, event, StageRecord("interrupted", message=str(event.get("message", ""))))


def _promoted(state: ServerState, event: Event) -> ServerState:
    return _with_release(state, str(event["channel"]), str(event["candidate"]), str(event["version"]))


def _held(state: ServerState, event: Event) -> ServerState:
    return replace(state, holds={**state.holds, str(event["channel"]): _who(event)})


def _released(state: ServerState, event: Event) -> ServerState:
    channel = str(event["channel"])
    return replace(state, holds={name: hold for name, hold in state.holds.items() if name != channel})


def _decided(state: ServerState, event: Event, kind: str, against: str) -> ServerState:
    if "stage" in event:
        return _stage_decided(state, event, kind)
    name, channel, who = str(event["candidate"]), str(event["channel"]), _who(event)
    known = state.candidates.get(name)
    if known is None:  # another branch may have decided about an old candidate that the state no longer keeps
        return state
    before: Mapping[str, Mapping[str, str]] = getattr(known, kind)
    lifted = {other: said for other, said in getattr(known, against).items() if other != channel}
    said = {**before, channel: {**before.get(channel, {}), who["actor"]: who["reason"]}}
    changes: dict[str, Any] = {kind: said, against: lifted}
    return replace(state, candidates={**state.candidates, name: replace(known, **changes)})


def _stage_decided(state: ServerState, event: Event, kind: str) -> ServerState:
    stage, who = str(event["stage"]), _who(event)
    shown = {str(part): str(value) for part, value in event["shown"].items()}
    known = state.decisions.get(stage)
    before = dict(getattr(known, kind)) if known and dict(known.shown) == shown else {}
    said: dict[str, Any] = {kind: {**before, who["actor"]: who["reason"]}}
    made = StageDecisions(shown, event.get("candidate"), **said)
    state = replace(state, decisions={**state.decisions, stage: made})
    if kind == "rejections" and (restart := event.get("restart")) is not None:
        state = replace(state, sent_back={**state.sent_back, str(restart): {**who, "stage": stage}})
    return state


def _retired(state: ServerState, event: Event) -> ServerState:
    if (channel := event.get("channel")) is None:
        gone = {"gone": str(event["gone"])} if "gone" in event else {}
        channels = state.channels if event.get("kept") else {}
        return _pruned(replace(state, channels=channels, retired={**_who(event), **gone}))
    left = {name: release for name, release in state.channels.items() if name != channel}
    return _pruned(_held(replace(state, channels=left), event))


def _publishing(state: ServerState, event: Event) -> ServerState:
    return replace(state, publishing={**state.publishing, str(event["target"]): _publication(event)})


def _published(state: ServerState, event: Event) -> ServerState:
    target = str(event["target"])
    under_way = {name: known for name, known in state.publishing.items() if name != target}
    published = {**state.published, target: _publication(event)}
    return _pruned(replace(state, published=published, publishing=under_way))


def _publication(event: Event) -> Publication:
    return Publication(
        candidate=str(event["candidate"]),
        version=str(event["version"]),
        channel=str(event["channel"]),
        actor=str(event["actor"]),
        digest=str(event.get("digest", "")),
        evidence=dict(event.get("evidence", {})),
    )


def _who(event: Event) -> dict[str, str]:
    return {"actor": str(event["actor"]), "reason": str(event.get("reason", ""))}


EVENT_HANDLERS: Final[Mapping[str, Callable[[ServerState, Event], ServerState]]] = {
    "stage.started": lambda state, _: state,
    "stage.finished": _finished,
    "stage.interrupted": _interrupted,
    "promoted": _promoted,
    "approved": lambda state, event: _decided(state, event, "approvals", "rejections"),
    "rejected": lambda state, event: _decided(state, event, "rejections", "approvals"),
    "rolled-back": lambda state, event: _held(_promoted(state, event), event),
    "held": _held,
    "released": _released,
    "retired": _retired,
    "revived": lambda state, _: replace(state, retired=None),
    "renamed": lambda state, _: replace(state, retired=None),
    "waived": lambda state, _: state,  # waivers are stored in waivers.toml
    COMPACTED: lambda state, _: state,
    "publish.started": _publishing,
    "published": _published,
}


def _with_candidate(state: ServerState, name: str, built: Mapping[str, Any], inputs: Mapping[str, str]) -> ServerState:
    known = state.candidates.get(name)
    if known is None:
        last = max((candidate.number for candidate in state.candidates.values()), default=0)
        number = max(1 + last, state.numbers.get(name, 0))
        known = Candidate(str(built["version"]), number, dict(built["files"]))
    made = replace(known, inputs=dict(inputs), facts=dict(built.get("facts", {})))
    candidates = {**state.candidates, name: made}
    return _pruned(replace(state, candidate=name, candidates=candidates))


def _with_check(state: ServerState, name: str, stage: str, record: StageRecord) -> ServerState:
    fingerprint = hash_named_texts(record.inputs)
    check = {"outcome": record.outcome, "fingerprint": fingerprint, "summary": dict(record.summary)}
    known = state.candidates[name]
    checked = replace(known, checks={**known.checks, stage: check})
    return replace(state, candidates={**state.candidates, name: checked})


def _with_release(state: ServerState, channel: str, candidate: str, version: str) -> ServerState:
    old = state.channels.get(channel, Release(candidate, version))
    before = tuple(name for name in dict.fromkeys((old.candidate, *old.before)) if name != candidate)[:_OFFERED_BEFORE]
    channels = {**state.channels, channel: Release(candidate, version, before)}
    candidates = dict(state.candidates)
    if (known := candidates.get(candidate)) is not None:
        candidates[candidate] = replace(known, channels=tuple(sorted({*known.channels, channel})))
    return _pruned(replace(state, channels=channels, candidates=candidates))


def candidates_to_keep(state: ServerState, keep: int) -> set[str]:
    """Return the `keep` newest candidates, the current candidate, and all released or published candidates."""
    newest = sorted(state.candidates, key=lambda name: state.candidates[name].number)[-keep:]
    offered = (name for release in state.channels.values() for name in (release.candidate, *release.before))
    published = (known.candidate for known in (*state.published.values(), *state.publishing.values()))
    return {name for name in (*newest, state.candidate, *offered, *published) if name}


def _pruned(state: ServerState) -> ServerState:
    kept = candidates_to_keep(state, _KEPT)
    left = {name: candidate for name, candidate in state.candidates.items() if name in kept}
    return state if len(left) == len(state.candidates) else replace(state, candidates=left)


def state_to_text(state: ServerState) -> str:
    """Return the canonical text of all facts, which was the state file of schema 2."""
    return canonical_json(state.to_json()) + "\n"


def repair_hint(where: str) -> str:
    """Return a hint: the command that shows and repairs an error in a server's file."""
    name = where.rpartition("/")[2].rpartition(".")[0]
    return f"mcpfactory pipeline verify --repair {name} shows the difference and writes what the history says"


def state_from_json(content: Mapping[str, Any]) -> ServerState:
    """Return the state that `ServerState.to_json` described.

    Raises:
        KeyError: a field is missing.
        TypeError: a field has another type.
    """
    found = {name: content[name] for name in _STORED if name in content or name not in _OPTIONAL}
    for name, record in _RECORDS.items():
        found[name] = {key: record(**_tuples(one)) for key, one in content.get(name, {}).items()}
    return ServerState(**found)


def _tuples(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
