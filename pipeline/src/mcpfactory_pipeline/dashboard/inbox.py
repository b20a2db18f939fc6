"""The inbox: what waits, for whom, since when, and the command that comes next. Pure: facts in, view out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from mcpfactory_pipeline.base.ids import parse_time
from mcpfactory_pipeline.base.text import format_duration
from mcpfactory_pipeline.dashboard.facts import WorkspaceFacts
from mcpfactory_pipeline.dashboard.values import Pager, paged
from mcpfactory_pipeline.views.inbox import KINDS, InboxItem, in_order, next_commands, problem_item

__all__ = ["WHOM", "InboxEntry", "InboxPage", "KindCount", "inbox"]

_SIZE: Final = 60  # items of a page

_AUTHORS: Final = "authors of the server"
_OPERATORS: Final = "operators of the workspace"
# For whom a thing waits, where no policy names people.
WHOM: Final = {
    "problem": _OPERATORS,
    "failed": _AUTHORS,
    "errored": _OPERATORS,
    "interrupted": _OPERATORS,
    "inconclusive": _OPERATORS,
    "publish": _OPERATORS,
    "gate": _AUTHORS,
    "approval": "anyone who may approve",
    "ready": _OPERATORS,
    "hold": "whoever holds it",
    "waiver": _AUTHORS,
    "drift": _AUTHORS,
    "never": _OPERATORS,
    "stale": _OPERATORS,
}
_ICONS: Final = {
    "problem": "alert",
    "failed": "cross",
    "errored": "alert",
    "interrupted": "pause",
    "inconclusive": "question",
} | {
    "publish": "pause",
    "gate": "lock",
    "approval": "hand",
    "ready": "play",
    "hold": "lock",
    "waiver": "alert",
    "drift": "redo",
    "never": "dash",
    "stale": "redo",
}
_BAD: Final = {"problem", "failed", "errored"}
_GOOD: Final = {"ready", "approval"}


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """One thing that waits. `waited` is since when, in words, "" where that is not known; `seconds` the same as a number."""

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


@dataclass(frozen=True, slots=True)
class KindCount:
    """How many things of a kind wait."""

    kind: str
    number: int


@dataclass(frozen=True, slots=True)
class InboxPage:
    """The inbox: the most blocking first, then the oldest. `next` are the commands that most likely come next."""

    workspace: str
    servers: int
    counts: tuple[KindCount, ...]
    total: int
    query: str
    kind: str
    next: tuple[str, ...]
    pager: Pager
    items: tuple[InboxEntry, ...]


def inbox(facts: WorkspaceFacts, *, query: str = "", kind: str = "", page: str = "1") -> InboxPage:
    """Return the inbox of a workspace. `query` keeps servers whose name contains it, `kind` things of that kind."""
    kind = kind if kind in KINDS else ""
    items = in_order([*(item for server in facts.servers for item in server.items), *facts.gone])
    items += [
        problem_item(server.name, "files", server.row["problem"]["message"], server.row["problem"]["hint"])
        for server in facts.servers
        if server.row.get("problem") and not server.items
    ]
    numbers = Counter(item.kind for item in items)
    kept = [item for item in items if query.casefold() in item.server.casefold() and kind in {"", item.kind}]
    shown, pager = paged(in_order(kept), page, _SIZE)
    approvers = {channel.name: ", ".join(channel.approvers) for channel in facts.channels}
    return InboxPage(
        workspace=facts.name,
        servers=len(facts.servers),
        counts=tuple(KindCount(name, numbers[name]) for name in KINDS if numbers[name]),
        total=len(items),
        query=query,
        kind=kind,
        next=tuple(next_commands(items)),
        pager=pager,
        items=tuple(_waiting(item, approvers, facts.now) for item in shown),
    )


def _waiting(item: InboxItem, approvers: dict[str, str], now: datetime | None) -> InboxEntry:
    seconds = max(0.0, (now - parse_time(item.since)).total_seconds()) if item.since and now else None
    named = approvers.get(item.about, "") if item.kind == "approval" else ""
    return InboxEntry(
        kind=item.kind,
        icon=_ICONS[item.kind],
        tone="bad" if item.kind in _BAD else "good" if item.kind in _GOOD else "warn",
        server=item.server,
        about=item.about,
        message=item.message,
        whom=named or WHOM[item.kind],
        since=item.since,
        waited=format_duration(seconds) if seconds is not None else "",
        seconds=seconds,
        command=item.command,
    )
