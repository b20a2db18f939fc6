"""The events of a run, and the protocol of those who report them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Something that happened in a run."""

    def to_json(self) -> dict[str, Any]:
        """Plain data, with the name of the event first."""
        return {"event": _NAMES[type(self)], **asdict(self)}


@dataclass(frozen=True, slots=True)
class RunStarted(RunEvent):
    """The run is about these servers and stages; `isolation` is the level at which code of servers runs on this machine."""

    servers: tuple[str, ...]
    stages: tuple[str, ...]
    isolation: str = ""


@dataclass(frozen=True, slots=True)
class StepStarted(RunEvent):
    """A stage of a server starts; `attempt` counts from 1."""

    server: str
    stage: str
    reasons: tuple[str, ...]
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class StepFinished(RunEvent):
    """A stage of a server ended with an outcome, after so many seconds."""

    server: str
    stage: str
    outcome: str
    message: str
    seconds: float


@dataclass(frozen=True, slots=True)
class StepSkipped(RunEvent):
    """A stage did not run: `verdict` is `up-to-date`, `blocked`, `held` or `waiting`."""

    server: str
    stage: str
    verdict: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogLines(RunEvent):
    """The end of the log of a stage that did not pass; `log` is where all of it is, below the workspace."""

    server: str
    stage: str
    log: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Waiting(RunEvent):
    """Event of waiting for another process that runs the stages of this server; `holder` describes that process."""

    server: str
    holder: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerTrouble(RunEvent):
    """A server cannot be run at all: its state or its configuration is broken. The others go on."""

    server: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class RunFinished(RunEvent):
    """The run ended: how many servers ended how, and after how many seconds; `pruned` folders of old candidates with their bytes."""

    servers: Mapping[str, str]
    ran: int
    seconds: float
    pruned: Mapping[str, int] = field(default_factory=dict)


_NAMES: Final[dict[type[RunEvent], str]] = {
    RunStarted: "run.started",
    StepStarted: "step.started",
    StepFinished: "step.finished",
    StepSkipped: "step.skipped",
    LogLines: "log",
    Waiting: "waiting",
    ServerTrouble: "trouble",
    RunFinished: "run.finished",
}
KINDS: Final = tuple(_NAMES.values())


class Reporter(Protocol):
    """Reports a run. Events come one at a time, from several threads."""

    def emit(self, event: RunEvent) -> None:
        """Show one event."""

    def close(self) -> None:
        """End the report after a run with any outcome."""


class NullReporter:
    """A reporter that reports nothing."""

    def emit(self, event: RunEvent) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Do nothing: there is nothing to end."""
