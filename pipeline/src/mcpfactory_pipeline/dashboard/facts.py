"""Facts for the dashboard's pages, and the display of each status."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from pydantic import PlainSerializer, TypeAdapter, WithJsonSchema

from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.views.graph import idle_stage_status
from mcpfactory_pipeline.views.graph_svg import SIGNS
from mcpfactory_pipeline.workspace.policy import ChannelPolicy

if TYPE_CHECKING:
    from mcpfactory_pipeline.views.inbox import InboxItem


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Facts of one server for pages about many servers."""

    workspace: str
    name: str
    row: Mapping[str, Any]  # a row of `mcpfactory_pipeline.views.status`
    template: str = ""
    source: str = ""
    tools: int | None = None
    tokens: int | None = None
    items: tuple[InboxItem, ...] = ()  # pending items
    owners: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()  # failed stages whose log is on this machine
    # Channel → people who approved its next candidate.
    approved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkspaceFacts:
    """Facts of the workspace. `gone` has the pending items of servers that no longer exist."""

    name: str
    servers: tuple[ServerFacts, ...]
    channels: tuple[ChannelPolicy, ...] = ()
    now: datetime | None = None
    gone: tuple[InboxItem, ...] = ()
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerDetail:
    """All facts of one server."""

    facts: ServerFacts
    channels: tuple[ChannelPolicy, ...] = ()
    stages: tuple[Stage, ...] = ()
    state: ServerState = field(default_factory=lambda: ServerState(""))
    history: Sequence[Event] = ()
    # Content of .mcpfactory/report.json: tools, skipped operations, environment variables.
    report: Mapping[str, Any] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)  # manifest.json, the source of `tools/list` responses
    validation: Mapping[str, Any] = field(default_factory=dict)  # report of the last validation
    contract: Sequence[Mapping[str, Any]] = ()  # tool list of the newest candidate at its validation


@dataclass(frozen=True, slots=True, eq=False)
class RunFacts:
    """Facts of one run.

    Attributes:
        logs: logs of steps that still exist on this machine, by (server, stage).
        going: True if the run's process exists, even before the first event.
        waits: server → the run that blocks this server, or "" if unknown.
        kept: IDs of the events of finished steps whose logs were not overwritten.
        needs: stage → all required stages, without approvals.
    """

    workspace: str
    run: str
    events: Mapping[str, Sequence[Event]]
    running: Mapping[str, Sequence[str]] = field(default_factory=dict)  # server → stages that are running
    logs: Mapping[tuple[str, str], str] = field(default_factory=dict)
    going: bool = False
    now: float = 0.0
    waits: Mapping[str, str] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    needs: Mapping[str, Set[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredCandidate:
    """Data of a candidate on this machine."""

    manifest: Mapping[str, Any] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogFacts:
    """A stage's log, with outcome and run of the last execution."""

    workspace: str
    server: str
    stage: str
    file: Path
    outcome: str = ""
    run: str = ""
    going: bool = False


@dataclass(frozen=True, slots=True)
class DisplayedStatus:
    """Display of a status. `icon` is a symbol in templates/icons.svg. `tone` is a class in style.css."""

    key: str
    word: str
    icon: str
    tone: str
    rank: int


_RANKS: Final = {
    "broken": 0, "failed": 1, "errored": 2, "interrupted": 3, "inconclusive": 4, "running": 5, "held": 6, "waiting": 6,
    "stale": 7, "never": 8, "passed": 9, "retired": 10,
}  # fmt: skip
STATUSES: Final = {
    key: DisplayedStatus(key, word, icon, tone, _RANKS[key]) for key in _RANKS for word, tone, icon in [SIGNS[key]]
}

ShownStatus = Annotated[
    DisplayedStatus,
    PlainSerializer(lambda status: status.key, return_type=str),
    WithJsonSchema({"type": "string", "enum": list(STATUSES)}, mode="serialization"),
]
"""A status that is serialized as its key."""


def displayed_stage_status(stage: Mapping[str, Any], *, running: bool = False) -> DisplayedStatus:
    """Return the displayed status of a stage, from a row of `mcpfactory_pipeline.views.status`.

    A passed stage that would run again is stale, or held if a hold applies.
    """
    return STATUSES["running"] if running else outcome_status(idle_stage_status(stage))


def outcome_status(outcome: object) -> DisplayedStatus:
    """Return the status of an outcome. An unknown outcome is inconclusive."""
    return STATUSES.get(str(outcome), STATUSES["inconclusive"])


def overall_status(row: Mapping[str, Any], statuses: Sequence[DisplayedStatus]) -> DisplayedStatus:
    """Return a server's overall status: broken, retired, or the worst status of its stages and holds."""
    if row.get("problem"):
        return STATUSES["broken"]
    if row.get("retired"):
        return STATUSES["retired"]
    held = [STATUSES["held"]] if row.get("holds") else []
    return min((*statuses, *held), key=lambda status: status.rank, default=STATUSES["never"])


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Pager:
    """Page number, number of pages, and number of entries."""

    page: int
    pages: int
    total: int


def paginate(entries: Sequence[_T], wanted: str, size: int) -> tuple[tuple[_T, ...], Pager]:
    """Return the entries of a page and the page number. An invalid number selects the nearest page."""
    pages = max(1, -(-len(entries) // size))
    page = page_number(wanted, pages)
    return tuple(entries[(page - 1) * size : page * size]), Pager(page, pages, len(entries))


def page_number(wanted: str, pages: int) -> int:
    """Return the number of the requested page. An invalid number selects the nearest page."""
    return min(max(int(wanted), 1), pages) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 10 else 1


def shorten(text: str, size: int) -> str:
    """Truncate a text to `size` characters."""
    return text if len(text) <= size else f"{text[:size]}…"


@functools.cache
def view_adapter(view: type[Any]) -> TypeAdapter[Any]:
    """Return the adapter that serializes a view class and provides its JSON Schema."""
    return TypeAdapter(view)


def to_json(view: Any) -> dict[str, Any]:
    """Return a view as JSON-compatible data."""
    data: dict[str, Any] = view_adapter(view.__class__).dump_python(view, mode="json")
    return data


def to_json_text(view: Any) -> bytes:
    """Return a view as indented JSON."""
    return view_adapter(view.__class__).dump_json(view, indent=2, warnings=False) + b"\n"
