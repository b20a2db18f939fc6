"""Waivers: what a person accepts for a time costs nothing; what has expired, or names nobody, is not waived."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.settings import SettingsError
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.checks.report import ValidationReport
from mcpfactory_pipeline.checks.report_formats import to_badge
from mcpfactory_pipeline.checks.rule_evaluation import evaluate_rules
from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.workspace.settings import WaiverPolicy
from mcpfactory_pipeline.workspace.waivers import FILE, Waiver, add_waiver, read_waivers
from tests.pipeline.checks.test_rules import TOOL, broken_tool, failed, observed
from tests.pipeline.staged_workspace import settings_of
from tests.subtest_table import parametrize_subtests

TODAY = date(2030, 1, 15)
CLOSED = "tool-calls.some-succeed"


def waiver(rule: str, tool: str = "", days: int = 30) -> Waiver:
    return Waiver(rule=rule, person="Ada", reason="the vendor knows", until=TODAY + timedelta(days=days), tool=tool)


def judged(*waivers: Waiver, policy: WaiverPolicy | None = None, **changes: Any) -> ValidationReport:
    tools = (broken_tool(lambda tool: tool.update(name="a.b")), broken_tool(lambda tool: tool.update(name="c d")), TOOL)
    policy = policy or WaiverPolicy()
    return evaluate_rules(observed(*tools, **changes), RULES, waivers=waivers, policy=policy, today=TODAY)


def test_a_waiver_takes_the_findings_of_its_rule_away_and_the_report_lists_both() -> None:
    before, after = judged(), judged(waiver("schemas.names-valid"))
    assert "schemas.names-valid" in before.failed_gates
    assert "schemas.names-valid" not in failed(after)
    assert after.failed_gates == tuple(gate for gate in before.failed_gates if gate != "schemas.names-valid")
    assert after.score > before.score
    assert [(one.rule, one.where) for one in after.waived] == [("schemas.names-valid", "c d")]
    assert after.to_json()["waivers"][0]["state"] == "in force"
    assert "by Ada until" in after.to_text()


def test_a_waiver_for_a_tool_covers_its_arguments_and_no_tool_whose_name_begins_alike() -> None:
    mute = broken_tool(lambda tool: tool["inputSchema"]["properties"]["query"].pop("description"))
    tools = (mute, {**mute, "name": "search_books.all"}, {**mute, "name": "search_books twice"})
    rule = "descriptions.arguments"
    report = evaluate_rules(observed(*tools), RULES, waivers=(waiver(rule, "search_books"),), today=TODAY)
    left = [one.where for one in report.findings if one.rule == rule]
    assert left == ["search_books.all.query", "search_books twice.query"]
    report = evaluate_rules(
        observed(*tools), RULES, waivers=(waiver("schemas.names-valid", "search_books"),), today=TODAY
    )
    assert "schemas.names-valid" in failed(report)


def test_an_expired_waiver_counts_as_none_from_the_day_after_its_last() -> None:
    rule = "schemas.names-valid"
    assert rule in failed(judged(waiver(rule, days=-1)))
    assert rule not in failed(judged(waiver(rule, days=0)))
    assert judged(waiver(rule, days=-1)).to_json()["waivers"][0]["state"] == "expired"


def test_a_gate_that_could_not_be_checked_can_be_waived_and_is_not_listed() -> None:
    changes: dict[str, Any] = {"calls": (), "missing": {"tools/call": "nobody could"}}
    before, after = judged(**changes), judged(waiver(CLOSED), **changes)
    assert CLOSED in before.failed_gates
    assert CLOSED not in after.failed_gates
    assert CLOSED not in {one["rule"] for one in after.to_json()["not_checked"]}


GOOD = {"rule": '"a.b"', "person": '"Ada"', "reason": '"why"', "until": "2031-01-31"}


def written(folder: Path, **changes: str | None) -> Path:
    rows = [f"{key} = {value}" for key, value in (GOOD | changes).items() if value is not None]
    (folder / FILE).write_text("\n".join(["[[waivers]]", *rows]) + "\n")
    return folder


@parametrize_subtests(
    "changes, words",
    [
        ({"reason": None}, "reason is missing"),
        ({"reason": '"  "'}, "reason: .* is not valid"),
        ({"person": None}, "person is missing"),
        ({"rule": None}, "rule is missing"),
        ({"until": None}, "until is missing"),
        ({"until": '"2031-01-31"'}, "until: .* is not valid"),
        ({"until": "2031-01-31T00:00:00Z"}, "until: must be a date"),
        ({"because": '"x"'}, "unknown field"),
        ({"rule": "["}, "is not TOML"),
    ],
)
def test_a_waiver_that_lacks_something_is_refused(tmp_path: Path, changes: dict[str, str | None], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        read_waivers(written(tmp_path, **changes))
    assert caught.value.hint


def test_what_is_written_is_read_again_and_replaces_the_same(tmp_path: Path) -> None:
    nasty = Waiver(rule="a.b", person='Ada "the\\ first"', reason="tabs\tand \x7f and ü", until=TODAY, tool="tool")
    add_waiver(written(tmp_path), nasty)
    assert [one.tool for one in read_waivers(tmp_path)] == ["", "tool"]
    assert read_waivers(tmp_path)[1] == nasty
    add_waiver(
        tmp_path, Waiver(rule="a.b", person="Grace", reason="longer", until=TODAY + timedelta(days=9), tool="tool")
    )
    assert [(one.person, one.tool) for one in read_waivers(tmp_path)] == [("Ada", ""), ("Grace", "tool")]


def test_more_waivers_than_are_allowed_count_as_none_and_the_report_says_why() -> None:
    two = (waiver("schemas.names-valid"), waiver("descriptions.tool", "a.b"))
    assert judged(*two, policy=WaiverPolicy(limit=2)).waived
    report = judged(*two, policy=WaiverPolicy(limit=1))
    assert not report.waived
    assert [(one.state, one.reason) for one in report.waivers] == [
        ("not allowed", "there are 2 waivers, 1 are allowed")
    ] * 2


def test_a_waiver_that_ends_too_late_or_is_of_somebody_else_counts_as_none() -> None:
    rule = "schemas.names-valid"
    late, other = judged(waiver(rule, days=366)), judged(waiver(rule), policy=WaiverPolicy(by=("Grace",)))
    assert late.waivers[0].reason == "it ends in 366 days, 365 are allowed"
    assert other.waivers[0].reason == "Ada may not waive: Grace may"
    for report in (late, other):
        assert rule in failed(report)
        assert f"[not allowed: {report.waivers[0].reason}]" in report.to_text()


def test_a_score_that_waivers_raised_says_so() -> None:
    report = judged(waiver("schemas.names-valid"))
    assert (
        f"({report.lost:g} points lost, rules version {report.rules_version}), 1 finding waived by 1 waiver"
        in report.to_text()
    )
    assert f"({judged().lost:g} points lost, halved by a closed gate, rules" in judged().to_text()
    assert "/100, 1 waived" in to_badge(replace(report, passed=True))
    assert "waived" not in to_badge(replace(judged(), passed=True))


@parametrize_subtests(
    "table, words",
    [
        ({"limit": -1}, "waivers.limit: -1 is not valid"),
        ({"max_days": "90"}, "waivers.max_days: must be a whole number"),
        ({"by": "Ada"}, "waivers.by: must be a list"),
        ({"who": []}, "unknown"),
        ([], "waivers: must be a table"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(table: object, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        settings_of(waivers=table)
    known = settings_of(waivers={"limit": 0, "by": ["Ada"]}).waivers
    assert known == WaiverPolicy(limit=0, max_days=365, by=("Ada",))
