"""Inbox of pending items, and batch decisions about several candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.ids import parse_time
from mcpfactory_pipeline.base.text import format_duration, pluralize
from mcpfactory_pipeline.dashboard.actions import Action, ActionPage, action_for_command, normalize_action_values
from mcpfactory_pipeline.dashboard.facts import Pager, WorkspaceFacts, paginate, shorten
from mcpfactory_pipeline.plan.policy import normalize_person_name
from mcpfactory_pipeline.views.inbox import (
    KINDS,
    InboxItem,
    group_by_cause,
    item_cause,
    next_commands,
    sort_inbox_items,
    unreadable_server_item,
)
from mcpfactory_pipeline.views.inbox_notifications import decision_page_channel

_SIZE: Final = 60  # number of items per page

_AUTHORS: Final = "authors of the server"
_OPERATORS: Final = "operators of the workspace"
# Kind of item → icon, color, and the people who must act if the policy names nobody.
_KINDS: Final = {
    "problem": ("alert", "bad", _OPERATORS),
    "failed": ("cross", "bad", _AUTHORS),
    "errored": ("alert", "bad", _OPERATORS),
    "interrupted": ("pause", "warn", _OPERATORS),
    "inconclusive": ("question", "warn", _OPERATORS),
    "publish": ("pause", "warn", _OPERATORS),
    "gate": ("lock", "warn", _AUTHORS),
    "approval": ("hand", "none", "anyone who may approve"),
    "ready": ("play", "none", _OPERATORS),
    "hold": ("lock", "warn", "the person who holds it"),
    "waiver": ("alert", "warn", _AUTHORS),
    "drift": ("redo", "warn", _AUTHORS),
    "never": ("dash", "none", _OPERATORS),
    "stale": ("redo", "warn", _OPERATORS),
}
_TEXT: Final = 200  # maximum number of characters of an item's cause


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """A pending item.

    Attributes:
        decision: channel of the decision page about this item, or "".
        log: stage whose log shows the failure, or "".
    """

    kind: str
    icon: str
    tone: str
    server: str
    about: str
    message: str
    whom: str
    since: str | None
    waited: str
    seconds: float | None
    command: str
    decision: str
    precondition: str
    log: str = ""
    risks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RejectedCandidate:
    """A candidate that was rejected for its next channel and has no pending decision."""

    server: str
    version: str
    channel: str


@dataclass(frozen=True, slots=True)
class KindCount:
    """Number of pending items of one kind."""

    kind: str
    number: int


@dataclass(frozen=True, slots=True)
class InboxGroup:
    """Pending items on one page with the same cause."""

    cause: str
    kind: str
    icon: str
    tone: str
    number: int
    items: tuple[InboxEntry, ...]


@dataclass(frozen=True, slots=True)
class InboxPage:
    """Page of the inbox.

    The most blocking items come first, then the oldest items. Items with the same cause are grouped.

    `waiting` is the number of servers with pending items, and `breaking` the number of items that break callers. `next` are the most likely next commands. `whose` selects
    items that this person can process.
    """

    workspace: str
    servers: int
    waiting: int
    breaking: int
    counts: tuple[KindCount, ...]
    total: int
    query: str
    kind: str
    whose: str
    next: tuple[str, ...]
    pager: Pager
    items: tuple[InboxEntry, ...]
    groups: tuple[InboxGroup, ...]
    rejected: tuple[RejectedCandidate, ...] = ()


def inbox(facts: WorkspaceFacts, *, query: str = "", kind: str = "", whose: str = "", page: str = "1") -> InboxPage:
    """Return the inbox, filtered by server name, kind of item, and responsible person."""
    kind, items = kind if kind in KINDS else "", _items(facts)
    numbers = Counter(item.kind for item in items)
    people = _Whom(facts)
    kept = [item for item in items if query.casefold() in item.server.casefold() and kind in {"", item.kind}]
    kept = [item for item in kept if people.concerns(item, whose)]
    shown, pager = paginate([item for group in group_by_cause(sort_inbox_items(kept)) for item in group], page, _SIZE)
    entries = tuple(_waiting(item, people, facts.now) for item in shown)
    return InboxPage(
        workspace=facts.name,
        servers=len(facts.servers),
        waiting=len({item.server for item in items}),
        breaking=sum("breaking" in item.risks for item in items),
        counts=tuple(KindCount(name, numbers[name]) for name in KINDS if numbers[name]),
        total=len(items),
        query=query,
        kind=kind,
        whose=whose,
        next=tuple(next_commands(kept)),
        pager=pager,
        items=entries,
        groups=tuple(_groups(entries)),
        rejected=tuple(
            RejectedCandidate(server.name, str(known["version"]), channel)
            for server in facts.servers
            for channel, known in server.row.get("rejected", {}).items()
        ),
    )


def _items(facts: WorkspaceFacts) -> list[InboxItem]:
    items = sort_inbox_items([*(item for server in facts.servers for item in server.items), *facts.gone])
    return items + [
        unreadable_server_item(server.name, "files", server.row["problem"]["message"], server.row["problem"]["hint"])
        for server in facts.servers
        if server.row.get("problem") and not server.items
    ]


class _Whom:
    def __init__(self, facts: WorkspaceFacts) -> None:
        self.channels = {channel.name: channel for channel in facts.channels}
        self._servers = {server.name: server for server in facts.servers}

    def names(self, item: InboxItem) -> tuple[str, ...]:
        if item.kind == "approval":
            approvers = self.channels[item.about].approvers if item.about in self.channels else ()
            return tuple(name for name in approvers if not self._has_approved(item, name))
        if item.kind in {"ready", "hold"} and item.about in self.channels and self.channels[item.about].operators:
            return self.channels[item.about].operators
        return self._servers[item.server].owners if item.server in self._servers else ()

    def of(self, item: InboxItem) -> str:
        return ", ".join(self.names(item)) or _KINDS[item.kind][2]

    def log(self, item: InboxItem) -> str:
        server = self._servers.get(item.server)
        return item.about if server and item.about in server.logs else ""

    def concerns(self, item: InboxItem, whose: str) -> bool:
        names = self.names(item)
        return not whose or (
            normalize_person_name(whose) in map(normalize_person_name, names)
            if names
            else not self._has_approved(item, whose)
        )

    def _has_approved(self, item: InboxItem, name: str) -> bool:
        server = self._servers.get(item.server) if item.kind == "approval" else None
        return server is not None and normalize_person_name(name) in map(
            normalize_person_name, server.approved.get(item.about, ())
        )


def _groups(entries: Iterable[InboxEntry]) -> Iterator[InboxGroup]:
    for (_, cause), some in groupby(entries, key=lambda one: (one.kind, item_cause(one.message, one.server))):
        shown = tuple(some)
        yield InboxGroup(shorten(cause, _TEXT), shown[0].kind, shown[0].icon, shown[0].tone, len(shown), shown)


def _waiting(item: InboxItem, people: _Whom, now: datetime | None) -> InboxEntry:
    seconds = max(0.0, (now - parse_time(item.since)).total_seconds()) if item.since and now else None
    icon, tone, _ = _KINDS[item.kind]
    tone = "bad" if "breaking" in item.risks else tone
    return InboxEntry(
        kind=item.kind,
        icon=icon,
        tone=tone,
        server=item.server,
        about=item.about,
        message=item.message,
        whom=people.of(item),
        since=item.since,
        waited=format_duration(seconds) if seconds is not None else "",
        seconds=seconds,
        command=item.command,
        decision=decision_page_channel(item, people.channels),
        precondition=item.precondition,
        log=people.log(item),
        risks=item.risks,
    )


BATCHED: Final = ("approve", "promote", "reject")  # actions for several candidates at once
_MAX: Final = 60  # maximum number of candidates per batch action; a full page of the inbox has as many items
_TOLD: Final = 5  # maximum number of finished actions in a message


@dataclass(frozen=True, slots=True)
class BatchChoice:
    """A candidate for a channel. `precondition` is a token for the facts that the user saw."""

    server: str
    channel: str
    candidate: str
    precondition: str

    @property
    def mark(self) -> str:
        """Return the choice as a form value."""
        return " ".join((self.server, self.channel, self.candidate, self.precondition))

    def values(self, action: Action, reason: str) -> dict[str, str]:
        """Return the values for an action on the server."""
        about = {"channel": self.channel, "candidate": self.candidate, "precondition": self.precondition}
        return normalize_action_values(action, {**about, "reason": reason})


@dataclass(frozen=True, slots=True)
class BatchPage:
    """One action on several servers.

    Attributes:
        items: the checked items. Each permitted item has a ticket.
    """

    workspace: str
    action: str
    title: str
    about: str
    reason: str
    reason_required: bool
    done: tuple[str, ...]
    items: tuple[ActionPage, ...]
    marks: tuple[str, ...]

    @property
    def ready(self) -> tuple[ActionPage, ...]:
        """Return the items that a person can confirm."""
        return tuple(item for item in self.items if item.ready)

    @property
    def noun(self) -> str:
        """Return the number of confirmable candidates as text.

        Without confirmable candidates, return the number of all candidates.
        """
        return pluralize(len(self.ready) or len(self.items), "candidate")

    def mark(self, item: ActionPage) -> str:
        """Return an item as a form value."""
        return _choice({**item.settled, "server": item.server}).mark


def needs_reason(action: Action) -> bool:
    """Return True if an action requires a reason."""
    return any(field.name == "reason" and field.required for field in action.fields)


def batch_page(
    workspace: str,
    action: Action,
    items: Sequence[ActionPage],
    choices: Sequence[BatchChoice] = (),
    *,
    reason: str = "",
    done: Sequence[str] = (),
) -> BatchPage:
    """Return the page for an action on several servers."""
    return BatchPage(
        workspace=workspace,
        action=action.name,
        title=action.title,
        about=action.about,
        reason=reason,
        reason_required=needs_reason(action),
        done=tuple(done),
        items=tuple(items),
        marks=tuple(choice.mark for choice in choices),
    )


def batch_choice_value(item: InboxEntry) -> str:
    """Return an inbox entry's form value for a batch decision. If no batch decision is possible, return ""."""
    action, values = action_for_command(item.command) or ("", {})
    if action not in BATCHED or not values.get("channel"):
        return ""
    return _choice({**values, "server": item.server, "precondition": item.precondition}).mark


