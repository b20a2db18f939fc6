"""Tools that change budgets, with amounts in the currency and consent for large raises."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite, nan
from typing import Annotated, Any, Final, Literal

from mcpfactory_runtime import Context, ToolError
from pydantic import Field

from . import graph
from .accounts import currency_of
from .money import change, digits, minor_units, stored, written

__all__ = ["change_budget", "plan_budget_increase"]

_FIELDS = "id,name,account_id,effective_status,daily_budget,lifetime_budget"
_DAY: Final = 86_400.0  # seconds
_FIRST: dict[str, tuple[float, int]] = {}
"""(time, budget) before the first change of a day without consent, by object, so that small raises add up."""

_OWN = {"daily": "daily_budget", "lifetime": "lifetime_budget"}


def _limit(variable: str, default: float) -> float:
    """Return a number from the environment.

    Raises:
        ToolError: it is not finite. No raise would exceed a limit of `nan`.
    """
    text = os.environ.get(variable, "").strip()
    try:
        number = float(text) if text else default
    except ValueError:
        number = nan
    if not isfinite(number):
        raise ToolError(f"{variable} is {text[:20]!r}.\nhint: the operator must set it to a number, such as 20.")
    return number


def _needs_consent(before: int, after: int, currency: str) -> bool:
    """Return True if a raise needs consent, because of its percentage or amount."""
    percent, most = _limit("META_ADS_CONFIRM_PERCENT", 20), _limit("META_ADS_CONFIRM_AMOUNT", 100)
    added = Decimal(after - before).scaleb(-digits(currency))
    return after > before and ((after - before) * 100 > before * percent or added > Decimal(str(most)))


def _since(node: str, before: int) -> tuple[float, int]:
    """Return (time, budget) to compare a raise with: before the first change of a day, or now if that is lower."""
    now = time.time()
    for old in [one for one, (at, _) in _FIRST.items() if now - at >= _DAY]:
        del _FIRST[old]
    at, first = _FIRST.get(node, (now, before))
    return (at, min(first, before)) if now - at < _DAY else (now, before)


def _kind(node: graph.Json) -> Literal["daily", "lifetime"]:
    """Return the kind of an object's budget.

    Raises:
        ToolError: the object has no budget.
    """
    for kind, name in _OWN.items():
        if stored(node.get(name), name):
            return kind  # type: ignore[return-value]
    raise ToolError(
        f"{node.get('name')} ({node.get('id')}) has no budget: the budget of a campaign may be on its ad sets, "
        "and that of an ad set on its campaign.\n"
        "hint: list_ad_sets of the campaign, or list_campaigns of the account, show the budget; change it there."
    )


def _after(before: int, currency: str, amount: float | None, percent: float | None) -> int:
    if (amount is None) == (percent is None):
        raise ToolError("Give either amount or percent.\nhint: amount=75 sets 75.00; percent=20 raises by 20 %.")
    if amount is not None:
        return minor_units(amount, currency)
    after = round(Decimal(before) * (100 + Decimal(str(percent))) / 100)
    if after <= 0:
        raise ToolError(f"{percent} % leaves no budget.\nhint: set_status pauses it.")
    return after


async def change_budget(
    object_id: Annotated[graph.NodeId, Field(description="ID of the campaign or ad set that has the budget.")],
    ctx: Context,
    amount: Annotated[
        float | None,
        Field(gt=0, le=1e9, description="New budget in the account's currency: 75 means 75.00, not minor units."),
    ] = None,
    percent: Annotated[
        float | None, Field(gt=-100, le=1000, description="Instead of amount: percentage of the raise; -10 lowers.")
    ] = None,
    confirm: Annotated[
        str, Field(description="Code from this tool's refusal, after the user agreed to its question.")
    ] = "",
) -> dict[str, Any]:
    """Raise or lower the daily or lifetime budget of a campaign or ad set; shows before and after in the currency.

    A raise above 20 % or 100 in the currency within a day needs the user's consent: the client asks, or the error explains what to do.
    """
    node = await graph.get(object_id, fields=_FIELDS)
    kind = _kind(node)
    currency = await currency_of(str(node.get("account_id", "")))
    before = stored(node[_OWN[kind]], _OWN[kind])
    after = _after(before, currency, amount, percent)
    told = {
        "id": object_id,
        "name": node.get("name"),
        "budget": kind,
        "before": written(before, currency),
        "after": written(after, currency),
        "change": change(before, after),
    }
    if after == before:
        return {**told, "changed": False}
    what = f"The {kind} budget of {node.get('name')} goes from {told['before']} to {told['after']} ({told['change']})."
    at, since = _since(object_id, before)
    if _needs_consent(since, after, currency):
        more = f" Within a day it was {written(since, currency)} ({change(since, after)})." if since != before else ""
        await ctx.consent(what + more, object_id, kind, before, after, confirm=confirm, otherwise="Nothing was changed")
        at, since = time.time(), after
    _FIRST[object_id] = (at, since)
    await graph.post(object_id, "", **{_OWN[kind]: after})
    try:
        now = await graph.get(object_id, fields=f"{_OWN[kind]},effective_status")
        seen = written(stored(now.get(_OWN[kind]), _OWN[kind]), currency)
    except ToolError as error:  # the change was made, so this must not look like a failure
        return {**told, "changed": True, "note": f"It was changed, but the new value could not be read: {error}"}
    return {**told, "after": seen, "changed": True, "state": now.get("effective_status")}


def _moment(text: str) -> datetime:
    """Parse a time with an offset.

    Raises:
        ToolError: the time is invalid, or has no offset.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ToolError(f"{text} is not a time with an offset.\nhint: write 2026-11-27T00:00:00+01:00.")
    return found


