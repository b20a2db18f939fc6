"""Prompts for common tasks, and completion of competitors' names."""

from __future__ import annotations

from typing import Final

from mcpfactory_runtime import Context
from mcpfactory_runtime.server.inputs import Argument, Reference

from .desk import desk_of

__all__ = ["PROMPTS", "complete"]


def battlecard(competitor_url: str, our_url: str) -> str:
    """Ask for a sales battlecard against a competitor.

    Args:
        competitor_url: URL of the competitor's site.
        our_url: URL of your own site.
    """
    return (
        f"Compare {our_url} with {competitor_url} by compare_competitors, and read relevant pages. Write a card of one page: "
        "target customers, their prices next to ours, where they are stronger, where we are, three questions that show the difference. "
        "Cite the URL for every fact. List what their site does not answer."
    )


def weekly_update(days: str = "7") -> str:
    """Ask for recent changes of competitors and their meaning.

    Args:
        days: number of days to cover.
    """
    return (
        f"Run check_changes, then list_changes for the last {days} days. Report price changes first, then new or removed plans and "
        "features, then texts. One line each: competitor, change, before and after, URL. End with recommended actions. Omit noise."
    )


def pricing_landscape(urls: str) -> str:
    """Ask for a table of all prices in a market.

    Args:
        urls: URLs of the companies' sites, separated by commas.
    """
    return (
        f"For each of {urls}: find the pricing page, run find_prices, and make one table with company, plan, price, period, unit and billing. "
        "Mark converted currencies and periods. List prices on request. Give URL and date for every company."
    )


def complete(ref: Reference, argument: Argument, ctx: Context) -> list[str]:
    """Complete the names of watched competitors for the report template."""
    if ref.type != "ref/resource" or argument.name != "name":
        return []
    names = dict.fromkeys(watch.competitor for watch in desk_of(ctx).store.watches())
    return [name for name in names if name.lower().startswith(argument.value.lower())][:100]


PROMPTS: Final = (battlecard, weekly_update, pricing_landscape)
