"""Comparison of requests and mock responses with the examples of Meta's reference.

Each row is a call of the reference or of an example of Meta's business SDK, with other values. The request must be as documented,
and the mock response must have every documented member, with the same JSON type and format. Types are from the specifications of
Meta's SDKs (facebook-business-sdk-codegen, api_specs), examples from facebook-python-business-sdk, both of June 2026.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pytest
from mcpfactory_runtime.testing import differences

Json = dict[str, Any]

model: Any = import_module("meta_ads_upstream")  # the name under which conftest.py loads it

FORM = "application/x-www-form-urlencoded"
EUR, SALE, SALE_DE, AD_A, CREATIVE = model.EUR, model.SALE, model.SALE_DE, model.AD_A, model.CREATIVE
ID, MINOR = "23842600000000001", "5000"  # IDs and budgets (minor units) are strings of digits
STATES = {"ACTIVE", "PAUSED", "DELETED", "ARCHIVED"}
EFFECTIVE = STATES | {
    *(
        "PENDING_REVIEW",
        "DISAPPROVED",
        "PREAPPROVED",
        "PENDING_BILLING_INFO",
        "CAMPAIGN_PAUSED",
        "ADSET_PAUSED",
        "IN_PROCESS",
    ),
    "WITH_ISSUES",
}


@dataclass(frozen=True, slots=True)
class Example:
    """A tool call, and the documented request and response that belong to it.

    `query` and `form` are the expected values; a value that is not a string is sent as JSON.
    """

    where: str
    tool: str
    arguments: Json
    method: str
    path: str
    query: Json = field(default_factory=dict)
    form: Json = field(default_factory=dict)
    answer: Any = None
    status: int = 200
    before: tuple[tuple[str, Json], ...] = ()  # calls to make first


def page(*rows: Json) -> Json:
    """Return a page of an edge with cursors (Graph API, Paginated Results)."""
    return {"data": list(rows), "paging": {"cursors": {"before": "", "after": ""}}}


MADE = {"id": ID}
DONE = {"success": True}
DAYS = {"date_start": "2009-03-28", "date_stop": "2016-04-01"}
TARGETING = {
    "age_min": 20, "age_max": 24, "genders": [1], "facebook_positions": ["feed"], "publisher_platforms": ["facebook", "audience_network"],
    "geo_locations": {"countries": ["US"], "regions": [{"key": "4081"}], "cities": [{"key": "777934", "radius": 10, "distance_unit": "mile"}]},
}  # fmt: skip
ADSET = {
    "name": "My First AdSet", "campaign_id": model.BRAND, "billing_event": "IMPRESSIONS", "optimization_goal": "POST_ENGAGEMENT",
    "targeting": TARGETING,
}  # fmt: skip
TIMES = {"start_time": "2026-12-01T00:46:29-0700", "end_time": "2026-12-08T00:46:29-0700"}
CAMPAIGN = {"name": "My campaign", "objective": "OUTCOME_TRAFFIC", "special_ad_categories": []}
STORY = f"{model.PAGE}_104500000000002"
JOB = {
    "id": "6044775548468", "account_id": "1010035716096012", "time_ref": 1459788928, "async_percent_completion": 42,
    "async_status": {"Job Not Started", "Job Started", "Job Running", "Job Completed", "Job Failed", "Job Skipped"},
}  # fmt: skip
IMAGE = {
    "hash": "", "url": "https://a.test", "url_128": "https://a.test", "url_256": "https://a.test", "url_256_height": "260",
    "url_256_width": "260", "height": 600, "width": 600, "name": "",
}  # fmt: skip
ERROR = {"message": "", "type": "OAuthException", "code": 100, "error_subcode": 33, "fbtrace_id": "EJplcsCHuLu"}
SPEC = {"geo_locations": {"countries": ["US"]}, "age_min": 20, "age_max": 40}
WHOLE = {"date_preset": "last_90d", "level": "ad", "fields": ["impressions", "spend"]}

EXAMPLES = (
    Example(
        "SDK, AdAccountCampaignsPost; Ad Account Campaigns, Creating", "create_campaign", {"ad_account_id": EUR, **CAMPAIGN},
        "POST", f"{EUR}/campaigns", form={**CAMPAIGN, "status": "PAUSED"}, answer=MADE,
    ),
    Example(
        "SDK, AdAccountCampaignsPostCategories", "create_campaign",
        {"ad_account_id": EUR, **CAMPAIGN, "objective": "OUTCOME_LEADS", "daily_budget": 1000, "special_ad_category_country": ["MX"]},
        "POST", f"{EUR}/campaigns", answer=MADE,
        form={**CAMPAIGN, "objective": "OUTCOME_LEADS", "status": "PAUSED", "daily_budget": "1000", "special_ad_category_country": ["MX"]},
    ),
    Example(
        "SDK, AdAccountCampaignsEdge", "list_campaigns", {"ad_account_id": EUR, "effective_status": ["ACTIVE", "PAUSED"], "fields": ["name", "objective"]},
        "GET", f"{EUR}/campaigns", query={"effective_status": ["ACTIVE", "PAUSED"], "fields": "name,objective"},
        answer=page({"id": ID, "name": "", "objective": "OUTCOME_TRAFFIC"}),
    ),
    Example(
        "Campaign node, Reading; types of Campaign", "get_campaign",
        {"campaign_id": SALE, "fields": ["name", "status", "effective_status", "daily_budget", "budget_remaining", "special_ad_categories"]},
        "GET", SALE, query={"fields": "name,status,effective_status,daily_budget,budget_remaining,special_ad_categories"},
        answer={"id": ID, "name": "", "status": STATES, "effective_status": EFFECTIVE, "daily_budget": MINOR, "budget_remaining": MINOR, "special_ad_categories": []},
    ),
    Example(
        "Campaign node, Updating; Return Type", "update_campaign", {"campaign_id": SALE, "name": "Winter"}, "POST", SALE,
        form={"name": "Winter"}, answer=DONE,
    ),
    Example(
        "Ad Campaign Group Copies, Creating: Example response", "copy_campaign", {"campaign_id": SALE, "deep_copy": False},
        "POST", f"{SALE}/copies", form={"deep_copy": "false", "status_option": "PAUSED"},
        answer={"copied_campaign_id": ID, "ad_object_ids": [{"ad_object_type": "campaign", "source_id": ID, "copied_id": ID}]},
    ),
    Example(
        "SDK, AdAccountAdSetsPostCreateAdSet", "create_ad_set", {"ad_account_id": EUR, **ADSET, **TIMES, "lifetime_budget": 20000, "bid_amount": 500},
        "POST", f"{EUR}/adsets", form={**ADSET, **TIMES, "lifetime_budget": "20000", "bid_amount": "500", "status": "PAUSED"}, answer=MADE,
    ),
    Example(
        "SDK, AdAccountAdSetsPostInterestTargeting", "create_ad_set",
        {"ad_account_id": EUR, **ADSET, "optimization_goal": "REACH", "daily_budget": 10000, "promoted_object": {"page_id": model.PAGE}},
        "POST", f"{EUR}/adsets", answer=MADE,
        form={**ADSET, "optimization_goal": "REACH", "daily_budget": "10000", "promoted_object": {"page_id": model.PAGE}, "status": "PAUSED"},
    ),
    Example(
        "SDK, AdCampaignGroupAdsetsEdge", "list_ad_sets", {"parent_id": model.BRAND, "fields": ["name", "end_time", "lifetime_budget"]},
        "GET", f"{model.BRAND}/adsets", query={"fields": "name,end_time,lifetime_budget"},
        answer=page({"id": ID, "name": "", "end_time": "2024-07-27T00:46:29-0700", "lifetime_budget": MINOR}),
    ),
    Example(
        "SDK, AdAccountAdsPost", "create_ad", {"ad_account_id": EUR, "name": "My Ad", "adset_id": SALE_DE, "creative": {"creative_id": CREATIVE}},
        "POST", f"{EUR}/ads", form={"name": "My Ad", "adset_id": SALE_DE, "creative": {"creative_id": CREATIVE}, "status": "PAUSED"}, answer=MADE,
    ),
    Example(
        "SDK, AdCampaignGroupAdsEdgeAdgroupsWithStatusArchived; types of Ad", "list_ads",
        {"parent_id": SALE, "effective_status": ["ACTIVE"], "fields": ["name", "adset_id", "creative"]},
        "GET", f"{SALE}/ads", query={"effective_status": ["ACTIVE"], "fields": "name,adset_id,creative"},
        answer=page({"id": ID, "name": "", "adset_id": ID, "creative": {"id": ID}}),
    ),
    Example(
        "SDK, AdAccountAdCreativesPost", "create_ad_creative", {"ad_account_id": EUR, "name": "Sample Promoted Post", "object_story_id": STORY},
        "POST", f"{EUR}/adcreatives", form={"name": "Sample Promoted Post", "object_story_id": STORY}, answer=MADE,
    ),
    Example(
        "SDK, AdCreativePreviewsEdgePreview", "get_ad_previews", {"ad_id": AD_A, "ad_format": "DESKTOP_FEED_STANDARD"},
        "GET", f"{AD_A}/previews", query={"ad_format": "DESKTOP_FEED_STANDARD"}, answer={"data": [{"body": ""}]},
    ),
    Example(
        "Ad Account Adimages, Creating: bytes; Return Type", "upload_ad_image", {"ad_account_id": EUR, "bytes": model.PNG},
        "POST", f"{EUR}/adimages", form={"bytes": model.PNG}, answer={"images": {"bytes": IMAGE}},
    ),
    Example(
        "SDK, AdsInsightsEdgeCampaignGroupInsights; Insights API, Quickstart", "get_insights",
        {"object_id": SALE, "date_preset": "last_3d", "fields": ["impressions"]}, "GET", f"{SALE}/insights",
        query={"date_preset": "last_3d", "fields": "impressions"}, answer=page({"impressions": "2466376", **DAYS}),
    ),
    Example(
        "SDK, AdsInsightsEdgeCampaignGroupAdLevelInsights", "get_insights", {"object_id": SALE, "level": "ad", "fields": ["impressions", "ad_id"]},
        "GET", f"{SALE}/insights", query={"level": "ad", "fields": "impressions,ad_id"}, answer=page({"impressions": "9708", "ad_id": ID, **DAYS}),
    ),
    Example(
        "Insights API, Breakdowns and Attribution Windows; types of AdsInsights and AdsActionStats", "get_insights",
        {
            "object_id": EUR, "level": "campaign", "fields": ["spend", "actions"], "breakdowns": ["age", "gender"],
            "time_range": {"since": "2026-10-01", "until": "2026-10-31"}, "action_attribution_windows": ["1d_view", "7d_click"],
        },
        "GET", f"{EUR}/insights",
        query={
            "level": "campaign", "fields": "spend,actions", "breakdowns": "age,gender",
            "time_range": {"since": "2026-10-01", "until": "2026-10-31"}, "action_attribution_windows": ["1d_view", "7d_click"],
        },
        answer=page({
            "spend": "48.20", "age": {"18-24", "25-34", "35-44"}, "gender": {"female", "male", "unknown"}, **DAYS,
            "actions": [{"action_type": "link_click", "value": "120", "1d_view": "3", "7d_click": "117"}],
        }),
    ),
    Example(
        "Insights API, Asynchronous Jobs: the POST", "start_insights_job", {"object_id": EUR, **WHOLE}, "POST", f"{EUR}/insights",
        form={"date_preset": "last_90d", "level": "ad", "fields": "impressions,spend"}, answer={"report_run_id": "6023920149050"},
    ),
    Example(
        "Insights API, Asynchronous Jobs: status of the job", "get_insights_job", {"report_run_id": "6023920149000"}, "GET", "6023920149000",
        answer=JOB, before=(("start_insights_job", {"object_id": EUR, **WHOLE}),),
    ),
    Example(
        "Insights API, Asynchronous Jobs: the job is completed", "get_insights_job", {"report_run_id": "6023920149000"}, "GET", "6023920149000",
        answer={**JOB, "async_status": {"Job Completed"}, "time_completed": 1459788990},
        before=(("start_insights_job", {"object_id": EUR, **WHOLE}), ("get_insights_job", {"report_run_id": "6023920149000"})),
    ),
    Example(
        "SDK, AdAccountReachEstimate; types of AdAccountReachEstimate", "estimate_reach", {"ad_account_id": EUR, "targeting_spec": SPEC},
        "GET", f"{EUR}/reachestimate", query={"targeting_spec": SPEC},
        answer={"data": {"users_lower_bound": 1200000, "users_upper_bound": 1400000, "estimate_ready": True}},
    ),
    Example(
        "Targeting Search: adinterest", "search_targeting", {"type": "adinterest", "q": "green tea"}, "GET", "search",
        query={"type": "adinterest", "q": "green tea"}, answer={"data": [{"id": ID, "name": "", "path": [""]}]},
    ),
    Example(
        "SDK, AdAccountNode; types of AdAccount", "get_ad_account",
        {"ad_account_id": EUR, "fields": ["account_id", "name", "account_status", "currency", "timezone_name", "timezone_offset_hours_utc", "amount_spent", "spend_cap", "balance"]},
        "GET", EUR, query={"fields": "account_id,name,account_status,currency,timezone_name,timezone_offset_hours_utc,amount_spent,spend_cap,balance"},
        answer={
            "id": "", "account_id": ID, "name": "", "account_status": 1, "currency": "USD", "timezone_name": "", "timezone_offset_hours_utc": -7.0,
            "amount_spent": MINOR, "spend_cap": MINOR, "balance": MINOR,
        },
    ),
    Example(
        "Ad Account Activities; types of AdActivity", "list_activities", {"ad_account_id": EUR, "fields": ["event_time", "event_type", "object_id", "extra_data"]},
        "GET", f"{EUR}/activities", query={"fields": "event_time,event_type,object_id,extra_data"},
        answer=page({"event_time": "2024-07-27T00:46:29+0000", "event_type": "", "object_id": ID, "extra_data": ""}),
    ),
    Example(
        "Graph API, Handle Errors: Sample Response", "get_campaign", {"campaign_id": "999", "fields": ["name"]}, "GET", "999",
        query={"fields": "name"}, status=400, answer={"error": ERROR},
    ),
)  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.where)
def test_a_call_is_made_and_answered_as_documented(example: Example, bench: Any) -> None:
    for tool, arguments in example.before:
        bench.done(tool, **arguments)
    bench.meta.seen.clear()
    result = bench.result(example.tool, **example.arguments)
    (seen,) = bench.meta.seen
    assert (seen.method, seen.path) == (example.method, example.path)
    assert (_read(seen.query, example.query), _read(seen.form, example.form)) == (example.query, example.form)
    assert seen.headers["authorization"] == f"Bearer {model.TOKEN}"
    assert seen.headers.get("content-type") == (FORM if example.form else None)
    assert seen.status == example.status
    assert differences(example.answer, seen.answer) == []
    if example.status == 200:
        assert result["structuredContent"] == _hidden(seen.answer)
    else:
        assert seen.answer["error"]["message"] in result["content"][0]["text"]


def _read(given: dict[str, str], documented: Json) -> Json:
    """Return the received values; parse JSON where the documented value is not a string."""
    return {
        name: text if isinstance(documented.get(name, ""), str) else json.loads(text) for name, text in given.items()
    }


def _hidden(answer: Any) -> Any:
    """Return a response without the token, which is part of page URLs."""
    return json.loads(json.dumps(answer).replace(model.TOKEN, "[redacted]"))
