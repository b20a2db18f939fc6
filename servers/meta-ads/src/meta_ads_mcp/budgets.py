"""Changing budgets: read, show before and after in the currency, ask where it matters, change, read again."""

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
_DAY: Final = 86_400.0
_FIRST: dict[str, tuple[float, int]] = {}
"""When a budget was first changed here without a question, and what it was then: small raises of a day count together."""

_OWN = {"daily": "daily_budget", "lifetime": "lifetime_budget"}


def _limit(variable: str, default: float) -> float:
    """Return a number that the person who runs the server set.

    Raises:
        ToolError: it is no finite number: with `nan` no raise would be above the limit.
    """
    text = os.environ.get(variable, "").strip()
    try:
        number = float(text) if text else default
    except ValueError:
        number = nan
    if not isfinite(number):
        raise ToolError(
            f"{variable} is {text[:20]!r}.\nhint: the person who runs this server sets a number, such as 20."
        )
    return number


def _needs_consent(before: int, after: int, currency: str) -> bool:
    """Return whether a raise is so large that a person decides: in percent, or in what it adds."""
    percent, most = _limit("META_ADS_CONFIRM_PERCENT", 20), _limit("META_ADS_CONFIRM_AMOUNT", 100)
    added = Decimal(after - before).scaleb(-digits(currency))
    return after > before and ((after - before) * 100 > before * percent or added > Decimal(str(most)))


def _since(node: str, before: int) -> tuple[float, int]:
    """Return what a raise is judged against, and since when: the budget as it was at the first change of a day, or as it is where that is less."""
    now = time.time()
    for old in [one for one, (at, _) in _FIRST.items() if now - at >= _DAY]:
        del _FIRST[old]
    at, first = _FIRST.get(node, (now, before))
    return (at, min(first, before)) if now - at < _DAY else (now, before)


def _kind(node: graph.Json) -> Literal["daily", "lifetime"]:
    """Return which budget an object has.

    Raises:
        ToolError: it has none of its own.
    """
    for kind, name in _OWN.items():
        if stored(node.get(name), name):
            return kind  # type: ignore[return-value]
    raise ToolError(
        f"{node.get('name')} ({node.get('id')}) has no budget of its own: it is on its ad sets if this is a campaign, "
        "or on the campaign if this is an ad set.\n"
        "hint: list_ad_sets of the campaign, or list_campaigns of the account, show where the budget is; change it there."
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
    object_id: Annotated[graph.NodeId, Field(description="The campaign or ad set that has the budget.")],
    ctx: Context,
    amount: Annotated[
        float | None,
        Field(gt=0, le=1e9, description="The new budget in the account's currency: 75 means 75.00, not minor units."),
    ] = None,
    percent: Annotated[
        float | None, Field(gt=-100, le=1000, description="Instead of amount: raise by so many percent; -10 lowers.")
    ] = None,
    confirm: Annotated[
        str, Field(description="Only after this tool gave it: the code, once the person agreed to what it says.")
    ] = "",
) -> dict[str, Any]:
    """Raise or lower the daily or lifetime budget of a campaign or ad set; shows before and after in the currency.

    A raise above 20 % or 100 in the currency within a day needs a person's consent: the client asks, or the answer says what to do.
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
    except ToolError as error:  # the change was made; who tried again would make it twice
        return {**told, "changed": True, "note": f"It was changed; how it is now could not be read: {error}"}
    return {**told, "after": seen, "changed": True, "state": now.get("effective_status")}


def _moment(text: str) -> datetime:
    """Return a time with its offset.

    Raises:
        ToolError: it is none, or has no offset.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ToolError(f"{text} is no time with an offset.\nhint: write 2026-11-27T00:00:00+01:00.")
    return found


async def plan_budget_increase(
    campaign_id: Annotated[graph.NodeId, Field(description="A campaign with a daily budget of its own.")],
    amount: Annotated[
        float,
        Field(
            gt=0, le=1e9, description="What is added to the daily budget, in the account's currency: 50 means 50.00."
        ),
    ],
    start: Annotated[str, Field(description="Beginning, a full hour, with offset: 2026-11-27T00:00:00+01:00.")],
    end: Annotated[str, Field(description="End, likewise.")],
    ctx: Context,
    confirm: Annotated[
        str, Field(description="Only after this tool gave it: the code, once the person agreed to what it says.")
    ] = "",
) -> dict[str, Any]:
    """Plan a higher daily budget of a campaign for some days of high demand, such as Black Friday. A person must agree."""
    begins, ends = _moment(start), _moment(end)
    if ends <= begins:
        raise ToolError(f"{end} is not after {start}.\nhint: end is the end of the period.")
    if begins <= datetime.now(UTC):
        raise ToolError(f"{start} is over.\nhint: an increase is planned for hours to come.")
    for text, one in ((start, begins), (end, ends)):
        if one.minute or one.second or one.microsecond:
            raise ToolError(f"{text} is no full hour.\nhint: write {one.isoformat()[:14]}00:00{one.isoformat()[-6:]}.")
    node = await graph.get(campaign_id, fields=_FIELDS)
    before = stored(node.get("daily_budget"), "daily_budget")
    if not before:
        raise ToolError(
            f"{node.get('name')} ({campaign_id}) has no daily budget, which this raises.\nhint: list_ad_sets shows where its budget is."
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
