"""The candidates of a server as its page shows them: what they are, where they come from, what was found. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_pipeline.dashboard.facts import ShownStatus, outcome_status
from mcpfactory_pipeline.state.schema import Event
from mcpfactory_pipeline.state.timeline import actor_of, approvers_since, rollbacks

_SHOWN: Final = 12  # characters of a hash, where the whole would say no more


@dataclass(frozen=True, slots=True)
class Fact:
    """A named value, formatted as text."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class CheckView:
    """The result of one stage for a candidate."""

    stage: str
    status: ShownStatus
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class DecisionView:
    """A decision about a candidate for a channel: `approved`, `rejected` or `rolled back`.

    `at` is the time of the decision, "" if the history does not have it. An approval given before the candidate was
    rolled back out of the channel no longer counts (`counts`).
    """

    what: str
    channel: str
    who: str
    why: str
    at: str = ""
    counts: bool = True


@dataclass(frozen=True, slots=True)
class CandidateView:
    """One candidate. `made_from` says what went in; `at`, `actor` and `run` when it was built first and by whom, where history knows."""

    id: str
    version: str
    number: int
    current: bool
    at: str
    actor: str
    run: str
    files: tuple[Fact, ...]
    made_from: tuple[Fact, ...]
    facts: tuple[Fact, ...]
    checks: tuple[CheckView, ...]
    channels: tuple[str, ...]
    decisions: tuple[DecisionView, ...]


def candidates_of(state: Mapping[str, Any], history: Iterable[Event]) -> tuple[CandidateView, ...]:
    """Return the candidates that are kept, newest first."""
    offered: dict[str, list[str]] = {}
    for channel, release in state.get("channels", {}).items():
        offered.setdefault(str(release.get("candidate")), []).append(channel)
    history = tuple(history)
    places = {id(event): place for place, event in enumerate(history)}
    decided = {
        (
            str(event.get("event")),
            str(event.get("channel")),
            str(event.get("candidate")),
            str(event.get("actor")),
        ): event
        for event in history
        if event.get("event") in {"approved", "rejected"}
    }
    back = rollbacks(history)
    # The first build event counts: building the same bytes again does not create another candidate.
    built = {str(event.get("candidate")): event for event in reversed(history) if event.get("built")}
    known = sorted(state.get("candidates", {}).items(), key=lambda item: int(item[1].get("number", 0)))
    found = []
    for name, candidate in known:
        made = built.get(name, {})
        found.append(
            CandidateView(
                id=name,
                version=str(candidate.get("version", "")),
                number=int(candidate.get("number", 0)),
                current=name == state.get("candidate"),
                at=str(made.get("at", "")),
                actor=str(made.get("actor", "")),
                run=str(made.get("run", "")),
                files=tuple(
                    Fact(str(file), str(digest)) for file, digest in sorted(candidate.get("files", {}).items())
                ),
                made_from=_provenance(candidate, made),
                facts=facts_of(candidate.get("facts", {})),
                checks=tuple(
                    CheckView(str(stage), outcome_status(check.get("outcome")), facts_of(check.get("summary", {})))
                    for stage, check in candidate.get("checks", {}).items()
                ),
                channels=tuple(offered.get(name, ())),
                decisions=tuple(
                    view
                    for _, view in sorted(
                        _decisions(name, candidate, decided, history, back), key=lambda one: places.get(id(one[0]), -1)
                    )
                ),
            )
        )
    return tuple(reversed(found))


def facts_of(summary: Mapping[str, Any]) -> tuple[Fact, ...]:
    """Return the scalars and lists of a summary as text; nested objects are left to the caller."""
    return tuple(
        Fact(
            str(key).replace("_", " "),
            ", ".join(map(str, value)) or "none" if isinstance(value, list) else plain_figure(value),
        )
        for key, value in summary.items()
        if not isinstance(value, dict)
    )


def plain_figure(value: object) -> str:
    """Return a value formatted for display: yes or no, a number with thousands separators, a shortened hash."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else _short(str(value))


def _provenance(candidate: Mapping[str, Any], made: Mapping[str, Any]) -> tuple[Fact, ...]:
    went_in = {**made.get("made_from", {}), **candidate.get("inputs", {})}
    return tuple(Fact(str(name), _short(str(value))) for name, value in sorted(went_in.items()))


def _short(value: str) -> str:
    return value[: len("sha256:") + _SHOWN] + "…" if value.startswith("sha256:") else value


def _decisions(
    name: str,
    candidate: Mapping[str, Any],
    decided: Mapping[tuple[str, str, str, str], Event],
    history: Sequence[Event],
    back: Mapping[tuple[str, str], Event],
) -> Iterator[tuple[Event, DecisionView]]:
    """Yield the decisions about a candidate, each with its event ({} if the history does not have it)."""
    for what, kept in (("approved", "approvals"), ("rejected", "rejections")):
        for channel, people in candidate.get(kept, {}).items():
            rolled_back = what == "approved" and (channel, name) in back
            since = approvers_since(history, channel, name) if rolled_back else None
            for who, why in people.items():
                event = decided.get((what, str(channel), name, str(who)), {})
                counts = since is None or who in since
                yield event, DecisionView(what, str(channel), str(who), str(why), str(event.get("at", "")), counts)
    for (channel, about), event in back.items():
        if about == name:
            why = str(event.get("reason") or "")
            yield event, DecisionView("rolled back", channel, actor_of(event), why, str(event["at"]))
