"""The server against a modelled Marketing API; `_generated/` tests every operation of the document."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pytest
from mcpfactory_runtime import ToolError
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.testing import connect

OWN = {
    "account_overview", "compare_periods", "diagnose_delivery", "run_report", "read_report",
    "create_link_ad", "change_budget", "plan_budget_increase", "set_status", "delete_object",
}  # fmt: skip


def _names(*options: str, **environ: str) -> set[str]:
    """The tools of a process that is started with options and variables."""

    async def names() -> set[str]:
        command = [sys.executable, "-m", "meta_ads_mcp", *options]
        async with Client.connect_stdio(command, env={"PYTHONPATH": os.pathsep.join(sys.path), **environ}) as client:
            return {tool["name"] for tool in await client.list_tools()}

    return asyncio.run(names())


def test_profiles_offer_what_their_people_need() -> None:
    daily = _names(MCPFACTORY_PROFILE="daily")
    assert daily >= OWN | {"get_insights", "list_campaigns"}
    assert "create_campaign" not in daily


@pytest.mark.parametrize(
    ("options", "environ"),
    [
        (["--profile", "read-only"], {}),
        (["--profile=read-only"], {"MCPFACTORY_PROFILE": "full"}),
        ([], {"MCPFACTORY_PROFILE": "read-only"}),
    ],
)
def test_read_only_has_no_tool_that_changes_anything(options: list[str], environ: dict[str, str]) -> None:
    names = _names(*options, **environ)
    assert names & OWN == {"account_overview", "compare_periods", "diagnose_delivery", "run_report", "read_report"}
    assert not [
        name
        for name in names
        if name.startswith(("create_", "update_", "copy_", "upload_", "set_", "change_", "delete_"))
    ]


# --- generated tools on the way of our own ---


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
    assert "Not sent: Meta takes ads_management requests" in bench.refused("list_campaigns", ad_account_id=ids.EUR)
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


# --- budgets ---


def test_a_small_raise_is_made_and_shown_in_the_currency(bench: Any, ids: Any) -> None:
    told = bench.done("change_budget", object_id=ids.SALE, amount=55)
    assert (told["before"], told["after"], told["change"], told["changed"]) == (
        "50.00 EUR",
        "55.00 EUR",
        "+10.0 %",
        True,
    )
    (sent,) = bench.writes()
    assert (sent.path, sent.form) == (ids.SALE, {"daily_budget": "5500"})


def test_yen_have_no_minor_units(bench: Any, ids: Any) -> None:
    told = bench.done("change_budget", object_id=ids.JAPAN, percent=1)
    assert (told["before"], told["after"]) == ("5,000 JPY", "5,050 JPY")
    assert bench.writes()[0].form == {"daily_budget": "5050"}


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-06-18"])
def test_a_large_raise_asks_the_person(bench: Any, ids: Any, revision: str) -> None:
    told = bench.done("change_budget", object_id=ids.SALE, amount=80, agree=True, revision=revision)
    assert told["after"] == "80.00 EUR"
    assert bench.asked == ["The daily budget of Autumn sale goes from 50.00 EUR to 80.00 EUR (+60.0 %). Go ahead?"]
    assert [one.form for one in bench.writes()] == [{"daily_budget": "8000"}]


def test_who_declines_changes_nothing(bench: Any, ids: Any) -> None:
    assert "did not agree" in bench.refused("change_budget", object_id=ids.SALE, amount=80, agree=False)
    assert bench.writes() == []


def test_a_form_that_is_sent_unticked_is_no_consent(bench: Any, ids: Any) -> None:
    assert "did not agree" in bench.refused("change_budget", object_id=ids.SALE, amount=80, agree="unticked")
    assert len(bench.asked) == 1
    assert bench.writes() == []


def test_a_client_that_cannot_ask_needs_the_sentence(bench: Any, ids: Any) -> None:
    text = bench.refused("change_budget", object_id=ids.SALE, amount=80)
    sentence = text.split('confirm="')[1].rstrip('"')
    assert "50.00 EUR to 80.00 EUR" in sentence
    assert bench.writes() == []
    for guess in ("yes", "true", sentence.replace("80", "90")):
        bench.refused("change_budget", object_id=ids.SALE, amount=80, confirm=guess)
    assert bench.writes() == []
    assert bench.done("change_budget", object_id=ids.SALE, amount=80, confirm=sentence)["changed"]


def test_a_client_that_asks_does_not_let_the_model_agree(bench: Any, ids: Any) -> None:
    sentence = bench.refused("change_budget", object_id=ids.SALE, amount=80).split('confirm="')[1].rstrip('"')
    bench.refused("change_budget", object_id=ids.SALE, amount=80, confirm=sentence, agree=False)
    assert bench.writes() == []


@pytest.mark.parametrize(
    ("variable", "value", "asks"), [("META_ADS_CONFIRM_PERCENT", "70", False), ("META_ADS_CONFIRM_AMOUNT", "3", True)]
)
def test_what_is_asked_is_the_operators_choice(
    bench: Any, ids: Any, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, asks: bool
) -> None:
    monkeypatch.setenv(variable, value)
    amount = 54 if asks else 80
    assert bench.result("change_budget", object_id=ids.SALE, amount=amount).get("isError", False) is asks
    monkeypatch.setenv(variable, "much")
    assert variable in bench.refused("change_budget", object_id=ids.SALE, amount=600)


def test_lowering_asks_nobody_and_the_same_changes_nothing(bench: Any, ids: Any) -> None:
    assert bench.done("change_budget", object_id=ids.SALE, percent=-50)["after"] == "25.00 EUR"
    assert bench.done("change_budget", object_id=ids.SALE, amount=25)["changed"] is False
    assert len(bench.writes()) == 1


def test_a_budget_that_is_elsewhere_is_said_to_be(bench: Any, ids: Any) -> None:
    assert "on its ad sets" in bench.refused("change_budget", object_id=ids.BRAND, amount=10)
    assert "either amount or percent" in bench.refused("change_budget", object_id=ids.SALE)
    assert "GET /1 failed: 400" in bench.refused("change_budget", object_id="1", amount=10)
    assert "minimum is 1.00 EUR" in bench.refused("change_budget", object_id=ids.SALE, amount=0.5)


def test_settings_cannot_change_money_or_state(bench: Any, ids: Any) -> None:
    for tool, node in (
        ("update_campaign", {"campaign_id": ids.SALE}),
        ("update_ad_set", {"ad_set_id": ids.SALE_DE}),
        ("update_ad", {"ad_id": ids.AD_A}),
    ):
        for name, value in (("status", "ACTIVE"), ("daily_budget", 1)):
            assert name in bench.refused(tool, **node, **{name: value})
    assert bench.writes() == []


def test_a_higher_budget_is_planned_for_some_days(bench: Any, ids: Any) -> None:
    days = {"start": "2026-11-27T00:00:00+01:00", "end": "2026-11-29T00:00:00+01:00"}
    assert "a person must agree" in bench.refused("plan_budget_increase", campaign_id=ids.SALE, amount=30, **days)
    assert "no daily budget" in bench.refused("plan_budget_increase", campaign_id=ids.BRAND, amount=30, **days)
    assert "offset" in bench.refused(
        "plan_budget_increase", campaign_id=ids.SALE, amount=30, start="2026-11-27", end=days["end"]
    )
    assert "not after" in bench.refused(
        "plan_budget_increase", campaign_id=ids.SALE, amount=30, start=days["end"], end=days["start"]
    )
    told = bench.done("plan_budget_increase", campaign_id=ids.SALE, amount=30, agree=True, **days)
    assert (told["before"], told["during"]) == ("50.00 EUR", "80.00 EUR")
    (sent,) = bench.writes()
    assert sent.path == f"{ids.SALE}/budget_schedules"
    assert sent.form == {
        "budget_value": "3000",
        "budget_value_type": "ABSOLUTE",
        "time_start": "1795734000",
        "time_end": "1795906800",
    }


# --- states ---


def test_several_ads_are_paused_by_one_batch_without_a_question(bench: Any, ids: Any) -> None:
    told = bench.done("set_status", kind="ad", ids=[ids.AD_A, ids.AD_B, "99"], status="PAUSED")
    assert [(one["name"], one["before"], one["after"]) for one in told["objects"]] == [
        ("Autumn tea A", "ACTIVE", "PAUSED"),
        ("Autumn tea B", "ACTIVE", "PAUSED"),
    ]
    assert told["failed"][0]["id"] == "99"
    assert "look it up" in told["failed"][0]["next"]
    reading, writing = bench.meta.seen
    assert (writing.path, writing.form["include_headers"]) == ("", "false")
    assert json.loads(writing.form["batch"]) == [
        {"method": "POST", "relative_url": ids.AD_A, "body": "status=PAUSED"},
        {"method": "POST", "relative_url": ids.AD_B, "body": "status=PAUSED"},
    ]
    assert unquote_plus(json.loads(reading.form["batch"])[0]["relative_url"]).startswith(f"{ids.AD_A}?fields=id,name")


def test_switching_on_says_what_it_may_cost_and_asks(bench: Any, ids: Any) -> None:
    bench.done("set_status", kind="campaign", ids=[ids.SALE], status="PAUSED")
    bench.done("set_status", kind="campaign", ids=[ids.SALE], status="ACTIVE", agree=True)
    assert bench.asked == [
        "Switch on 1 campaign (Autumn sale): money is spent from now on, up to 50.00 EUR a day. Go ahead?"
    ]
    assert bench.meta.objects[ids.SALE]["status"] == "ACTIVE"


def test_what_runs_already_is_not_switched_on_again(bench: Any, ids: Any) -> None:
    assert bench.done("set_status", kind="campaign", ids=[ids.SALE], status="ACTIVE")["changed"] == 0
    assert len(bench.writes()) == 1  # the batch that read


def test_archiving_and_deleting_ask(bench: Any, ids: Any) -> None:
    assert "cannot be taken back" in bench.refused("set_status", kind="ad", ids=[ids.AD_C], status="ARCHIVED")
    text = bench.refused("delete_object", kind="campaign", object_id=ids.SALE)
    assert "Delete the campaign Autumn sale" in text
    assert ids.SALE in bench.meta.objects
    assert bench.done("delete_object", kind="campaign", object_id=ids.SALE, agree=True)["deleted"] == ids.SALE
    assert [(one.method, one.path) for one in bench.writes() if one.path][-1] == ("DELETE", ids.SALE)


def test_ids_are_one_to_fifty(bench: Any) -> None:
    assert "one to 50" in bench.refused("set_status", kind="ad", ids=[], status="PAUSED")
    assert "one to 50" in bench.refused("set_status", kind="ad", ids=[str(one) for one in range(51)], status="PAUSED")
    assert "Nothing was changed" in bench.refused("set_status", kind="ad", ids=["1"], status="PAUSED")


# --- reports ---


def test_a_report_is_started_polled_and_read(bench: Any, ids: Any) -> None:
    told = bench.done(
        "run_report",
        object_id=ids.EUR,
        level="ad",
        since="2026-08-01",
        until="2026-10-31",
        breakdowns=["age", "country"],
        time_increment="1",
        max_rows=600,
    )
    (start,) = bench.writes()
    assert (start.path, start.form["breakdowns"], start.form["level"]) == (f"{ids.EUR}/insights", "age,country", "ad")
    assert json.loads(start.form["time_range"]) == {"since": "2026-08-01", "until": "2026-10-31"}
    assert told["period"] == "2026-08-01 to 2026-10-31"
    assert told["rows"][0]["actions"]["omni_purchase"]
    answers = [told]
    while "after" in answers[-1]:
        answers.append(
            bench.done("read_report", report_run_id=told["report_run_id"], after=answers[-1]["after"], max_rows=600)
        )
    assert all(len(json.dumps(one)) < 100_000 for one in answers)
    rows = [
        (one["ad_name"], one["date_start"], one["age"], one["country"]) for answer in answers for one in answer["rows"]
    ]
    assert len(rows) == len(set(rows)) == 3 * 92 * 6  # of 3 ads, 92 days, 6 splits: none left out, none twice
    assert [one["progress"] for one in bench.progress][:2] == [50, 100]


def test_a_job_that_takes_long_is_read_later(bench: Any, ids: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("META_ADS_WAIT_SECONDS", "0")
    monkeypatch.setenv("META_ADS_POLL_SECONDS", "1")
    told = bench.done("run_report", object_id=ids.EUR)
    assert (told["percent"], told["rows"]) == (50, [])
    assert "read_report" in told["next"]
    assert bench.done("read_report", report_run_id=told["report_run_id"])["rows"]


def test_a_job_that_fails_says_why(bench: Any, ids: Any) -> None:
    bench.meta.job_status = "Job Failed"
    text = bench.refused("run_report", object_id=ids.EUR)
    assert "Job Failed: Too much data (code 1, error_subcode 1487534)" in text
    assert "shorter period" in text


def test_a_report_is_a_task_where_the_client_knows_them(bench: Any, ids: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from meta_ads_mcp.server import server

    monkeypatch.setenv("META_ADS_WAIT_SECONDS", "0")  # holds for ordinary calls only
    bench.meta.polls = 4

    async def run() -> tuple[dict[str, Any], dict[str, Any]]:
        async with connect(server, "2025-11-25") as client:
            made = await client.request(
                "tools/call", {"name": "run_report", "arguments": {"object_id": ids.EUR}, "task": {}}
            )
            return made["task"], await client.request("tasks/result", {"taskId": made["task"]["taskId"]})

    task, result = asyncio.run(run())
    assert task["status"] == "working"
    assert result["structuredContent"]["percent"] == 100
    assert result["structuredContent"]["rows"]


def test_a_large_synchronous_request_leads_to_the_report(bench: Any, ids: Any) -> None:
    text = bench.refused(
        "get_insights",
        object_id=ids.EUR,
        level="ad",
        breakdowns=["age"],
        time_range={"since": "2026-01-01", "until": "2026-10-31"},
    )
    assert "reduce the amount of data" in text
    assert "run_report" in text


def test_wrong_periods_are_refused_before_a_job_is_made(bench: Any, ids: Any) -> None:
    assert "go together" in bench.refused("run_report", object_id=ids.EUR, since="2026-01-01")
    assert "1 to 1000" in bench.refused("run_report", object_id=ids.EUR, max_rows=1001)
    assert "1 to 1000" in bench.refused("read_report", report_run_id="6023920149000", max_rows=0)
    assert bench.writes() == []


# --- looks ---


def test_an_overview_has_state_budgets_and_spend_by_one_batch(bench: Any, ids: Any) -> None:
    told = bench.done("account_overview", ad_account_id="1234567890")
    assert len(bench.meta.seen) == 1
    assert told["account"]["state"] == "active"
    assert told["account"]["amount_spent"] == "4,182.30 EUR"
    assert [(one["name"], one["budget"]) for one in told["running"]] == [("Autumn sale", "50.00 EUR daily")]
    assert told["daily_budgets"] == "50.00 EUR"
    assert told["spent_last_7_days"] == "336.00 EUR"
    ocha = bench.done("account_overview", ad_account_id=ids.JPY)
    assert ocha["running"][0]["budget"] == "5,000 JPY daily"
    assert "a payment is open" in ocha["findings"][0]
    assert "error_subcode 33" in bench.refused("account_overview", ad_account_id="act_1")


def test_a_nearly_reached_limit_of_the_account_is_a_finding(bench: Any, ids: Any) -> None:
    bench.meta.objects[ids.EUR]["amount_spent"] = "470000"
    assert "300.00 EUR are left" in bench.done("account_overview", ad_account_id=ids.EUR)["findings"][0]
    bench.meta.objects[ids.EUR]["amount_spent"] = "500000"
    assert "is reached" in bench.done("account_overview", ad_account_id=ids.EUR)["findings"][0]


def test_periods_are_compared_by_one_request_for_insights(bench: Any, ids: Any) -> None:
    told = bench.done("compare_periods", ad_account_id=ids.EUR, level="ad")
    total = told["total"]
    # 7 days of 3 shares at 8.00 each, which the model doubles for days of late
    assert total["spend"] == {"before": 168.0, "after": 336.0, "change": "+100.0 %"}
    assert total["roas"]["after"] == 3.75
    assert told["rows"][0]["name"] == "Autumn tea A"
    queries = [one.query for one in bench.meta.seen if one.path.endswith("insights")]
    assert len(queries) == 1
    assert len(json.loads(queries[0]["time_ranges"])) == 2


def test_a_result_that_nobody_counted_is_said(bench: Any, ids: Any) -> None:
    assert "No lead was counted" in bench.done("compare_periods", ad_account_id=ids.EUR, result="lead")["note"]
    assert "1 to 366" in bench.refused("compare_periods", ad_account_id=ids.EUR, days=0)


def test_a_rejected_ad_is_explained_by_its_review(bench: Any, ids: Any) -> None:
    told = bench.done("diagnose_delivery", kind="ad", object_id=ids.AD_B)
    found = " ".join(one["finding"] for one in told["findings"])
    assert "DISAPPROVED" in found
    assert "The text of the ad breaks the rules for grammar." in found


def test_an_ad_is_explained_by_what_it_is_in(bench: Any, ids: Any) -> None:
    told = bench.done("diagnose_delivery", kind="ad", object_id=ids.AD_C)
    found = [(one["where"].split(" (")[0], one["finding"]) for one in told["findings"]]
    assert ("ad set Everybody", "The lifetime budget of 300.00 EUR is spent.") in found
    assert ("ad set Everybody", "It ended on 2026-10-31T23:59:59+0100.") in found
    assert ("campaign Brand", "PAUSED: it is paused.") in found
    assert not any(where.startswith("ad Brand film") for where, _ in found)  # its own state is right


def test_campaigns_and_ad_sets_are_explained_too(bench: Any, ids: Any) -> None:
    learning = bench.done("diagnose_delivery", kind="ad_set", object_id=ids.SALE_FR)
    assert "learning phase" in learning["findings"][0]["finding"]
    brand = bench.done("diagnose_delivery", kind="campaign", object_id=ids.BRAND)
    assert any("No ad is active: 1 CAMPAIGN_PAUSED" in one["finding"] for one in brand["findings"])
    sound = bench.done("diagnose_delivery", kind="campaign", object_id=ids.SALE)
    assert sound["findings"][0]["finding"] == "Nothing hinders delivery."
    ocha = bench.done("diagnose_delivery", kind="campaign", object_id=ids.JAPAN)
    assert any("a payment is open" in one["finding"] for one in ocha["findings"])


# --- ads ---


def _link_ad(ids: Any, **more: Any) -> dict[str, Any]:
    return {
        "ad_account_id": ids.EUR, "ad_set_id": ids.SALE_DE, "page_id": ids.PAGE, "name": "Autumn tea C",
        "link": "https://teahouse.example/autumn", "message": "Warm up.", "headline": "20 % off", "call_to_action": "SHOP_NOW", **more,
    }  # fmt: skip


def test_a_link_ad_is_made_paused_with_image_and_creative(bench: Any, ids: Any) -> None:
    told = bench.done("create_link_ad", **_link_ad(ids, image_base64=ids.PNG, url_tags="utm_source=facebook"))
    image, creative, ad = bench.writes()
    assert (image.path, image.form) == (f"{ids.EUR}/adimages", {"bytes": ids.PNG})
    story = json.loads(creative.form["object_story_spec"])
    assert story == {
        "page_id": ids.PAGE,
        "link_data": {
            "link": "https://teahouse.example/autumn",
            "message": "Warm up.",
            "name": "20 % off",
            "image_hash": told["image_hash"],
            "call_to_action": {"type": "SHOP_NOW", "value": {"link": "https://teahouse.example/autumn"}},
        },
    }
    assert creative.form["url_tags"] == "utm_source=facebook"
    assert ad.form == {
        "name": "Autumn tea C",
        "adset_id": ids.SALE_DE,
        "creative": f'{{"creative_id":"{told["creative_id"]}"}}',
        "status": "PAUSED",
    }
    assert bench.meta.objects[told["ad_id"]]["status"] == "PAUSED"


def test_what_was_made_is_said_when_the_rest_fails(bench: Any, ids: Any) -> None:
    text = bench.refused("create_link_ad", **_link_ad(ids, ad_set_id="1", image_url="https://teahouse.example/tea.png"))
    assert "The creative 23842600000000101 was made, the ad was not" in text
    assert "one image" in bench.refused("create_link_ad", **_link_ad(ids))
    assert "Image Not Valid" in bench.refused("create_link_ad", **_link_ad(ids, image_base64="no image!"))


# --- pages and prompts ---


def test_pages_and_prompts_are_there(bench: Any, ids: Any) -> None:
    from meta_ads_mcp.server import server

    bench.meta.usage = {"X-App-Usage": '{"call_count": 28, "total_time": 25, "total_cputime": 25}'}
    bench.done("list_ad_accounts")

    async def read() -> tuple[str, str, str]:
        async with connect(server) as client:
            pages = [await client.read_resource(f"meta-ads://{one}") for one in ("breakdowns", "limits")]
            prompt = await client.get_prompt("weekly_review", {"ad_account_id": ids.EUR})
            return pages[0][0]["text"], pages[1][0]["text"], prompt["messages"][0]["content"]["text"]

    breakdowns, limits, prompt = asyncio.run(read())
    assert "platform_position only together with publisher_platform" in breakdowns
    assert json.loads(limits)["limits"][0]["percent_used"] == 28.0
    assert ids.EUR in prompt


def test_the_model_of_the_api_can_be_started_by_itself() -> None:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("upstream.py"))],
        input="",
        check=True,
        capture_output=True,
        text=True,
        timeout=30,
    )
    environment = json.loads(done.stdout)["environment"]
    assert environment["META_ADS_BASE_URL"].startswith("http://127.0.0.1:")
