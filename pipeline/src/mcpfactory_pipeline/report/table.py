"""The table of `pipeline status`: servers × stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcpfactory_pipeline.report.lines import OUTCOME_LABELS

__all__ = ["status_table"]


def status_table(rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and cells from the rows of `status`. A cell is the outcome; `stale` is what passed and must run again."""
    stages = list(dict.fromkeys(stage for row in rows for stage in row["stages"]))
    live = ("PUBLISHED",) if any(row.get("published") for row in rows) else ()
    header = ("SERVER", "CANDIDATE", *(stage.upper() for stage in stages), "CHANNELS", *live)
    return header, [(*_cells(row, stages), *(_live(row) for _ in live)) for row in rows]


def _cells(row: Mapping[str, Any], stages: Sequence[str]) -> tuple[str, ...]:
    if problem := row.get("problem"):
        return (row["server"], "-", *("?" for _ in stages), f"error: {problem['message']}")
    newest = row["candidate"]
    offers, holds = row["channels"], row["holds"]
    rejected = row.get("rejected", {})
    channels = ", ".join(
        _channel(name, offers.get(name), newest, held=name in holds)
        + (f" ({rejected[name]['version']} rejected)" if name in rejected else "")
        for name in {**offers, **holds, **rejected}
    )
    return (
        row["server"],
        f"{row['version']} {newest[:8]}" if newest else "-",
        *(_cell(row, stage) for stage in stages),
        channels or "-",
    )


def _channel(name: str, release: Mapping[str, Any] | None, newest: str | None, *, held: bool) -> str:
    """Return what a channel offers, by which candidate where that is not the newest, and whether it is held."""
    words = f"{name} {release['version']}" if release else name
    other = f" ({release['candidate'][:8]})" if release and release["candidate"] != newest else ""
    return words + other + (" held" if held else "")


def _live(row: Mapping[str, Any]) -> str:
    """Return what is live where; a star marks what is not what its channel offers."""
    offers = row.get("channels", {})
    return (
        ", ".join(
            f"{target} {live['version']}"
            + ("" if offers.get(live["channel"], {}).get("candidate") == live["candidate"] else "*")
            for target, live in row.get("published", {}).items()
        )
        or "-"
    )


def _cell(row: Mapping[str, Any], name: str) -> str:
    if name in row["at_work"]:
        return "running"
    stage = row["stages"].get(name)
    if stage is None or not stage["outcome"]:
        return "waiting" if stage and stage["verdict"] == "waiting" else "-"
    if stage["stale"]:
        return "stale" if stage["outcome"] == "passed" else f"{OUTCOME_LABELS[stage['outcome']][0]} (stale)"
    return OUTCOME_LABELS[stage["outcome"]][0]
