"""Tool that compares a period with the one before, by campaign, ad set or ad."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Annotated, Any, Final, Literal

from mcpfactory_runtime import ToolError

from . import graph
from .accounts import node_of, today_in
from .metrics import RESULTS, totals
from .money import change

__all__ = ["compare_periods", "periods"]

Level = Literal["account", "campaign", "adset", "ad"]

_NAMES: Final[dict[str, str]] = {
    "account": "account_name",
    "campaign": "campaign_name",
    "adset": "adset_name",
    "ad": "ad_name",
}
_IDS: Final[dict[str, str]] = {"account": "account_id", "campaign": "campaign_id", "adset": "adset_id", "ad": "ad_id"}
_SHOWN: Final = ("spend", "results", "cost_per_result", "roas", "ctr_percent", "cpm")
_MOST: Final = 5_000  # maximum rows to read

Period = dict[str, str]


def periods(today: date, days: int, since: str, until: str) -> tuple[Period, Period]:
    """Return two adjacent periods of the same length, the earlier one first.

    Args:
        today: current date in the account's time zone; by default, the later period ends on the day before.
        days: length of the later period.
        since: first day of the later period, or "".
        until: last day of the later period, or "".

    Raises:
        ToolError: a day is invalid, or the last is before the first.
    """
    try:
        last = date.fromisoformat(until) if until else today - timedelta(days=1)
        first = date.fromisoformat(since) if since else last - timedelta(days=days - 1)
    except ValueError:
        raise ToolError(f"{since} to {until} is not a valid period.\nhint: days have the form 2026-10-31.") from None
    if first > last:
        raise ToolError(f"{first} is after {last}.\nhint: since is the first day, until the last.")
    length = last - first + timedelta(days=1)
    return _period(first - length, last - length), _period(first, last)


def _period(first: date, last: date) -> Period:
    return {"since": first.isoformat(), "until": last.isoformat()}


async def compare_periods(
    ad_account_id: Annotated[str, "ID of the ad account, act_1234567890."],
    level: Annotated[Level, "Kind of objects to compare."] = "campaign",
    days: Annotated[int, "Length of both periods; the later one ends yesterday."] = 7,
    since: Annotated[str, "First day of the later period, YYYY-MM-DD, instead of days."] = "",
    until: Annotated[str, "Last day of the later period."] = "",
    result: Annotated[
        str,
        "Action that counts as a result: purchase, lead, add_to_cart, link_click, landing_page_view, app_install … or an action_type.",
    ] = "purchase",
    most: Annotated[int, "Maximum number of rows, those whose spend changed most."] = 20,
) -> dict[str, Any]:
    """Compare spend, results, cost per result, ROAS, CTR and CPM with the period before, by campaign, ad set or ad.

    Answers "how did last week go?" and "why did our cost go up?". Money is in the account's currency.
    """
    if not 1 <= days <= 366 or not 1 <= most <= 100:
        raise ToolError("days is 1 to 366, most 1 to 100.\nhint: correct them and call again.")
    node = node_of(ad_account_id)
    account = await graph.get(node, fields="name,currency,timezone_name,timezone_offset_hours_utc")
    before, after = periods(today_in(account), days, since, until)
    fields = ["spend", "impressions", "clicks", "actions", "action_values", _IDS[level], _NAMES[level]]
    rows, more = await graph.pages(
        node, "insights", _MOST, level=level, time_ranges=[before, after], fields=",".join(dict.fromkeys(fields))
    )
    told: dict[str, Any] = {
        "account": account.get("name"),
        "currency": account.get("currency"),
        "before": f"{before['since']} to {before['until']}",
        "after": f"{after['since']} to {after['until']}",
        "result": result,
        "total": _compared(rows, after, result),
        "rows": _rows(rows, level, after, result)[:most],
    }
    if result in RESULTS and not any(told["total"]["results"][key] for key in ("before", "after")):
        told["note"] = f"No {result} was counted in either period; get_insights with actions shows other results."
    if more:
        told["note"] = f"Only the first {_MOST:,} rows were compared: choose a higher level."
    return told


def _compared(rows: Iterable[graph.Json], after: Period, result: str) -> dict[str, Any]:
    """Return the totals of both periods. Rows whose first day is that of the later period belong to it."""
    given = list(rows)
    new = totals((row for row in given if row.get("date_start") == after["since"]), result)
    old = totals((row for row in given if row.get("date_start") != after["since"]), result)
    return {name: {"before": old[name], "after": new[name], "change": change(old[name], new[name])} for name in _SHOWN}


def _rows(rows: list[graph.Json], level: str, after: Period, result: str) -> list[dict[str, Any]]:
    """Return a comparison per object, the largest change in spend first."""
    by_id: dict[str, list[graph.Json]] = {}
    for row in rows:
        by_id.setdefault(str(row.get(_IDS[level], "")), []).append(row)
    told = [
        {"id": node, "name": given[-1].get(_NAMES[level]), **_compared(given, after, result)}
        for node, given in by_id.items()
    ]
    return sorted(told, key=lambda one: -abs(one["spend"]["after"] - one["spend"]["before"]))
