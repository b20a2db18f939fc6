"""Days as Search Console counts them: in Pacific time, and complete two to three days later. Pure but for `today`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["KEPT", "Against", "Period", "earlier", "latest", "today"]

Against = Literal["previous", "year"]

KEPT: Final = timedelta(days=488)  # 16 months, and no day less
_COMPLETE: Final = timedelta(days=3)
_YEAR: Final = timedelta(days=364)  # the same days of the week


@dataclass(frozen=True, slots=True)
class Period:
    """From the first to the last day, both included."""

    first: date
    last: date

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise ValueError(f"the period ends on {self.last}, before it begins on {self.first}")

    @property
    def days(self) -> int:
        """How many days it has."""
        return (self.last - self.first).days + 1


def today() -> date:
    """Return the day in Pacific time, which reports are in."""
    try:
        return datetime.now(ZoneInfo("America/Los_Angeles")).date()
    except ZoneInfoNotFoundError:  # no tz database on this machine: an hour does not matter among complete days
        return datetime.now(timezone(timedelta(hours=-8))).date()


def latest(days: int, now: date) -> Period:
    """Return the latest `days` days that are complete."""
    last = now - _COMPLETE
    return Period(last - timedelta(days=days - 1), last)


def earlier(period: Period, against: Against) -> Period:
    """Return what a period is compared with: as many days just before, or the same days of the week a year ago."""
    back = _YEAR if against == "year" else timedelta(days=period.days)
    return Period(period.first - back, period.last - back)
