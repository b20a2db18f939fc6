"""Prompts: what people ask for again and again; and completion of competitors' names."""

from __future__ import annotations

from typing import Final

from mcpfactory_runtime import Context
from mcpfactory_runtime.server.inputs import Argument, Reference

from .desk import desk_of

__all__ = ["PROMPTS", "complete"]


def battlecard(competitor_url: str, our_url: str) -> str:
    """Ask for a card that helps to sell against a competitor.

    Args:
        competitor_url: the competitor's site.
        our_url: our own site.
    """
    return (
        f"Compare {our_url} with {competitor_url} by compare_competitors, and read the pages that matter. Write a card of one page: "
        "who they are for, their prices beside ours, where they are stronger, where we are, three questions that show the difference. "
        "Name the address behind every fact. Say what their site does not tell."
    )


def weekly_update(days: str = "7") -> str:
    """Ask what competitors changed lately, and what it means.

    Args:
        days: how far back.
    """
    return (
        f"Run check_changes, then list_changes for the last {days} days. Report price changes first, then new or removed plans and "
        "features, then words. One line each: who, what, before and after, the address. End with what we should look at. Leave out what is noise."
    )


def pricing_landscape(urls: str) -> str:
    """Ask for a table of all prices in a market.

    Args:
        urls: addresses of the companies' sites, with commas.
    """
    return (
        f"For each of {urls}: find the pricing page, run find_prices, and make one table with company, plan, price, period, unit and billing. "
        "Do not convert currencies or periods without saying so. List what is on request. Give the address and the day for every company."
    )


def complete(ref: Reference, argument: Argument, ctx: Context) -> list[str]:
    """Return names of watched competitors for the variable of the report's template."""
    if ref.type != "ref/resource" or argument.name != "name":
        return []
    names = dict.fromkeys(watch.competitor for watch in desk_of(ctx).store.watches())
    return [name for name in names if name.lower().startswith(argument.value.lower())][:100]


PROMPTS: Final = (battlecard, weekly_update, pricing_landscape)
