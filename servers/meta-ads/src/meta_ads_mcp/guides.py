"""What helps a model to ask rightly: prompts for the usual questions, and pages on metrics, breakdowns and limits."""

from __future__ import annotations

from typing import Any, Final

from mcpfactory_runtime import Server

from . import graph

__all__ = ["add_to"]

BREAKDOWNS: Final = """\
# Breakdowns of insights

Alone, or together where they stand in one line:

- age, gender
- country | region | dma: one of these
- publisher_platform, platform_position, impression_device, device_platform: platform_position only together with publisher_platform
- hourly_stats_aggregated_by_advertiser_time_zone, hourly_stats_aggregated_by_audience_time_zone: alone; no reach, no frequency
- product_id: alone
- image_asset, video_asset, title_asset, body_asset, description_asset, call_to_action_asset, link_url_asset: one, for ads with several assets
- frequency_value: alone, with reach

With region, dma or hourly breakdowns Meta gives no actions from outside its apps (website purchases).
reach and frequency with breakdowns go back 13 months, other figures 37.

Attribution windows: 1d_click, 7d_click, 28d_click, 1d_view, 1d_ev (engaged view). Since January 2026 Meta gives no 7d_view and 28d_view.
Without windows actions are counted by each ad set's own attribution setting.

With action_breakdowns the lists of actions are split: action_type (the default), action_device, action_destination, action_carousel_card_name.
"""

METRICS: Final = """\
# Fields of insights that people ask for

| field | is |
|---|---|
| spend | what was paid, in the account's currency |
| impressions, reach, frequency | how often shown; to how many accounts; impressions for each |
| clicks, inline_link_clicks, outbound_clicks | all clicks; on links; on links that leave Meta |
| ctr, inline_link_click_ctr | clicks in percent of impressions |
| cpm, cpc, cost_per_inline_link_click | cost of 1,000 impressions, of a click, of a link click |
| actions, action_values | results by action_type, and their value |
| cost_per_action_type | cost of each |
| purchase_roas, website_purchase_roas | value of purchases for each unit of spend |
| results, cost_per_result | results of what the ad set optimises for |
| quality_ranking, engagement_rate_ranking, conversion_rate_ranking | compared with ads for the same audience; ads only |
| video_p25_watched_actions … video_p100_watched_actions, video_thruplay_watched_actions | how far videos were watched |
| campaign_id, campaign_name, adset_id, adset_name, ad_id, ad_name | what the row is about |

One purchase is under several action types (purchase, omni_purchase, offsite_conversion.fb_pixel_purchase): never add them up.
"""


def limits() -> dict[str, Any]:
    """How much of Meta's rate limits this server has used, as the last answers said."""
    return {"limits": graph.USAGE.report()}


def weekly_review(ad_account_id: str, result: str = "purchase") -> str:
    """Review the last week of an ad account: what changed, what to stop, what to raise."""
    return (
        f"Review the last 7 days of the ad account {ad_account_id}. Call account_overview, then compare_periods with result={result} "
        "for campaigns, and for ads where a campaign changed much. Say in five sentences what changed and why, then list at most three "
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
    """Register all of them."""
    for name, text, about in (
        ("breakdowns", BREAKDOWNS, "Which breakdowns of insights go together."),
        ("metrics", METRICS, "Which fields insights have, and what they mean."),
    ):
        _page(server, name, text, about)
    server.resource("meta-ads://limits", mime_type="application/json", description=limits.__doc__)(limits)
    for prompt in (weekly_review, find_waste):
        server.prompt(prompt)


def _page(server: Server, name: str, text: str, about: str) -> None:
    def page() -> str:
        return text

    server.resource(f"meta-ads://{name}", name=name, description=about, mime_type="text/markdown")(page)
