"""Tests of invalid or hostile calls, and of undocumented responses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

# --- the kind of an object ---


@pytest.mark.parametrize(
    ("kind", "other"), [("ad", "SALE"), ("ad_set", "SALE"), ("campaign", "AD_A"), ("ad", "SALE_DE")]
)
def test_an_object_of_another_kind_is_neither_deleted_nor_switched(bench: Any, ids: Any, kind: str, other: str) -> None:
    node = getattr(ids, other)
    text = bench.refused("delete_object", kind=kind, object_id=node, agree=True)
    assert f"{node} is not of kind {kind.replace('_', ' ')}" in text
    text = bench.refused("set_status", kind=kind, ids=[node], status="ARCHIVED", agree=True)
    assert f"{node} is not of kind {kind.replace('_', ' ')}" in text
    assert bench.asked == []
    assert bench.meta.objects[node]["status"] == "ACTIVE"
    assert [one for one in bench.meta.seen if one.method == "DELETE"] == []


@pytest.mark.parametrize("node", ["act_1234567890", "me", "search", "../act_1", "", "0", "012", "1" * 31, "١"])
def test_only_ids_of_digits_are_sent(bench: Any, node: str) -> None:
    bench.refused("delete_object", kind="campaign", object_id=node, agree=True)
    bench.refused("set_status", kind="campaign", ids=[node], status="PAUSED")
    bench.refused("change_budget", object_id=node, amount=5)
    assert bench.meta.seen == []


def test_an_object_that_does_not_say_its_kind_is_not_deleted(bench: Any, ids: Any) -> None:
    bench.meta.instead[ids.AD_A] = {"id": ids.AD_A, "name": "Autumn tea A"}
    assert "is not of kind ad" in bench.refused("delete_object", kind="ad", object_id=ids.AD_A, agree=True)


# --- budgets ---


@pytest.mark.parametrize("variable", ["META_ADS_CONFIRM_PERCENT", "META_ADS_CONFIRM_AMOUNT"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999", "much"])
def test_a_limit_that_is_no_finite_number_is_an_error(
    bench: Any, ids: Any, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    text = bench.refused("change_budget", object_id=ids.SALE, amount=600)
    assert f"{variable} is '{value}'" in text
    assert bench.writes() == []


def test_small_raises_add_up_to_a_question(bench: Any, ids: Any) -> None:
    assert bench.done("change_budget", object_id=ids.SALE, percent=20)["after"] == "60.00 EUR"
    text = bench.refused("change_budget", object_id=ids.SALE, percent=1)
    assert "50.00 EUR" in text
    assert bench.done("change_budget", object_id=ids.SALE, percent=20, agree=True)["after"] == "72.00 EUR"
    assert bench.done("change_budget", object_id=ids.SALE, percent=20)["after"] == "86.40 EUR"  # from the agreed one
    bench.refused("change_budget", object_id=ids.SALE, percent=1)


def test_a_budget_that_was_lowered_is_not_raised_back_without_a_question(bench: Any, ids: Any) -> None:
    bench.done("change_budget", object_id=ids.SALE, amount=10)
    bench.refused("change_budget", object_id=ids.SALE, amount=50)


def test_after_a_day_the_budget_of_then_counts(bench: Any, ids: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from meta_ads_mcp import budgets

    bench.done("change_budget", object_id=ids.SALE, percent=20)
    monkeypatch.setattr(budgets, "_FIRST", {node: (at - 86_401, was) for node, (at, was) in budgets._FIRST.items()})
    assert bench.done("change_budget", object_id=ids.SALE, percent=20)["after"] == "72.00 EUR"


@pytest.mark.parametrize("given", [{"percent": 1e308}, {"percent": -1e308}, {"amount": 1e308}, {"amount": -5}])
def test_numbers_without_sense_are_refused_before_anything_is_read(bench: Any, ids: Any, given: Any) -> None:
    assert "nternal" not in bench.refused("change_budget", object_id=ids.SALE, **given)
    assert bench.meta.seen == []


def test_a_budget_that_is_no_number_is_said(bench: Any, ids: Any) -> None:
    for odd in ("5000.5", "much", [], {}):
        bench.meta.objects[ids.SALE]["daily_budget"] = odd
        assert "minor units" in bench.refused("change_budget", object_id=ids.SALE, percent=1)


def test_a_person_who_answers_a_text_has_not_agreed(bench: Any, ids: Any) -> None:
    for revision in ("2026-07-28", "2025-11-25"):
        text = bench.refused("change_budget", object_id=ids.SALE, amount=80, agree="text", revision=revision)
        assert "did not agree" in text
    assert bench.writes() == []


# --- responses ---

ODD = (None, [], 3, {}, {"data": None}, {"data": {}}, {"data": [None]}, {"data": "x"})


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_figures_are_not_made_of_what_is_no_answer(bench: Any, ids: Any, odd: Any) -> None:
    bench.meta.instead[f"{ids.EUR}/insights"] = odd
    text = bench.refused("compare_periods", ad_account_id=ids.EUR)
    assert "expected" in text
    bench.meta.instead = {f"{ids.AD_A}/insights": odd}
    assert "expected" in bench.refused("diagnose_delivery", kind="ad", object_id=ids.AD_A)
    assert "expected" in bench.refused("delete_object", kind="ad", object_id=ids.AD_A, agree=True)
    bench.meta.instead = {f"{ids.EUR}/campaigns": odd}
    assert "expected" in bench.refused("account_overview", ad_account_id=ids.EUR)


@pytest.mark.parametrize("odd", [None, [], 3, {}, {"data": None}], ids=repr)
def test_an_object_without_an_id_is_no_answer(bench: Any, ids: Any, odd: Any) -> None:
    bench.meta.instead = {ids.EUR: odd, ids.SALE: odd}
    for tool, given in (
        ("compare_periods", {"ad_account_id": ids.EUR}),
        ("account_overview", {"ad_account_id": ids.EUR}),
        ("change_budget", {"object_id": ids.SALE, "amount": 51}),
        ("diagnose_delivery", {"kind": "campaign", "object_id": ids.SALE}),
    ):
        assert "expected" in bench.refused(tool, **given)
    assert bench.writes() == [one for one in bench.writes() if not one.path]


def test_a_page_that_comes_again_is_counted_once(bench: Any, ids: Any) -> None:
    after = {"cursors": {"after": "same"}, "next": "https://graph.example/next"}
    day = str(datetime.now(UTC).date())
    row = {"campaign_id": ids.SALE, "campaign_name": "x", "spend": "25", "date_start": day, "date_stop": day}
    bench.meta.instead[f"{ids.EUR}/insights"] = {"data": [row], "paging": after}
    told = bench.done("compare_periods", ad_account_id=ids.EUR)
    assert sum(told["total"]["spend"][key] for key in ("before", "after")) == 25
    assert len([one for one in bench.meta.seen if one.path.endswith("/insights")]) == 2


# --- secrets ---


def test_the_apps_secret_does_not_reach_a_model(bench: Any, ids: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "0123456789abcdef0123456789abcdef"
    monkeypatch.setenv("META_ADS_APP_SECRET", secret)
    bench.meta.refuse = [ids.Refusal(f"Invalid appsecret_proof for secret {secret}", 100)]
    assert secret not in bench.refused("change_budget", object_id=ids.SALE, amount=51)
    bench.meta.objects[ids.SALE]["name"] = f"Sale {secret}"
    assert secret not in str(bench.result("list_campaigns", ad_account_id=ids.EUR, fields="id,name"))
    assert secret not in str(bench.done("change_budget", object_id=ids.SALE, amount=51))


# --- times ---


def test_a_plan_begins_and_ends_at_a_full_hour_to_come(bench: Any, ids: Any) -> None:
    day = (datetime.now(UTC) + timedelta(days=3)).date()
    end = f"{day + timedelta(days=2)}T00:00:00+01:00"
    for start, says in (
        (f"{day}T23:30:00+01:00", "full hour"),
        (f"{day}T23:00:01+01:00", "full hour"),
        ("0001-01-01T00:00:00+01:00", "in the past"),
        ("2020-01-01T00:00:00+01:00", "in the past"),
    ):
        given = {"campaign_id": ids.SALE, "amount": 30, "start": start, "end": end}
        assert says in bench.refused("plan_budget_increase", **given, agree=True)
    assert (bench.asked, bench.meta.seen) == ([], [])


@pytest.mark.parametrize(
    ("since", "until"), [("2026-02-30", "2026-03-01"), ("1.2.2026", "2.2.2026"), ("2026-03-02", "2026-03-01")]
)
def test_a_report_of_days_that_there_are_not_is_not_started(bench: Any, ids: Any, since: str, until: str) -> None:
    assert "hint" in bench.refused("run_report", object_id=ids.EUR, since=since, until=until)
    assert bench.meta.seen == []


def test_a_report_without_days_says_no_period(bench: Any, ids: Any) -> None:
    started = bench.done("run_report", object_id=ids.EUR)
    for one in bench.meta.jobs.values():
        del one["date_start"], one["date_stop"]
    told = bench.done("read_report", report_run_id=started["report_run_id"])
    assert "None" not in str(told)
