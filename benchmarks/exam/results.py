"""What an examination came to, and the table in which they all stand at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "fault", "not run"]
_CODES: dict[Verdict, int] = {"ok": 0, "fault": 1, "not run": 3}


@dataclass(frozen=True)
class Outcome:
    """One figure, as people quote it, and what it means."""

    figure: str
    verdict: Verdict


def judged(figure: str, *, good: bool) -> Outcome:
    """The outcome of an examination that ran."""
    return Outcome(figure, "ok" if good else "fault")


def unavailable(reason: str) -> Outcome:
    """The outcome of an examination that cannot be run here; says so at once."""
    print(reason, flush=True)
    return Outcome(reason, "not run")


def table(outcomes: Mapping[str, Outcome]) -> str:
    """Part → figure → verdict, one line each."""
    rows: list[Sequence[str]] = [("part", "verdict", "figure")]
    rows += [(part, outcome.verdict, outcome.figure) for part, outcome in outcomes.items()]
    widths = [max(len(row[at]) for row in rows) for at in range(2)]
    return "\n".join(f"{part:{widths[0]}}  {verdict:{widths[1]}}  {figure}" for part, verdict, figure in rows)


def exit_code(outcomes: Mapping[str, Outcome]) -> int:
    """0; 1 when an examination found a fault, else 3 when one could not be run."""
    codes = {_CODES[outcome.verdict] for outcome in outcomes.values()}
    return 1 if 1 in codes else max(codes)