async def plan_budget_increase(
    campaign_id: Annotated[graph.NodeId, Field(description="ID of a campaign with its own daily budget.")],
    amount: Annotated[
        float,
        Field(
            gt=0, le=1e9, description="Amount to add to the daily budget, in the account's currency: 50 means 50.00."
        ),
    ],
    start: Annotated[str, Field(description="Start, a full hour, with offset: 2026-11-27T00:00:00+01:00.")],
    end: Annotated[str, Field(description="End, in the same form.")],
    ctx: Context,
    confirm: Annotated[
        str, Field(description="Code from this tool's refusal, after the user agreed to its question.")
    ] = "",
) -> dict[str, Any]:
    """Plan a higher daily budget of a campaign for some days of high demand, such as Black Friday. The user must agree."""
    begins, ends = _moment(start), _moment(end)
    if ends <= begins:
        raise ToolError(f"{end} is not after {start}.\nhint: end is the end of the period.")
    if begins <= datetime.now(UTC):
        raise ToolError(f"{start} is in the past.\nhint: plan an increase for future hours.")
    for text, one in ((start, begins), (end, ends)):
        if one.minute or one.second or one.microsecond:
            raise ToolError(
                f"{text} is not a full hour.\nhint: write {one.isoformat()[:14]}00:00{one.isoformat()[-6:]}."
            )
    node = await graph.get(campaign_id, fields=_FIELDS)
    before = stored(node.get("daily_budget"), "daily_budget")
    if not before:
        raise ToolError(
            f"{node.get('name')} ({campaign_id}) has no daily budget to raise.\nhint: list_ad_sets shows the budgets of its ad sets."
        )
    currency = await currency_of(str(node.get("account_id", "")))
    added = minor_units(amount, currency)
    told = {
        "before": written(before, currency),
        "during": written(before + added, currency),
        "start": start,
        "end": end,
    }
    what = (
        f"The daily budget of {node.get('name')} goes from {told['before']} to {told['during']} from {start} to {end}."
    )
    await ctx.consent(what, campaign_id, before, added, confirm=confirm, otherwise="Nothing was planned")
    made = await graph.post(
        campaign_id,
        "budget_schedules",
        budget_value=added,
        budget_value_type="ABSOLUTE",
        time_start=int(begins.timestamp()),
        time_end=int(ends.timestamp()),
    )
    return {"id": made.get("id"), "name": node.get("name"), **told}
