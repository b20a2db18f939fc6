"""Tests of money, errors and rate limits, without an API."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pytest
from mcpfactory_runtime import ToolError

from meta_ads_mcp.accounts import today_in
from meta_ads_mcp.comparison import periods
from meta_ads_mcp.errors import THROTTLED, GraphError, explain, next_step, read_error
from meta_ads_mcp.metrics import action, flat, totals
from meta_ads_mcp.money import change, minor_units, written
from meta_ads_mcp.usage import Place, Usage, place_of


@pytest.mark.parametrize(
    ("amount", "currency", "minor", "text"),
    [
        (75, "EUR", 7500, "75.00 EUR"),
        (0.1, "USD", 10, "0.10 USD"),
        (5000, "JPY", 5000, "5,000 JPY"),
        ("1250.5", "GBP", 125050, "1,250.50 GBP"),
        (9000, "HUF", 9000, "9,000 HUF"),
        (3, "BHD", 300, "3.00 BHD"),  # three decimal places in ISO 4217, but Meta's offset is 100
    ],
)
def test_amounts_become_minor_units_and_back(amount: float | str, currency: str, minor: int, text: str) -> None:
    assert minor_units(amount, currency) == minor
    assert written(minor, currency) == text


@pytest.mark.parametrize(
    ("amount", "currency"), [(0, "EUR"), (-5, "EUR"), (1.005, "EUR"), (10.5, "JPY"), ("many", "EUR")]
)
def test_what_is_no_amount_of_the_currency_is_refused(amount: float | str, currency: str) -> None:
    with pytest.raises(ToolError, match="hint:"):
        minor_units(amount, currency)


def test_changes_in_percent() -> None:
    assert [change(50, 75), change(100, 90), change(0, 5), change(0, 0)] == ["+50.0 %", "-10.0 %", "new", "0.0 %"]


def test_an_error_is_told_in_metas_words_with_a_next_step() -> None:
    error = read_error(
        json.dumps(
            {
                "error": {
                    "message": "Invalid parameter", "type": "OAuthException", "code": 100, "error_subcode": 1885621,
                    "error_data": '{"blame_field_specs":[["daily_budget"]]}', "error_user_title": "Cannot set budget",
                    "error_user_msg": "The campaign has one.", "fbtrace_id": "Abc",
                }
            }
        )
    )  # fmt: skip
    assert error is not None
    assert explain("POST /x failed: 400 Bad Request", error).splitlines() == [
        "POST /x failed: 400 Bad Request: Invalid parameter (code 100, error_subcode 1885621)",
        "Meta says: Cannot set budget: The campaign has one.",
        "It concerns: daily_budget",
        "fbtrace_id: Abc",
        "hint: the budget is on the campaign: omit daily_budget and lifetime_budget of the ad set.",
    ]


@pytest.mark.parametrize(
    ("error", "step"),
    [
        (GraphError("x", 190), "META_ADS_TOKEN"),
        (GraphError("x", 190, 463), "expired"),
        (GraphError("x", 17, 2446079), "throttled"),
        (GraphError("x", 80004), "limit for managing"),
        (GraphError("x", 80009), "rate limit"),
        (GraphError("x", 100), "correct the parameter"),
        (GraphError("x", 100, 33), "does not exist"),
        (GraphError("x", 272), "role in this ad account"),
        (GraphError("Please reduce the amount of data you're asking for", 1, 99), "run_report"),
        (GraphError("x", 999, transient=True), "try again"),
    ],
)
def test_the_next_step_fits_the_code(error: GraphError, step: str) -> None:
    assert step in next_step(error)


def test_codes_of_limits_have_a_next_step_each() -> None:
    assert all("wait" in next_step(GraphError("x", code)) for code in THROTTLED)


@pytest.mark.parametrize("value", [b"", b"<html>", "[]", {"error": "text"}, {"data": []}, '{"error": {"code": 1}}'])
def test_what_is_no_error_of_the_graph_is_none(value: object) -> None:
    assert read_error(value) is None


# --- limits ---


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def _business(minutes: int, percent: int = 100, kind: str = "ads_insights", owner: str = "123") -> dict[str, str]:
    entry = {
        "type": kind,
        "call_count": percent,
        "total_cputime": 3,
        "total_time": 4,
        "estimated_time_to_regain_access": minutes,
    }
    return {"x-business-use-case-usage": json.dumps({owner: [entry]})}


def test_a_path_is_counted_for_its_account_and_kind() -> None:
    assert place_of("/act_123/insights") == Place("123", "ads_insights")
    assert place_of("/act_123/customaudiences") == Place("123", "custom_audience")
    assert place_of("/42") == Place("42", "ads_management")


def test_a_blocked_account_is_free_again_when_meta_said() -> None:
    clock = Clock()
    usage = Usage(clock)
    usage.note(place_of("/act_123/insights"), _business(19))
    assert usage.blocked(place_of("/act_123/insights")) == 19
    assert usage.blocked(place_of("/act_123/campaigns")) == 0  # another limit
    assert usage.blocked(place_of("/act_999/insights")) == 0  # another account
    clock.now += 18 * 60 + 1
    assert (
        usage.waiting(place_of("/act_123/insights")) == "Meta accepts ads_insights requests of 123 again in 1 minute."
    )
    clock.now += 60
    assert usage.waiting(place_of("/act_123/insights")) == ""


def test_objects_are_counted_for_the_account_that_an_answer_named() -> None:
    usage = Usage(Clock())
    usage.note(place_of("/42/insights"), _business(0, 10))
    usage.note(place_of("/act_123/insights"), _business(5))
    assert usage.blocked(place_of("/42/insights")) == 5


def test_what_many_accounts_share_is_no_object_of_one() -> None:
    usage = Usage(Clock())
    for path in ("", "/me/adaccounts", "/search"):
        usage.note(place_of(path), _business(5, kind="ads_management"))
        assert usage.blocked(place_of(path)) == 0
    assert usage.blocked(place_of("/act_123/campaigns")) == 5


def test_much_used_limits_are_told_and_others_are_not() -> None:
    usage = Usage(Clock())
    usage.note(place_of("/act_123/insights"), _business(0, 74))
    assert usage.notice(place_of("/act_123/insights")) == ""
    usage.note(place_of("/act_123/insights"), _business(0, 91))
    assert usage.notice(place_of("/act_123/insights")).startswith("91 % of Meta's limit for ads_insights of 123")
    assert usage.report() == [{"of": "123", "kind": "ads_insights", "percent_used": 91.0, "minutes_until_free": 0}]


@pytest.mark.parametrize("text", ["", "null", "[1]", '{"1": 2}', '{"1": [3]}', "{", '{"1": [{"type": null}]}'])
def test_odd_headers_do_no_harm(text: str) -> None:
    usage = Usage(Clock())
    usage.note(place_of("/act_1/insights"), {"x-business-use-case-usage": text, "x-app-usage": text})
    assert usage.blocked(place_of("/act_1/insights")) == 0


# --- figures ---


def test_one_purchase_under_several_types_counts_once() -> None:
    actions = [{"action_type": "purchase", "value": "6"}, {"action_type": "omni_purchase", "value": "7"}]
    assert action(actions, "purchase") == 7
    assert action(actions, "lead") == 0
    assert action([{"action_type": "like", "value": "3"}], "like") == 3


def test_totals_follow_from_sums_and_not_from_averages() -> None:
    rows = [
        {"spend": "10", "impressions": "1000", "clicks": "10", "actions": [{"action_type": "purchase", "value": "1"}]},
        {
            "spend": "30",
            "impressions": "9000",
            "clicks": "10",
            "action_values": [{"action_type": "purchase", "value": "80"}],
        },
    ]
    found = totals(rows, "purchase")
    assert found["ctr_percent"] == 0.2
    assert (found["cpm"], found["cpc"], found["cost_per_result"], found["roas"]) == (4.0, 2.0, 40.0, 2.0)
    assert totals([], "purchase")["cpm"] == 0


def test_lists_of_actions_become_objects_unless_they_are_split() -> None:
    row = {
        "spend": "1",
        "actions": [{"action_type": "like", "value": "3"}, {"action_type": "lead", "value": "1", "7d_click": "1"}],
    }
    assert flat(row)["actions"] == {"like": "3", "lead": {"value": "1", "7d_click": "1"}}
    split = [
        {"action_type": "like", "action_device": "iphone", "value": "3"},
        {"action_type": "like", "action_device": "ipad", "value": "1"},
    ]
    assert flat({"actions": split})["actions"] == split


def test_the_earlier_period_is_as_long_and_right_before() -> None:
    today = date(2026, 11, 23)
    assert periods(today, 7, "", "") == (
        {"since": "2026-11-09", "until": "2026-11-15"},
        {"since": "2026-11-16", "until": "2026-11-22"},
    )
    assert periods(today, 7, "2026-10-01", "2026-10-31")[0] == {"since": "2026-08-31", "until": "2026-09-30"}
    for since, until in (("2026-10-02", "2026-10-01"), ("yesterday", "")):
        with pytest.raises(ToolError):
            periods(today, 7, since, until)


def test_today_is_the_accounts() -> None:
    late = datetime(2026, 11, 23, 20, 0, tzinfo=UTC)
    assert today_in({"timezone_offset_hours_utc": 9}, late) == date(2026, 11, 24)
    assert today_in({"timezone_offset_hours_utc": -8}, late) == date(2026, 11, 23)
    assert today_in({}, late) == date(2026, 11, 23)
