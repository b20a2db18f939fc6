"""How much of Meta's rate limits is used, as the headers of its answers say, and when calls work again.

header                      says
X-Business-Use-Case-Usage   per ad account or business and kind of use: percentages, and minutes until access is back
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

_NOTICE: Final = 75.0  # percent from which results say how much is used
_ROOM: Final = 2_000  # objects of which the account is remembered
_PERCENTAGES: Final = ("call_count", "total_cputime", "total_time", "acc_id_util_pct", "app_id_util_pct")


@dataclass(frozen=True, slots=True)
class Place:
    """What a request is counted for: an object of the Graph and a kind of use."""

    node: str
    kind: str


def place_of(path: str) -> Place:
    """Return the place of a path below the version: the object that it begins with, and Meta's name of the kind of use."""
    first, _, edge = path.strip("/").partition("/")
    kind = {"insights": "ads_insights", "customaudiences": "custom_audience"}.get(edge, "ads_management")
    return Place(first.removeprefix("act_"), kind)


class Usage:
    """What answers said of limits so far, in this process.

    Args:
        clock: seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._percent: dict[Place, float] = {}
        self._until: dict[Place, float] = {}
        self._owners: dict[str, str] = {}

    def note(self, place: Place, headers: Mapping[str, str]) -> None:
        """Remember what the headers of an answer (names in lower case) say."""
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
        """Return whom the object of a place belongs to, as far as an answer has said it."""
        return self._owners.get(place.node, place.node)

    def blocked(self, place: Place) -> int:
        """Return the minutes until Meta takes requests of this place again; 0 when it does now."""
        until = self._until.get(Place(self._owner(place), place.kind), 0.0)
        return max(0, -int(-(until - self._clock()) // 60))

    def waiting(self, place: Place) -> str:
        """Return a sentence on when a place is free again; "" when it is."""
        minutes = self.blocked(place)
        if not minutes:
            return ""
        return (
            f"Meta takes {place.kind} requests of {self._owner(place)} again in {minutes} minute{'s'[: minutes != 1]}."
        )

    def notice(self, place: Place) -> str:
        """Return a sentence when much of a limit of this place is used; "" otherwise."""
        used = self._percent.get(Place(self._owner(place), place.kind), 0.0)
        if used < _NOTICE:
            return ""
        return (
            f"{used:g} % of Meta's limit for {place.kind} of {self._owner(place)} is used: make fewer, larger requests."
        )

    def report(self) -> list[dict[str, Any]]:
        """Return all that is known, the fullest first."""
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
