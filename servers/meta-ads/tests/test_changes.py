"""Tests of consent and requests of the tools that change budgets and states."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote_plus

import pytest

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


def code_of(text: str) -> str:
    """Return the confirmation code in a refusal."""
    return text.split('confirm="')[1].partition('"')[0]


def test_a_client_that_cannot_ask_needs_a_code(bench: Any, ids: Any) -> None:
    text = bench.refused("change_budget", object_id=ids.SALE, amount=80)
    assert text.startswith("Nothing was changed: a person must agree to this first")
    sentence = text.split("(", 1)[1].partition(")\nhint")[0]
    assert "50.00 EUR to 80.00 EUR" in sentence
    assert bench.writes() == []
    for guess in ("yes", "true", sentence, code_of(bench.refused("change_budget", object_id=ids.SALE, amount=90))):
        bench.refused("change_budget", object_id=ids.SALE, amount=80, confirm=guess)
    assert bench.writes() == []
    assert bench.done("change_budget", object_id=ids.SALE, amount=80, confirm=code_of(text))["changed"]
    bench.done("change_budget", object_id=ids.SALE, amount=50)
    bench.refused("change_budget", object_id=ids.SALE, amount=80, confirm=code_of(text))  # valid only once


def test_a_yes_is_for_the_objects_of_its_question(bench: Any, ids: Any) -> None:
    """Objects may have the same name."""
    bench.meta.objects[ids.AD_B]["name"] = bench.meta.objects[ids.AD_A]["name"]
    code = code_of(bench.refused("set_status", kind="ad", ids=[ids.AD_A], status="ARCHIVED"))
    bench.refused("set_status", kind="ad", ids=[ids.AD_B], status="ARCHIVED", confirm=code)
    assert bench.done("set_status", kind="ad", ids=[ids.AD_A], status="ARCHIVED", confirm=code)["changed"] == 1
    assert bench.meta.objects[ids.AD_B]["status"] == "ACTIVE"


def test_a_client_that_asks_does_not_let_the_model_agree(bench: Any, ids: Any) -> None:
    code = code_of(bench.refused("change_budget", object_id=ids.SALE, amount=80))
    bench.refused("change_budget", object_id=ids.SALE, amount=80, confirm=code, agree=False)
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
    first = (datetime.now(UTC) + timedelta(days=3)).date()
    days = {name: f"{first + timedelta(days=more)}T00:00:00+01:00" for name, more in (("start", 0), ("end", 2))}
    assert "a person must agree" in bench.refused("plan_budget_increase", campaign_id=ids.SALE, amount=30, **days)
    assert "no daily budget" in bench.refused("plan_budget_increase", campaign_id=ids.BRAND, amount=30, **days)
    assert "offset" in bench.refused(
        "plan_budget_increase", campaign_id=ids.SALE, amount=30, start=str(first), end=days["end"]
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
        "time_start": str(int(datetime.fromisoformat(days["start"]).timestamp())),
        "time_end": str(int(datetime.fromisoformat(days["end"]).timestamp())),
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
    assert len(bench.writes()) == 1  # the batch of reads


def test_archiving_and_deleting_ask(bench: Any, ids: Any) -> None:
    assert "cannot be taken back" in bench.refused("set_status", kind="ad", ids=[ids.AD_C], status="ARCHIVED")
    text = bench.refused("delete_object", kind="campaign", object_id=ids.SALE)
    assert "Delete the campaign Autumn sale" in text
    assert ids.SALE in bench.meta.objects
    assert bench.done("delete_object", kind="campaign", object_id=ids.SALE, agree=True)["deleted"] == ids.SALE
    assert [(one.method, one.path) for one in bench.writes() if one.path][-1] == ("DELETE", ids.SALE)


def test_ids_are_one_to_fifty(bench: Any) -> None:
    assert "one to 50" in bench.refused("set_status", kind="ad", ids=[], status="PAUSED")
    assert "one to 50" in bench.refused(
        "set_status", kind="ad", ids=[str(one) for one in range(1, 52)], status="PAUSED"
    )
    assert "Nothing was changed" in bench.refused("set_status", kind="ad", ids=["1"], status="PAUSED")
