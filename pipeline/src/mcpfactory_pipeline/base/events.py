from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Event of a run."""

    def to_json(self) -> dict[str, Any]:
        """Return the event as plain data, with its name first."""
        return {"event": _NAMES[type(self)], **asdict(self)}


@dataclass(frozen=True, slots=True)
class RunStarted(RunEvent):
    """A run of these servers and stages started.

    `isolation` is the isolation level of server code on this machine.
    """

    servers: tuple[str, ...]
    stages: tuple[str, ...]
    isolation: str = ""


@dataclass(frozen=True, slots=True)
class StageStarted(RunEvent):
    """A stage of a server started. `attempt` counts from 1."""

    server: str
    stage: str
    reasons: tuple[str, ...]
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class StageFinished(RunEvent):
    """A stage of a server ended with an outcome after `seconds`."""

    server: str
    stage: str
    outcome: str
    message: str
    seconds: float


@dataclass(frozen=True, slots=True)
class StageSkipped(RunEvent):
    """A stage did not run. `verdict` is `up-to-date`, `blocked`, `held` or `waiting`."""

    server: str
    stage: str
    verdict: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailedStageLog(RunEvent):
    """Last log lines of a stage that did not pass. `log` is the path of the full log in the workspace."""

    server: str
    stage: str
    log: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunWaiting(RunEvent):
    """A run waits for another run of the same server. `holder` describes the process of the other run."""

    server: str
    holder: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerUnusable(RunEvent):
    """A server has a broken state or configuration. The run continues with the other servers."""

    server: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class RunFinished(RunEvent):
    """A run ended.

    `pruned` maps deleted candidate folders to their sizes in bytes. `failed` has the first failed stage by server.
    """

    servers: Mapping[str, str]
    ran: int
    seconds: float
    pruned: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)


_NAMES: Final[dict[type[RunEvent], str]] = {
    RunStarted: "run.started",
    StageStarted: "step.started",
    StageFinished: "step.finished",
    StageSkipped: "step.skipped",
    FailedStageLog: "log",
    RunWaiting: "waiting",
    ServerUnusable: "trouble",
    RunFinished: "run.finished",
}
KINDS: Final = tuple(_NAMES.values())


class Reporter:
    """Base class of reporters of a run. The base class reports nothing.

    Events come one at a time, but from several threads.
    """

    def emit(self, event: RunEvent) -> None:
        """Show one event."""

    def close(self) -> None:
        """End the report after a run."""
