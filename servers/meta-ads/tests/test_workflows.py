"""Tests of profiles, reports, overviews, ads and resources against the mock API; `_generated/` tests every operation."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.testing import connect

OWN = {
    "account_overview", "compare_periods", "diagnose_delivery", "run_report", "read_report",
    "create_link_ad", "change_budget", "plan_budget_increase", "set_status", "delete_object",
}  # fmt: skip


def _names(*options: str, **environ: str) -> set[str]:
    """Return the tools of a server process with these options and variables."""

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
    assert len(rows) == len(set(rows)) == 3 * 92 * 6  # 3 ads, 92 days, 6 splits, without gaps and duplicates
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

    monkeypatch.setenv("META_ADS_WAIT_SECONDS", "0")  # applies only to calls that are not tasks
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
    assert "must be given together" in bench.refused("run_report", object_id=ids.EUR, since="2026-01-01")
    assert "1 to 1000" in bench.refused("run_report", object_id=ids.EUR, max_rows=1001)
    assert "1 to 1000" in bench.refused("read_report", report_run_id="6023920149000", max_rows=0)
    assert bench.writes() == []


# --- overviews ---


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
    # 7 days of 3 shares at 8.00 each, which the mock doubles for recent days
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
    assert not any(where.startswith("ad Brand film") for where, _ in found)  # its own state is active


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
    assert "The creative 23842600000000101 was created, but not the ad" in text
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
