"""Tool that explains why an object is not delivered, by states, issues, reviews, budgets, dates and its account."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from . import graph
from .accounts import STATES, amount, currency_of, node_of
from .metrics import number
from .money import stored

__all__ = ["diagnose_delivery"]

Kind = Literal["campaign", "ad_set", "ad"]

_COMMON: Final = "id,name,status,effective_status,issues_info"
_CAMPAIGN: Final = f"{_COMMON},daily_budget,lifetime_budget,budget_remaining,spend_cap,start_time,stop_time"
_AD_SET: Final = f"{_COMMON},daily_budget,lifetime_budget,budget_remaining,start_time,end_time,learning_stage_info"
_AD: Final = f"{_COMMON},account_id,ad_review_feedback"
_FIELDS: Final[dict[str, str]] = {
    "ad": f"{_AD},adset{{{_AD_SET}}},campaign{{{_CAMPAIGN}}}",
    "ad_set": f"{_AD_SET},account_id,campaign{{{_CAMPAIGN}}}",
    "campaign": f"{_CAMPAIGN},account_id",
}
_WORDS: Final = {"campaign": "campaign", "ad_set": "ad set", "ad": "ad"}

_STATES: Final[dict[str, str]] = {
    "PAUSED": "is paused; set_status with ACTIVE switches it on.",
    "ARCHIVED": "is archived and cannot be switched on again; copy it.",
    "DELETED": "is deleted.",
    "PENDING_REVIEW": "is in review; Meta mostly needs less than 24 hours.",
    "DISAPPROVED": "was rejected by Meta's review; change the creative, or ask for another review in Account quality.",
    "PENDING_BILLING_INFO": "requires a payment method of the account.",
    "IN_PROCESS": "is being processed by Meta; wait some minutes.",
    "WITH_ISSUES": "has issues that keep it from being delivered.",
}

Finding = dict[str, str]


async def diagnose_delivery(
    kind: Annotated[Kind, Field(description="Kind of the object.")],
    object_id: Annotated[graph.NodeId, Field(description="ID of the campaign, ad set or ad.")],
) -> dict[str, Any]:
    """Explain why a campaign, ad set or ad is not delivered or spends too little, from the ad up to the account's payments.

    Checks states, review feedback, issues, budgets, dates, the learning phase and the account. Answers "why is my ad not running?".
    """
    node = await graph.get(object_id, fields=_FIELDS[kind])
    owner = str(node.get("account_id", ""))
    currency = await currency_of(owner)
    account = await graph.get(node_of(owner), fields="id,name,account_status,amount_spent,spend_cap")
    week = (await graph.get(object_id, "insights", fields="impressions,spend", date_preset="last_7d"))["data"] or [{}]
    chain = _chain(kind, node)
    found = [finding for kind_, one in chain for finding in _findings(_WORDS[kind_], one, currency)]
    if kind == "campaign":
        found += await _children(object_id)
    found += _account(account)
    return {
        "object": f"{_WORDS[kind]} {node.get('name')}",
        "state": node.get("effective_status"),
        "last_7_days": {"impressions": number(week[0].get("impressions")), "spend": f"{number(week[0].get('spend')):,.2f} {currency}"},
        "findings": found or [{"where": "Meta", "finding": "Nothing hinders delivery.", "next": "If it spends little: compare bid, audience size (estimate_reach) and budget."}],
    }  # fmt: skip


def _chain(kind: str, node: graph.Json) -> list[tuple[str, graph.Json]]:
    """Return the object and its parents, each with its kind."""
    inside = [("ad_set", node.get("adset")), ("campaign", node.get("campaign"))]
    return [(kind, node), *((name, one) for name, one in inside if isinstance(one, dict))]


def _findings(word: str, one: graph.Json, currency: str) -> list[Finding]:
    where = f"{word} {one.get('name')} ({one.get('id')})"
    return [
        {"where": where, **finding} for finding in [*_state(one), *_issues(one), *_money(one, currency), *_dates(one)]
    ]


def _state(one: graph.Json) -> list[Finding]:
    # The status of an object with a paused parent is CAMPAIGN_PAUSED or similar; the parent has the finding.
    state = str(one.get("status") if one.get("status") not in {None, "ACTIVE"} else one.get("effective_status"))
    found = []
    if text := _STATES.get(state):
        finding, _, step = text.partition("; ")
        found.append({"finding": f"{state}: it {finding.rstrip('.')}.", "next": step})
    reviews = one.get("ad_review_feedback") or {}
    for places in reviews.values() if isinstance(reviews, dict) else ():
        for policy, why in places.items() if isinstance(places, dict) else ():
            found.append(
                {
                    "finding": f"Review: {policy}: {why}",
                    "next": "Change what the policy names, and the ad is reviewed again.",
                }
            )
    learning = one.get("learning_stage_info")
    learning = learning if isinstance(learning, dict) else {}
    if learning.get("status") in {"LEARNING", "FAIL"}:
        text = (
            "is in the learning phase"
            if learning["status"] == "LEARNING"
            else "gets too few results to leave the learning phase"
        )
        found.append(
            {
                "finding": f"It {text}.",
                "next": "Avoid large edits; merge ad sets, or optimize for a more frequent result.",
            }
        )
    return found  # fmt: skip


def _issues(one: graph.Json) -> list[Finding]:
    issues = one.get("issues_info")
    return [
        {"finding": f"{said.get('error_summary', 'Issue')}: {said.get('error_message', '')} (code {said.get('error_code')})", "next": ""}
        for said in (issues if isinstance(issues, list) else [])
        if isinstance(said, dict)
    ]  # fmt: skip


def _money(one: graph.Json, currency: str) -> list[Finding]:
    whole, left = stored(one.get("lifetime_budget"), "lifetime_budget"), one.get("budget_remaining")
    if whole and left is not None and stored(left, "budget_remaining") == 0:
        text = f"The lifetime budget of {amount(whole, currency)} is spent."
        return [{"finding": text, "next": "change_budget raises it."}]
    return []


def _dates(one: graph.Json) -> list[Finding]:
    now = datetime.now(UTC)
    begin, end = _time(one.get("start_time")), _time(one.get("end_time") or one.get("stop_time"))
    if begin and begin > now:
        return [{"finding": f"It begins on {one['start_time']}.", "next": "Wait, or change start_time."}]
    if end and end < now:
        return [{"finding": f"It ended on {one.get('end_time') or one.get('stop_time')}.", "next": "Set a later end."}]
    return []


def _time(text: Any) -> datetime | None:
    """Parse a time of the form 2026-10-31T23:59:59+0100; None if it is invalid."""
    try:
        return datetime.strptime(str(text), "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        return None


async def _children(campaign: str) -> list[Finding]:
    """Return the findings if a campaign has no active ad."""
    ads, _ = await graph.pages(campaign, "ads", 200, fields="id,effective_status")
    states: dict[str, int] = {}
    for one in ads:
        states[str(one.get("effective_status"))] = states.get(str(one.get("effective_status")), 0) + 1
    if not ads:
        return [{"where": "its ads", "finding": "The campaign has no ads.", "next": "create_link_ad makes one."}]
    if states.get("ACTIVE"):
        return []
    told = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
    return [
        {"where": "its ads", "finding": f"No ad is active: {told}.", "next": "diagnose_delivery of one ad says more."}
    ]


def _account(account: graph.Json) -> list[Finding]:
    where = f"account {account.get('name')}"
    state, cap = account.get("account_status", 1), stored(account.get("spend_cap"), "spend_cap")
    found = []
    if state not in {1, 201}:
        text = f"The account is {STATES.get(state, 'in an unknown state')}."
        found.append({"where": where, "finding": text, "next": "Settle that in Billing and payments."})
    if cap and stored(account.get("amount_spent"), "amount_spent") >= cap:
        text = "The account's spending limit is reached."
        found.append({"where": where, "finding": text, "next": "Raise or reset it in Billing and payments."})
    return found
