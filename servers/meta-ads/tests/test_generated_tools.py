"""Generated tools on the way of our own, and Meta's limits: what is sent, and what a refusal says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcpfactory_runtime import ToolError


def test_lists_name_fields_and_say_how_they_go_on(bench: Any, ids: Any) -> None:
    first = bench.result("list_ads", parent_id=ids.EUR, limit=2)
    assert [one["name"] for one in first["structuredContent"]["data"]] == ["Autumn tea A", "Autumn tea B"]
    assert "access_token=" in first["structuredContent"]["paging"]["next"]  # Meta puts the token there
    assert ids.TOKEN not in json.dumps(first)
    after = first["_meta"]["mcpfactory/next"]["arguments"]["after"]
    last = bench.result("list_ads", parent_id=ids.EUR, limit=2, after=after)
    assert [one["name"] for one in last["structuredContent"]["data"]] == ["Brand film"]
    assert "mcpfactory/next" not in (last.get("_meta") or {})


def test_a_campaign_is_made_paused_as_the_reference_shows(bench: Any, ids: Any) -> None:
    bench.done(
        "create_campaign",
        ad_account_id=ids.EUR,
        name="My campaign",
        objective="OUTCOME_TRAFFIC",
        special_ad_categories=[],
    )
    (sent,) = bench.writes()
    # curl -F 'name=My campaign' -F 'objective=OUTCOME_TRAFFIC' -F 'status=PAUSED' -F 'special_ad_categories=[]' …/act_<ID>/campaigns
    assert (sent.method, sent.path, sent.query) == ("POST", f"{ids.EUR}/campaigns", {})
    assert sent.form == {
        "name": "My campaign",
        "objective": "OUTCOME_TRAFFIC",
        "status": "PAUSED",
        "special_ad_categories": "[]",
    }
    assert sent.headers["content-type"] == "application/x-www-form-urlencoded"


def test_an_ad_set_sends_its_targeting_as_json(bench: Any, ids: Any) -> None:
    targeting = {"geo_locations": {"countries": ["DE"]}, "age_min": 25}
    made = bench.done(
        "create_ad_set", ad_account_id=ids.EUR, name="DE", campaign_id=ids.BRAND, optimization_goal="REACH",
        billing_event="IMPRESSIONS", targeting=targeting, daily_budget=2000,
    )  # fmt: skip
    (sent,) = bench.writes()
    assert json.loads(sent.form["targeting"]) == targeting
    assert (sent.path, sent.form["status"], sent.form["daily_budget"]) == (f"{ids.EUR}/adsets", "PAUSED", "2000")
    assert bench.meta.objects[made["id"]]["status"] == "PAUSED"


def test_a_second_budget_is_refused_in_metas_words(bench: Any, ids: Any) -> None:
    text = bench.refused(
        "create_ad_set", ad_account_id=ids.EUR, name="DE", campaign_id=ids.SALE, optimization_goal="REACH",
        billing_event="IMPRESSIONS", targeting={"geo_locations": {"countries": ["DE"]}}, daily_budget=2000,
    )  # fmt: skip
    assert "400 Bad Request: Invalid parameter (code 100, error_subcode 1885621)" in text
    assert "The campaign has a budget already." in text
    assert "fbtrace_id: AbCdEf0123456789" in text
    assert "hint: the budget is on the campaign" in text


def test_insights_send_breakdowns_windows_and_periods_as_the_reference_shows(bench: Any, ids: Any) -> None:
    found = bench.done(
        "get_insights", object_id=ids.EUR, level="campaign", breakdowns=["age", "gender"], fields=["campaign_name", "spend", "actions"],
        time_range={"since": "2026-10-01", "until": "2026-10-31"}, action_attribution_windows=["7d_click", "1d_view"],
        filtering=[{"field": "spend", "operator": "GREATER_THAN", "value": 0}],
    )  # fmt: skip
    query = bench.meta.seen[-1].query
    assert query["breakdowns"] == "age,gender"
    assert json.loads(query["time_range"]) == {"since": "2026-10-01", "until": "2026-10-31"}
    assert json.loads(query["action_attribution_windows"]) == ["7d_click", "1d_view"]
    assert json.loads(query["filtering"])[0]["operator"] == "GREATER_THAN"
    row = found["data"][0]
    assert {"age", "gender", "campaign_name", "spend"} <= set(row)
    assert {"1d_view", "7d_click"} <= set(row["actions"][0])


def test_an_expired_token_says_who_makes_a_new_one(bench: Any, ids: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("META_ADS_TOKEN", "EAAB-another-token")
    text = bench.refused("list_ad_accounts")
    assert "Session has expired" in text
    assert "code 190, error_subcode 463" in text
    assert "META_ADS_TOKEN" in text


def test_an_app_that_demands_proofs_gets_them(bench: Any, ids: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.meta.app_secret = "a1b2c3"
    assert "appsecret_proof" in bench.refused("list_ad_accounts")
    monkeypatch.setenv("META_ADS_APP_SECRET", "a1b2c3")
    assert bench.done("list_ad_accounts")["data"]


def test_the_version_is_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    from meta_ads_mcp.graph import _versioned

    address = "https://graph.facebook.com/v25.0"
    assert _versioned(address, {}) == address
    assert _versioned(address, {"META_ADS_API_VERSION": "v26.0"}) == "https://graph.facebook.com/v26.0"
    with pytest.raises(ToolError, match="hint: a version"):
        _versioned(address, {"META_ADS_API_VERSION": "latest"})


def test_a_version_that_is_none_is_said_to_be(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from meta_ads_mcp import graph

    monkeypatch.setenv("META_ADS_API_VERSION", "latest")
    graph._reader.cache_clear()
    assert "a version has the form v25.0" in bench.refused("account_overview", ad_account_id="act_1")


# --- limits ---


def _business(account: str, minutes: int, percent: int) -> dict[str, str]:
    entry = {
        "type": "ads_management",
        "call_count": percent,
        "total_cputime": 1,
        "total_time": 1,
        "estimated_time_to_regain_access": minutes,
    }
    return {"X-Business-Use-Case-Usage": json.dumps({account.removeprefix("act_"): [entry]})}


def test_a_throttled_account_is_left_alone_until_meta_takes_requests_again(bench: Any, ids: Any) -> None:
    bench.meta.usage = _business(ids.EUR, 7, 100)
    bench.meta.refuse = [ids.Refusal("There have been too many calls to this ad-account.", 80004, 2446079)]
    text = bench.refused("list_campaigns", ad_account_id=ids.EUR)
    assert "code 80004" in text
    assert "again in 7 minutes" in text
    before = len(bench.meta.seen)
    assert "Not sent: Meta accepts ads_management requests" in bench.refused("list_campaigns", ad_account_id=ids.EUR)
    assert len(bench.meta.seen) == before
    bench.meta.usage = {}
    assert bench.done("list_campaigns", ad_account_id=ids.JPY)["data"]  # another account goes on


def test_no_batch_goes_to_a_throttled_account_either(bench: Any, ids: Any) -> None:
    bench.meta.usage = _business(ids.EUR, 7, 100)
    bench.done("list_campaigns", ad_account_id=ids.EUR)
    bench.meta.usage = {}
    assert "Not sent" in bench.refused("account_overview", ad_account_id=ids.EUR)
    assert bench.done("account_overview", ad_account_id=ids.JPY)["running"]


def test_a_refusal_with_a_time_to_wait_is_not_tried_again(bench: Any, ids: Any) -> None:
    bench.meta.usage = _business(ids.EUR, 7, 100)
    bench.meta.refuse = [ids.Refusal("User request limit reached", 17, 2446079, status=429)]
    text = bench.refused("list_campaigns", ad_account_id=ids.EUR)
    assert "429 Too Many Requests: User request limit reached (code 17, error_subcode 2446079)" in text
    assert len(bench.meta.seen) == 1


def test_a_nearly_used_limit_is_told_with_the_answer(bench: Any, ids: Any) -> None:
    bench.meta.usage = _business(ids.EUR, 0, 88)
    result = bench.result("list_campaigns", ad_account_id=ids.EUR)
    assert "88 % of Meta's limit" in result["content"][-1]["text"]
