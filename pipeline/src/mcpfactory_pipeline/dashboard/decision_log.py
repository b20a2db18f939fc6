"""Page about the decisions of all servers: person, decision, candidate, reason and time."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Final

from mcpfactory_pipeline.dashboard.facts import Pager, paginate
from mcpfactory_pipeline.plan.policy import normalize_person_name
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.timeline import actor_of

DECISIONS: Final = (
    "approved",
    "rejected",
    "promoted",
    "rolled-back",
    "held",
    "released",
    "waived",
    "retired",
    "revived",
)
_SIZE: Final = 25  # maximum number of decisions per page; with the longest texts, a page stays below 100 kB
_FORMULA: Final = ("=", "+", "-", "@", "\t")  # spreadsheets execute cells that begin with one of these


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """A decision in a history. `about` is a channel, a stage or a rule."""

    at: str
    server: str
    decision: str
    who: str
    about: str
    candidate: str
    version: str
    reason: str


@dataclass(frozen=True, slots=True)
class DecisionLogPage:
    """Decisions of all servers, newest first. `people` are the people who decided."""

    workspace: str
    query: str
    who: str
    what: str
    total: int
    people: tuple[str, ...]
    pager: Pager
    decisions: tuple[RecordedDecision, ...]


def recorded_decisions(histories: Mapping[str, Sequence[Event]]) -> tuple[RecordedDecision, ...]:
    """Return the decisions in the histories, newest first."""
    found = (
        (str(event["id"]), server, event)
        for server, events in histories.items()
        for event in events
        if event["event"] in DECISIONS
    )
    return tuple(_decision(server, event) for _, server, event in sorted(found, key=lambda one: one[:2], reverse=True))


def _decision(server: str, event: Event) -> RecordedDecision:
    about = next((str(event[name]) for name in ("channel", "stage", "rule") if event.get(name)), "")
    candidate, version, reason = (str(event.get(name) or "") for name in ("candidate", "version", "reason"))
    return RecordedDecision(
        str(event["at"]), server, str(event["event"]), actor_of(event), about, candidate, version, reason
    )


def select_decisions(
    decisions: Sequence[RecordedDecision], *, query: str = "", who: str = "", what: str = ""
) -> list[RecordedDecision]:
    """Return the decisions about a server or candidate, of a person, and of one kind."""
    words, person = query.casefold(), normalize_person_name(who)
    people = {name for name in {one.who for one in decisions} if not person or normalize_person_name(name) == person}
    return [
        one
        for one in decisions
        if (words in one.server.casefold() or one.candidate.startswith(query))
        and one.who in people
        and what in {"", one.decision}
    ]


def decision_log_page(
    workspace: str,
    decisions: Sequence[RecordedDecision],
    *,
    query: str = "",
    who: str = "",
    what: str = "",
    page: str = "1",
) -> DecisionLogPage:
    """Return one page of the selected decisions."""
    shown, pager = paginate(select_decisions(decisions, query=query, who=who, what=what), page, _SIZE)
    people = tuple(sorted({one.who for one in decisions}))
    return DecisionLogPage(workspace, query, who, what, len(decisions), people, pager, shown)


def decisions_to_csv(decisions: Iterable[RecordedDecision]) -> str:
    """Return decisions as CSV. Cells that a spreadsheet would execute begin with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(field.name for field in fields(RecordedDecision))
    for one in decisions:
        writer.writerow(f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in astuple(one))
    return text.getvalue()
