"""The words, signs and order of what the dashboard shows: a status is always icon, text and colour together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["STATUSES", "Status", "headline", "status_of"]


@dataclass(frozen=True)
class Status:
    """How one status is shown. `icon` is a symbol of templates/icons.svg, `tone` a class of style.css; low ranks come first."""

    key: str
    word: str
    icon: str
    tone: str
    rank: int


STATUSES: Final[dict[str, Status]] = {
    status.key: status
    for status in (
        Status("broken", "unreadable", "alert", "bad", 0),
        Status("failed", "failed", "cross", "bad", 1),
        Status("errored", "errored", "alert", "bad", 2),
        Status("interrupted", "interrupted", "pause", "warn", 3),
        Status("inconclusive", "inconclusive", "question", "warn", 4),
        Status("running", "running", "play", "busy", 5),
        Status("stale", "stale", "redo", "warn", 6),
        Status("never", "not run", "dash", "none", 7),
        Status("passed", "passed", "check", "good", 8),
    )
}


def status_of(stage: Mapping[str, Any], *, running: bool = False) -> Status:
    """The status of one stage of one server, from a row of `mcpfactory_pipeline.status`.

    A stage that passed and would run again is stale; one that failed says so first, whether or not it would run again.
    """
    outcome = stage.get("outcome")
    if running:
        return STATUSES["running"]
    if outcome is None:
        return STATUSES["never"]
    if outcome == "passed" and stage.get("verdict") != "up-to-date":
        return STATUSES["stale"]
    return STATUSES.get(str(outcome), STATUSES["inconclusive"])


def headline(statuses: list[Status]) -> Status:
    """The status of a whole server: the worst of its stages. One that was begun and not finished is as far as it came."""
    if not statuses:
        return STATUSES["never"]
    return min(statuses, key=lambda status: status.rank)
