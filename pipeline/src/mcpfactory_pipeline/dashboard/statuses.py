"""The words, signs and order of what the dashboard shows: a status is always icon, text and colour together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import PlainSerializer, WithJsonSchema

__all__ = ["STATUSES", "ShownStatus", "Status", "headline", "outcome_status", "status_of"]


@dataclass(frozen=True, slots=True)
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
        Status("held", "held", "lock", "warn", 6),
        Status("waiting", "waiting", "hand", "warn", 6),
        Status("stale", "stale", "redo", "warn", 7),
        Status("never", "not run", "dash", "none", 8),
        Status("passed", "passed", "check", "good", 9),
        Status("retired", "retired", "lock", "none", 10),
    )
}

ShownStatus = Annotated[
    Status,
    PlainSerializer(lambda status: status.key, return_type=str),
    WithJsonSchema({"type": "string", "enum": list(STATUSES)}, mode="serialization"),
]
"""A status in a view: whole for a page, its key for programs."""


def status_of(stage: Mapping[str, Any], *, running: bool = False) -> Status:
    """Return the status of one stage of one server, from a row of `mcpfactory_pipeline.views.status`.

    A stage that passed and would run again is stale, or held where somebody holds it; one that failed says so first.
    """
    outcome, verdict = stage.get("outcome"), stage.get("verdict")
    if running:
        return STATUSES["running"]
    if verdict == "held" and outcome in {None, "passed"}:
        return STATUSES["held"]
    if verdict == "waiting" and outcome in {None, "passed"}:
        return STATUSES["waiting"]
    if outcome is None:
        return STATUSES["never"]
    if outcome == "passed" and verdict != "up-to-date":
        return STATUSES["stale"]
    return outcome_status(outcome)


def outcome_status(outcome: object) -> Status:
    """Return the status of an outcome; one that this version does not know is inconclusive."""
    return STATUSES.get(str(outcome), STATUSES["inconclusive"])


def headline(row: Mapping[str, Any], statuses: Sequence[Status]) -> Status:
    """Return the status of a whole server: the worst of its stages and holds. One begun and not finished is as far as it came."""
    if row.get("problem"):
        return STATUSES["broken"]
    if row.get("retired"):
        return STATUSES["retired"]
    held = [STATUSES["held"]] if row.get("holds") else []
    return min((*statuses, *held), key=lambda status: status.rank, default=STATUSES["never"])
