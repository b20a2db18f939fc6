"""Conversion of insights, which Meta returns as strings and lists of actions, to numbers.

Meta reports one purchase under several action types (purchase, omni_purchase, offsite_conversion.fb_pixel_purchase and more).
They overlap, so they are never added: the first one present counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

__all__ = ["RESULTS", "action", "flat", "number", "totals"]

RESULTS: Final[dict[str, tuple[str, ...]]] = {
    "purchase": ("omni_purchase", "purchase", "offsite_conversion.fb_pixel_purchase"),
    "lead": ("lead", "onsite_conversion.lead_grouped", "offsite_conversion.fb_pixel_lead"),
    "add_to_cart": ("omni_add_to_cart", "add_to_cart", "offsite_conversion.fb_pixel_add_to_cart"),
    "complete_registration": ("omni_complete_registration", "complete_registration"),
    "app_install": ("omni_app_install", "mobile_app_install", "app_install"),
    "link_click": ("link_click",),
    "landing_page_view": ("omni_landing_page_view", "landing_page_view"),
    "messaging_conversation": ("onsite_conversion.messaging_conversation_started_7d",),
    "thruplay": ("video_view",),
}
"""Result names, and the action types that report them, the most general first."""

_LISTS: Final = frozenset({"actions", "action_values", "cost_per_action_type", "purchase_roas", "website_purchase_roas", "outbound_clicks", "conversions", "conversion_values", "results", "cost_per_result"})  # fmt: skip


def number(value: Any) -> float:
    """Parse a number of insights; 0 if it is invalid."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0


def action(entries: Any, kind: str) -> float:
    """Return the value of a result, a key of RESULTS or an action type, in a list of actions."""
    found = {one.get("action_type"): one.get("value") for one in entries or [] if isinstance(one, dict)}
    return next((number(found[name]) for name in RESULTS.get(kind, (kind,)) if name in found), 0.0)


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its lists of actions as {action type: value}, or {action type: {window: value}} if windows were requested."""
    return {
        name: _by_type(value) if name in _LISTS and isinstance(value, list) else value for name, value in row.items()
    }


def _by_type(entries: list[Any]) -> Any:
    if not all(isinstance(one, dict) and "action_type" in one for one in entries):
        return entries
    found: dict[str, Any] = {}
    for one in entries:
        rest = {name: value for name, value in one.items() if name != "action_type"}
        name = str(one["action_type"])
        if name in found:  # split by an action breakdown: keep Meta's form
            return entries
        found[name] = rest["value"] if set(rest) == {"value"} else rest
    return found


def totals(rows: Iterable[dict[str, Any]], result: str) -> dict[str, float]:
    """Return the sums of spend, impressions, clicks, results and their values, and the derived rates."""
    given = list(rows)
    spend = sum(number(row.get("spend")) for row in given)
    shown = sum(number(row.get("impressions")) for row in given)
    clicks = sum(number(row.get("clicks")) for row in given)
    results = sum(action(row.get("actions"), result) for row in given)
    value = sum(action(row.get("action_values"), result) for row in given)
    return {
        "spend": round(spend, 2),
        "impressions": shown,
        "clicks": clicks,
        "results": results,
        "result_value": round(value, 2),
        "ctr_percent": round(clicks / shown * 100, 3) if shown else 0.0,
        "cpm": round(spend / shown * 1000, 2) if shown else 0.0,
        "cpc": round(spend / clicks, 2) if clicks else 0.0,
        "cost_per_result": round(spend / results, 2) if results else 0.0,
        "roas": round(value / spend, 2) if spend else 0.0,
    }
