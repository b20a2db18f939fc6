"""What a run shows of the log of a stage that failed: what closed a gate where the log says so, else its end."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

__all__ = ["log_excerpt"]

_SHOWN: Final = 15  # lines


def log_excerpt(lines: Sequence[str], gates: Collection[str]) -> list[str]:
    """Return the lines about closed gates, each with what stands below it, or the last lines where no line is about one."""
    found: list[str] = []
    about = False  # whether the lines are about a gate
    margin = 0
    for line in lines:
        indent = len(line) - len(line.lstrip())
        rule, marked, _ = line.strip().partition(" [gate]")
        if marked and rule in gates:
            about, margin = True, indent
        elif indent <= margin:
            about = False
        if about:
            found.append(line)
    return found[:_SHOWN] or list(lines[-_SHOWN:])
