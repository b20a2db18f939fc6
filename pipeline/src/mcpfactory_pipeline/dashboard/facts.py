"""Facts for views, and the text and icon of each status."""

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
    """Facts of one server on pages about many servers; missing values are empty."""

    workspace: str
    name: str
    row: Mapping[str, Any]  # a row of `mcpfactory_pipeline.views.status`
    template: str = ""
    source: str = ""
    tools: int | None = None
    tokens: int | None = None
    items: tuple[InboxItem, ...] = ()  # pending items
    owners: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()  # failed stages that have a log on this machine
    # Channel → people who approved its next candidate.
    approved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkspaceFacts:
    """The workspace: name, servers, channels with their policies, stages, and the time of reading.

    Without a clock, the time is None. `gone` are the pending items of servers that no longer exist.
    """

    name: str
    servers: tuple[ServerFacts, ...]
    channels: tuple[ChannelPolicy, ...] = ()
    now: datetime | None = None
    gone: tuple[InboxItem, ...] = ()
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerDetail:
    """All known facts of one server, including facts that only its own pages show."""

    facts: ServerFacts
    channels: tuple[ChannelPolicy, ...] = ()
    stages: tuple[Stage, ...] = ()
    state: ServerState = field(default_factory=lambda: ServerState(""))
    history: Sequence[Event] = ()
    # Content of .mcpfactory/report.json: tools, skipped operations, environment variables.
    report: Mapping[str, Any] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)  # manifest.json, the source of `tools/list` answers
    validation: Mapping[str, Any] = field(default_factory=dict)  # the report of the last validation
    contract: Sequence[Mapping[str, Any]] = ()  # tools that the newest candidate listed when it was validated


@dataclass(frozen=True, slots=True, eq=False)
class RunFacts:
    """The events of one run, by server, and the logs of its steps that are still on this machine, by (server, stage).

    Instances are compared by identity. `going` is True if the run's process exists. A run that is about to start has no
    events. `now` is the time of reading, in seconds as in `id_creation_time`. `waits` maps each awaited server to the
    run that holds this server ("" if unknown). `kept` are the ids of the events of failed steps whose logs have not
    been overwritten. `needs` maps each stage, except approvals, to all stages that it requires, in workspace order.
    """

    workspace: str
    run: str
    events: Mapping[str, Sequence[Event]]
    running: Mapping[str, Sequence[str]] = field(default_factory=dict)  # server → stages that run now
    logs: Mapping[tuple[str, str], str] = field(default_factory=dict)
    going: bool = False
    now: float = 0.0
    waits: Mapping[str, str] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    needs: Mapping[str, Set[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredCandidate:
    """Data of a candidate that is on this machine: manifest, validation report and file contents."""

    manifest: Mapping[str, Any] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogFacts:
    """Path of a stage's log, with the outcome and the run of the stage's last execution.

    `going` is True while the stage runs.
    """

    workspace: str
    server: str
    stage: str
    file: Path
    outcome: str = ""
    run: str = ""
    going: bool = False


@dataclass(frozen=True, slots=True)
class DisplayedStatus:
    """Display of a status: `icon` is a symbol in templates/icons.svg, and `tone` is a class in style.css.

    A status with a lower rank comes first.
    """

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
"""A status in a view; serialized as its key."""


def displayed_stage_status(stage: Mapping[str, Any], *, running: bool = False) -> DisplayedStatus:
    """Return the status of one stage of one server, from a row of `mcpfactory_pipeline.views.status`.

    A passed stage that would run again is stale; if a hold applies, the stage is held. A failed stage keeps the status
    failed.
    """
    return STATUSES["running"] if running else outcome_status(idle_stage_status(stage))


def outcome_status(outcome: object) -> DisplayedStatus:
    """Return the status of an outcome; unknown outcomes are inconclusive."""
    return STATUSES.get(str(outcome), STATUSES["inconclusive"])


def overall_status(row: Mapping[str, Any], statuses: Sequence[DisplayedStatus]) -> DisplayedStatus:
    """Return a server's overall status: broken, retired, or the worst status among its stages and holds."""
    if row.get("problem"):
        return STATUSES["broken"]
    if row.get("retired"):
        return STATUSES["retired"]
    held = [STATUSES["held"]] if row.get("holds") else []
    return min((*statuses, *held), key=lambda status: status.rank, default=STATUSES["never"])


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Pager:
    """A page of a list: its number, the number of pages, and the total number of entries."""

    page: int
    pages: int
    total: int


def paginate(entries: Sequence[_T], wanted: str, size: int) -> tuple[tuple[_T, ...], Pager]:
    """Return the entries of the wanted page, counted from 1; an invalid page selects the nearest valid page."""
    pages = max(1, -(-len(entries) // size))
    page = page_number(wanted, pages)
    return tuple(entries[(page - 1) * size : page * size]), Pager(page, pages, len(entries))


def page_number(wanted: str, pages: int) -> int:
    """Return the number of the requested page, or of the nearest page that exists."""
    return min(max(int(wanted), 1), pages) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 10 else 1


def shorten(text: str, size: int) -> str:
    """Return a text, truncated to `size` characters."""
    return text if len(text) <= size else f"{text[:size]}…"


@functools.cache
def view_adapter(view: type[Any]) -> TypeAdapter[Any]:
    """Return the adapter that serializes views of a class and provides their schema."""
    return TypeAdapter(view)


def to_json(view: Any) -> dict[str, Any]:
    """Return a view as plain data: the fields that the view's page shows, with the key of each status."""
    data: dict[str, Any] = view_adapter(view.__class__).dump_python(view, mode="json")
    return data


def to_json_text(view: Any) -> bytes:
    """Return the plain data of a view as indented JSON."""
    return view_adapter(view.__class__).dump_json(view, indent=2, warnings=False) + b"\n"
