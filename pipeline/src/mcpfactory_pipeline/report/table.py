"""The table of `pipeline status`: servers × stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcpfactory_pipeline.report.words import MARKS

__all__ = ["status_table"]


def status_table(rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and cells from the rows of `status`. A cell is the outcome, with `(stale)` where the stage must run again."""
    stages = list(dict.fromkeys(stage for row in rows for stage in row["stages"]))
    header = ("SERVER", "VERSION", "CANDIDATE", *(stage.upper() for stage in stages), "CHANNELS")
    return header, [_cells(row, stages) for row in rows]


def _cells(row: Mapping[str, Any], stages: Sequence[str]) -> tuple[str, ...]:
    if problem := row.get("problem"):
        return (row["server"], "-", "-", *("?" for _ in stages), f"error: {problem['message']}")
    channels = ", ".join(
        f"{name} {release['version']} ({release['candidate'][:8]})" for name, release in row["channels"].items()
    )
    return (
        row["server"],
        row["version"] or "-",
        (row["candidate"] or "-")[:8],
        *(_cell(row, stage) for stage in stages),
        channels or "-",
    )


def _cell(row: Mapping[str, Any], name: str) -> str:
    if row["running"] == name:
        return "running"
    stage = row["stages"].get(name)
    if stage is None:
        return "-"
    outcome = MARKS[stage["outcome"]][0] if stage["outcome"] else "-"
    return f"{outcome} (stale)" if stage["outcome"] and stage["stale"] else outcome
