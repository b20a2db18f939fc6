"""Prompts for common questions, and resources on metrics, breakdowns and rate limits."""

from __future__ import annotations

from typing import Any, Final

from mcpfactory_runtime import Server

from . import graph

__all__ = ["add_to"]

BREAKDOWNS: Final = """\
# Breakdowns of insights

Breakdowns in one line can be combined:

- age, gender
- country | region | dma: one of these
- publisher_platform, platform_position, impression_device, device_platform: platform_position only together with publisher_platform
- hourly_stats_aggregated_by_advertiser_time_zone, hourly_stats_aggregated_by_audience_time_zone: alone; no reach, no frequency
- product_id: alone
- image_asset, video_asset, title_asset, body_asset, description_asset, call_to_action_asset, link_url_asset: one, for ads with several assets
- frequency_value: alone, with reach

With region, dma or hourly breakdowns, Meta returns no actions outside its apps (website purchases).
reach and frequency with breakdowns go back 13 months, other figures 37.

Attribution windows: 1d_click, 7d_click, 28d_click, 1d_view, 1d_ev (engaged view). Since January 2026, 7d_view and 28d_view are not available.
Without windows, each ad set's attribution setting applies.

action_breakdowns split the lists of actions: action_type (the default), action_device, action_destination, action_carousel_card_name.
"""

METRICS: Final = """\
# Common fields of insights

| field | meaning |
|---|---|
| spend | amount spent, in the account's currency |
| impressions, reach, frequency | number of views; number of accounts; impressions per account |
| clicks, inline_link_clicks, outbound_clicks | all clicks; clicks on links; clicks on links that leave Meta |
| ctr, inline_link_click_ctr | clicks in percent of impressions |
| cpm, cpc, cost_per_inline_link_click | cost of 1,000 impressions, of a click, of a link click |
| actions, action_values | results by action_type, and their values |
| cost_per_action_type | cost per result by action_type |
| purchase_roas, website_purchase_roas | value of purchases per unit of spend |
| results, cost_per_result | results by the ad set's optimization goal |
| quality_ranking, engagement_rate_ranking, conversion_rate_ranking | compared with ads for the same audience; ads only |
| video_p25_watched_actions … video_p100_watched_actions, video_thruplay_watched_actions | video views by watched part |
| campaign_id, campaign_name, adset_id, adset_name, ad_id, ad_name | object of the row |

One purchase appears under several action types (purchase, omni_purchase, offsite_conversion.fb_pixel_purchase): never add them.
"""


def limits() -> dict[str, Any]:
    """Usage of Meta's rate limits by this server, from the latest responses."""
    return {"limits": graph.USAGE.report()}


def weekly_review(ad_account_id: str, result: str = "purchase") -> str:
    """Review the last week of an ad account: what changed, what to stop, what to raise."""
    return (
        f"Review the last 7 days of the ad account {ad_account_id}. Call account_overview, then compare_periods with result={result} "
        "for campaigns, and for ads where a campaign changed much. Explain in five sentences what changed and why, then list at most three "
        "things to pause and three budgets to raise, with figures. Change nothing before I agree."
    )


def find_waste(ad_account_id: str, result: str = "purchase") -> str:
    """Find ads that spend without results."""
    return (
        f"Find ads of {ad_account_id} that wasted money in the last 30 days: call get_insights with level=ad, date_preset=last_30d, "
        f"sort spend_descending. Count {result} as the result. List those with spend and no result, and those whose cost for a result "
        "is twice the account's, with what was spent. Offer to pause them with set_status; do so only when I agree."
    )


def add_to(server: Server) -> None:
    """Register the resources and prompts."""
    for name, text, about in (
        ("breakdowns", BREAKDOWNS, "Valid combinations of insights breakdowns."),
        ("metrics", METRICS, "Common fields of insights and their meaning."),
    ):
        _page(server, name, text, about)
    server.resource("meta-ads://limits", mime_type="application/json", description=limits.__doc__)(limits)
    for prompt in (weekly_review, find_waste):
        server.prompt(prompt)


def _page(server: Server, name: str, text: str, about: str) -> None:
    def page() -> str:
        return text

    server.resource(f"meta-ads://{name}", name=name, description=about, mime_type="text/markdown")(page)
