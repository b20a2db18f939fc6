"""Ad accounts: currency, current date, and an overview of running campaigns."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Final

from mcpfactory_runtime import ToolError

from . import graph
from .errors import GraphError
from .metrics import number
from .money import stored, written

__all__ = ["STATES", "account_overview", "amount", "currency_of", "node_of", "today_in"]

STATES: Final[dict[int, str]] = {
    1: "active",
    2: "disabled",
    3: "unsettled: a payment is open",
    7: "under risk review",
    8: "settlement pending",
    9: "in grace period: a payment is open",
    100: "closure pending",
    101: "closed",
    201: "active",
    202: "closed",
}
"""Meaning of account_status."""

_CURRENCIES: dict[str, str] = {}


def node_of(account: str) -> str:
    """Return an ad account's ID with the prefix `act_`."""
    return account if account.startswith("act_") else f"act_{account}"


async def currency_of(account: str) -> str:
    """Return the currency of an ad account. It is cached, because it never changes."""
    node = node_of(account)
    if node not in _CURRENCIES:
        _CURRENCIES[node] = str((await graph.get(node, fields="currency")).get("currency", ""))
    return _CURRENCIES[node]


def amount(minor: Any, currency: str) -> str:
    """Format an amount in Meta's minor units, which is a string; "" for 0 or a missing one."""
    units = stored(minor, "an amount")
    return written(units, currency) if units > 0 else ""


def today_in(account: graph.Json, now: datetime | None = None) -> date:
    """Return the current date in an ad account's time zone, from its `timezone_offset_hours_utc`."""
    offset = account.get("timezone_offset_hours_utc")
    hours = offset if isinstance(offset, int | float) else 0
    return ((now or datetime.now(UTC)) + timedelta(hours=hours)).date()


_ACCOUNT: Final = "id,name,currency,timezone_name,account_status,disable_reason,amount_spent,spend_cap,balance"
_CAMPAIGNS: Final = "id,name,objective,effective_status,daily_budget,lifetime_budget,budget_remaining"
_RUNNING: Final = ["ACTIVE", "WITH_ISSUES", "IN_PROCESS"]


async def account_overview(
    ad_account_id: Annotated[str, "ID of the ad account, act_1234567890."],
) -> dict[str, Any]:
    """Show an overview of an ad account: state, what is running on which budget, and spend of the last 7 days.

    Amounts are in the account's currency. Answers "what is running?" and "is anything wrong with the account?".
    """
    node = node_of(ad_account_id)
    account, campaigns, week = await graph.batch(
        [
            graph.request("GET", node, fields=_ACCOUNT),
            graph.request("GET", node, "campaigns", fields=_CAMPAIGNS, effective_status=_RUNNING, limit=200),
            graph.request(
                "GET", node, "insights", fields="campaign_id,spend,impressions,clicks", level="campaign",
                date_preset="last_7d", limit=500,
            ),
        ]
    )  # fmt: skip
    if isinstance(account, GraphError):
        await graph.get(node, fields="id")  # raises the same error, with all of Meta's details
        raise ToolError(account.message)
    graph.identified(account, node)
    currency = str(account.get("currency", ""))
    rows = [] if isinstance(week, GraphError) else graph.rows(week, f"{node}/insights")
    spent = {str(row.get("campaign_id")): number(row.get("spend")) for row in rows}
    running = [] if isinstance(campaigns, GraphError) else graph.rows(campaigns, f"{node}/campaigns")
    return {
        "account": _state(account, currency),
        "running": [_campaign(one, currency, spent) for one in running],
        "daily_budgets": amount(sum(stored(one.get("daily_budget"), "daily_budget") for one in running), currency),
        "spent_last_7_days": f"{sum(spent.values()):,.2f} {currency}",
        "findings": [
            *_findings(account, currency),
            *(f"Campaign {one.get('name')} has issues: diagnose_delivery says which." for one in running if one.get("effective_status") == "WITH_ISSUES"),
            *(one.message for one in (campaigns, week) if isinstance(one, GraphError)),
        ],
    }  # fmt: skip


def _state(account: graph.Json, currency: str) -> dict[str, Any]:
    return {
        "id": account.get("id"),
        "name": account.get("name"),
        "state": STATES.get(account.get("account_status", 0), "unknown"),
        "time_zone": account.get("timezone_name"),
        "amount_spent": amount(account.get("amount_spent"), currency) or written(0, currency),
        "spend_cap": amount(account.get("spend_cap"), currency) or "none",
        "balance": amount(account.get("balance"), currency) or written(0, currency),
    }


def _campaign(one: graph.Json, currency: str, spent: dict[str, float]) -> dict[str, Any]:
    budget = {"daily": one.get("daily_budget"), "lifetime": one.get("lifetime_budget")}
    return {
        "id": one.get("id"),
        "name": one.get("name"),
        "state": one.get("effective_status"),
        "objective": one.get("objective"),
        "budget": next((f"{text} {kind}" for kind, of in budget.items() if (text := amount(of, currency))), "on its ad sets"),
        "spent_last_7_days": f"{spent.get(str(one.get('id')), 0.0):,.2f} {currency}",
    }  # fmt: skip


def _findings(account: graph.Json, currency: str) -> list[str]:
    found = []
    state = account.get("account_status", 1)
    if state not in {1, 201}:
        found.append(
            f"The account is {STATES.get(state, 'in an unknown state')}: nothing is delivered until that is settled."
        )
    cap, spent = (stored(account.get(name), name) for name in ("spend_cap", "amount_spent"))
    if cap and spent >= cap:
        found.append(f"The account's spending limit of {written(cap, currency)} is reached: nothing is delivered.")
    elif cap and spent >= 0.9 * cap:
        found.append(f"{written(cap - spent, currency)} are left of the account's spending limit.")
    return found  # fmt: skip