def parse_batch_choices(marks: Sequence[str]) -> list[BatchChoice]:
    """Parse the marks of a form."""
    found = []
    for mark in dict.fromkeys(marks):
        parts = mark.split(" ")
        if len(parts) != len(BatchChoice.__slots__) or not (parts[0] and parts[1]):
            raise ConfigError(
                f"{mark[:60]!r} is not a valid candidate",
                hint="send server, channel, candidate and token, separated by spaces",
            )
        found.append(BatchChoice(*parts))
    _require_few(len(found))
    return found


def parse_confirmations(given: Mapping[str, Any]) -> list[tuple[BatchChoice, str]]:
    """Return the confirmed choices with their tickets.

    A form has fields `item-N` and `ticket-N`. A JSON object has the list `items`.
    """
    items = given.get("items")
    if items is None:
        names = [name for name in given if name.startswith("item-")]
        choices = [parse_batch_choices([str(given[name])])[0] for name in names]
        pairs = [(one, str(given.get(f"ticket-{name[5:]}", ""))) for one, name in zip(choices, names, strict=True)]
    elif isinstance(items, list) and all(isinstance(one, dict) and one.get("server") for one in items):
        pairs = [(_choice(one), str(one.get("ticket", ""))) for one in items]
    else:
        raise ConfigError(
            "'items' is not a list of objects with a 'server'",
            hint="copy the values of `settled` from the check response into this request",
        )
    _require_few(len(pairs))
    return pairs


def done_message(done: Sequence[str]) -> str:
    """Return a message about finished actions."""
    more = (f"{len(done) - _TOLD} more",) if len(done) > _TOLD else ()
    return "; ".join((*done[:_TOLD], *more))


def _choice(values: Mapping[str, Any]) -> BatchChoice:
    return BatchChoice(*(str(values.get(name) or "") for name in ("server", "channel", "candidate", "precondition")))


def _require_few(number: int) -> None:
    if not 1 <= number <= _MAX:
        problem = f"{number} are too many for one decision" if number else "nothing is marked"
        raise ConfigError(problem, hint=f"select 1 to {_MAX} items of the inbox")
