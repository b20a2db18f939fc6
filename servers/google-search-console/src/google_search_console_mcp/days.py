"""Reporting periods of Search Console: days in Pacific time, which are complete two to three days later."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["KEPT", "Against", "Period", "earlier", "latest", "today"]

Against = Literal["previous", "year"]

KEPT: Final = timedelta(days=488)  # 16 months, rounded up
_COMPLETE: Final = timedelta(days=3)  # until data is complete
_YEAR: Final = timedelta(days=364)  # 52 weeks, so that weekdays match


@dataclass(frozen=True, slots=True)
class Period:
    """A range of days, both ends included."""

    first: date
    last: date

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise ValueError(f"the period ends on {self.last}, before it begins on {self.first}")

    @property
    def days(self) -> int:
        """Number of days."""
        return (self.last - self.first).days + 1


def today() -> date:
    """Return the current date in Pacific time, the time zone of reports."""
    try:
        return datetime.now(ZoneInfo("America/Los_Angeles")).date()
    except ZoneInfoNotFoundError:  # without a tz database, ignore daylight saving: an hour does not matter here
        return datetime.now(timezone(timedelta(hours=-8))).date()


def latest(days: int, now: date) -> Period:
    """Return the latest `days` complete days."""
    last = now - _COMPLETE
    return Period(last - timedelta(days=days - 1), last)


def earlier(period: Period, against: Against) -> Period:
    """Return the period to compare with: the days just before, or 52 weeks earlier."""
    back = _YEAR if against == "year" else timedelta(days=period.days)
    return Period(period.first - back, period.last - back)
