"""Usage of Meta's rate limits, from response headers, and the time until requests are accepted again.

header                      content
X-Business-Use-Case-Usage   per ad account or business and kind of use: percentages, and minutes until access is restored
X-Ad-Account-Usage          a percentage of one ad account, and seconds until it is reset
X-App-Usage                 percentages of the app
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Place", "Usage", "place_of"]

_NOTICE: Final = 75.0  # percent from which results include the usage
_ROOM: Final = 2_000  # maximum objects with a remembered account, to bound memory
_PERCENTAGES: Final = ("call_count", "total_cputime", "total_time", "acc_id_util_pct", "app_id_util_pct")


@dataclass(frozen=True, slots=True)
class Place:
    """A rate limit: an object of the Graph and a kind of use."""

    node: str
    kind: str


def place_of(path: str) -> Place:
    """Return the rate limit of a path without version: its first segment, and Meta's name of the kind of use."""
    first, _, edge = path.strip("/").partition("/")
    kind = {"insights": "ads_insights", "customaudiences": "custom_audience"}.get(edge, "ads_management")
    return Place(first.removeprefix("act_"), kind)


class Usage:
    """State of the rate limits, from the responses of this process.

    Args:
        clock: seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._percent: dict[Place, float] = {}
        self._until: dict[Place, float] = {}
        self._owners: dict[str, str] = {}

    def note(self, place: Place, headers: Mapping[str, str]) -> None:
        """Update the state from the headers of a response (lowercase names)."""
        now = self._clock()
        found = _json(headers.get("x-business-use-case-usage"))
        for owner, entries in found.items():
            for entry in entries if isinstance(entries, list) else []:
                if isinstance(entry, dict):
                    self._keep(Place(str(owner), str(entry.get("type", place.kind))), entry, now)
        if len(found) == 1 and place.node.isdecimal() and len(self._owners) < _ROOM:
            self._owners[place.node] = str(next(iter(found)))
        if account := _json(headers.get("x-ad-account-usage")):
            owner = self._owner(place)
            self._percent[Place(owner, "ad account")] = _most(account)
        if app := _json(headers.get("x-app-usage")):
            self._percent[Place("app", "app")] = _most(app)

    def _keep(self, place: Place, entry: Mapping[str, Any], now: float) -> None:
        self._percent[place] = _most(entry)
        minutes = entry.get("estimated_time_to_regain_access")
        if isinstance(minutes, int | float) and minutes > 0:
            self._until[place] = now + minutes * 60
        else:
            self._until.pop(place, None)

    def _owner(self, place: Place) -> str:
        """Return the owner of an object if a response has named it, else the object."""
        return self._owners.get(place.node, place.node)

    def blocked(self, place: Place) -> int:
        """Return the minutes until Meta accepts requests again, or 0."""
        until = self._until.get(Place(self._owner(place), place.kind), 0.0)
        return max(0, -int(-(until - self._clock()) // 60))

    def waiting(self, place: Place) -> str:
        """Return a sentence on the end of a block, or ""."""
        minutes = self.blocked(place)
        if not minutes:
            return ""
        return f"Meta accepts {place.kind} requests of {self._owner(place)} again in {minutes} minute{'s'[: minutes != 1]}."

    def notice(self, place: Place) -> str:
        """Return a warning if much of a limit is used, or ""."""
        used = self._percent.get(Place(self._owner(place), place.kind), 0.0)
        if used < _NOTICE:
            return ""
        return (
            f"{used:g} % of Meta's limit for {place.kind} of {self._owner(place)} is used: make fewer, larger requests."
        )

    def report(self) -> list[dict[str, Any]]:
        """Return all known limits, the most used first."""
        rows = [
            {"of": one.node, "kind": one.kind, "percent_used": used, "minutes_until_free": self.blocked(one)}
            for one, used in self._percent.items()
        ]
        return sorted(rows, key=lambda row: -row["percent_used"])


def _json(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _most(entry: Mapping[str, Any]) -> float:
    return max((float(entry[name]) for name in _PERCENTAGES if isinstance(entry.get(name), int | float)), default=0.0)
