"""What the views are made of, as plain data: no file is read here, and no view is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from mcpfactory_pipeline.plan.policy import ChannelPolicy
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.state.state import Event
from mcpfactory_pipeline.views.inbox import InboxItem

__all__ = ["LogFacts", "RunFacts", "ServerDetail", "ServerFacts", "StoredCandidate", "WorkspaceFacts"]


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the pages about many servers say of one. Empty where there is nothing."""

    workspace: str
    name: str
    row: Mapping[str, Any]  # see mcpfactory_pipeline.views.status
    template: str = ""
    source: str = ""
    tools: int | None = None
    tokens: int | None = None
    items: tuple[InboxItem, ...] = ()  # what waits for a person
    owners: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()  # stages that failed and whose log is on this machine
    approved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # channel → who approved what is next for it


@dataclass(frozen=True, slots=True)
class WorkspaceFacts:
    """The workspace's name, its servers, its channels with their policies, its stages, and when that was so; None where no clock counts.

    `gone` is what waits where servers are no more.
    """

    name: str
    servers: tuple[ServerFacts, ...]
    channels: tuple[ChannelPolicy, ...] = ()
    now: datetime | None = None
    gone: tuple[InboxItem, ...] = ()
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerDetail:
    """Everything known of one server: what the pages about it alone say besides."""

    facts: ServerFacts
    channels: tuple[ChannelPolicy, ...] = ()
    stages: tuple[Stage, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[Event] = ()
    report: Mapping[str, Any] = field(default_factory=dict)  # .mcpfactory/report.json: tools, skipped, environment
    manifest: Mapping[str, Any] = field(default_factory=dict)  # what `tools/list` is served from
    validation: Mapping[str, Any] = field(default_factory=dict)  # the report of the last validation
    contract: Sequence[Mapping[str, Any]] = ()  # the tools that the newest candidate listed when it was validated


@dataclass(frozen=True, slots=True, eq=False)
class RunFacts:
    """The events of one run, by server, and the logs of its steps that are still on this machine, by (server, stage). Two readings are two.

    `going` says whether its process is there; before its first step such a run has no events. `now` is when this was read, in seconds
    as `created_at` has them. `waits` are the servers for which it waits, each with the run that is at work there, "" where that is not known.
    `kept` are the ids of the events of steps that went wrong and whose logs nothing has written over. `needs` are the stages of the
    workspace that are run, and not decided, in their order, each with all that it needs.
    """

    workspace: str
    run: str
    events: Mapping[str, Sequence[Event]]
    running: Mapping[str, Sequence[str]] = field(default_factory=dict)  # server → the stages that are at work now
    logs: Mapping[tuple[str, str], str] = field(default_factory=dict)
    going: bool = False
    now: float = 0.0
    waits: Mapping[str, str] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    needs: Mapping[str, Set[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredCandidate:
    """What of one candidate is on this machine: its manifest, its validation's report, the bytes of its files."""

    manifest: Mapping[str, Any] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogFacts:
    """Where the log of a stage is, with the outcome and the run of the last time that it ran. `going` says that it is at work now."""

    workspace: str
    server: str
    stage: str
    file: Path
    outcome: str = ""
    run: str = ""
    going: bool = False
