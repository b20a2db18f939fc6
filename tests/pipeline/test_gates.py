"""Soak and gates: what a candidate needs before it may move."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.plan.gates import GATES, closed_gates
from mcpfactory_pipeline.plan.policy import cost_limits
from mcpfactory_pipeline.run.run import plan_servers, run_pipeline
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.state import Candidate, Release
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace
from tests.pipeline.fake_stages import STAGES
from tests.pipeline.inprocess_executor import InProcessExecutor
from tests.pipeline.staged_workspace import SOAK, refused, shipped_at
from tests.subtest_table import parametrize_subtests


def test_a_candidate_must_have_been_in_staging_for_the_time_that_the_policy_says(books):
    books.configure(SOAK)
    books.clock.at = shipped_at(books) + timedelta(hours=23, minutes=30)
    with refused("30 min of 1 d in staging left"):
        books.promote()
    books.clock.pass_(minutes=30)
    books.promote()
    assert books.offered("production") == [b"one"]


def test_time_in_which_staging_offered_something_else_does_not_count(books):
    books.configure(SOAK)
    first, start = books.state.candidate, shipped_at(books)
    books.next("two")
    books.clock.at = start + timedelta(days=30)
    with refused("in staging left"):
        books.promote(candidate=first)
    books.promote()
    assert books.offered("production") == [b"two"]


def test_a_clock_that_was_set_back_makes_no_time_pass(books):
    books.configure(SOAK)
    books.clock.at = shipped_at(books) - timedelta(days=300)
    with refused("1 d of 1 d in staging left"):
        books.promote()


def candidate(**summaries) -> Candidate:
    checks = {stage: {"outcome": "passed", "summary": summary} for stage, summary in summaries.items()}
    return Candidate("1.0", 1, {}, checks=checks, facts={"document": True, "tokens": 900, "coverage": 79})


MEASURED = {"start_ms": 120, "call_ms": 8, "memory_mb": 40}
TESTED = {"passed": 20, "tool_tests": 12, "skipped": 2, "deselected": 1, "lost": {"offered": 3}}
TODAY = date(2026, 3, 11)
TEN_DAYS_AGO = "2026-03-01"
ASKED = {
    "models": {"openai:a": {"lower": 0.71, "asked": TEN_DAYS_AGO}, "openai:b": {"lower": 0.9, "asked": "2999-01-01"}}
}
GOOD = candidate(validate={"score": 91, "critical": 0, "measured": MEASURED}, test=TESTED, evaluate=ASKED)
LIMITS = {
    "min_score": (91, 91.5, "score 91, at least 91.5 wanted"),
    "max_critical": (0, -1, "0 findings of severity 5"),
    "min_tests": (12, 13, "12 tests passed that ran a tool of the server, at least 13 wanted"),
    "max_skipped_tests": (2, 1, "2 tests are skipped, at most 1 allowed"),
    "max_deselected_tests": (1, 0, "1 tests are deselected, at most 0 allowed"),
    "max_lost_tests": (3, 2, "3 tests that the candidate in the channel passed are gone, at most 2 allowed"),
    "token_budget": (900, 899, "tools take 900 tokens, at most 899 allowed"),
    "max_start_ms": (120, 119, "the first answer takes 120 ms, at most 119 allowed"),
    "max_call_ms": (8, 7.5, "a call takes 8 ms, at most 7.5 allowed"),
    "max_memory_mb": (40, 39, "the process takes 40 MB, at most 39 allowed"),
    "min_pass_rate": (0.71, 0.72, "the lower bound of the pass rate is 0.71 with openai:a, at least 0.72 wanted"),
    "max_report_days": (10, 9, "the report of a model is 10 days old, at most 9 allowed"),
    "min_coverage": (79, 80, "79 % of the operations are tools, at least 80 % wanted"),
}


@parametrize_subtests("name", [name for name, gate in GATES.items() if not gate.switch])
def test_a_gate_opens_at_its_limit_and_is_closed_beyond_it_and_where_nothing_is_known(name):
    within, beyond, words = LIMITS[name]
    offered = Release("offered", "1.0")
    assert closed_gates({name: within}, GOOD, offered, today=TODAY) == {}
    assert words in closed_gates({name: beyond}, GOOD, offered, today=TODAY)[name]
    assert "cannot be checked" in closed_gates({name: within}, Candidate("1.0", 1, {}), offered)[name]


def test_the_weakest_of_the_models_that_count_decides_and_one_without_a_report_is_weaker_than_any():
    found = candidate(
        evaluate={"models": {"a:x": {"lower": 0.9, "asked": "2026-01-01"}, "a:y": {"why": "no report is recorded"}}}
    )
    assert closed_gates({"min_pass_rate": 0}, found) == {
        "min_pass_rate": "the lower bound of the pass rate is a:y: no report is recorded, at least 0 wanted"
    }
    assert "cannot be checked" in closed_gates({"max_report_days": 99999}, found)["max_report_days"]
    assert closed_gates({"max_report_days": 0}, GOOD, today=date.fromisoformat(TEN_DAYS_AGO)) == {}


def test_no_tests_are_lost_where_a_channel_offers_nothing_yet():
    assert closed_gates({"max_lost_tests": 0}, GOOD) == {}


def test_what_a_server_may_cost_is_what_the_strictest_channel_allows_and_an_input_of_its_validation(tmp_path):
    space = apply_setup(plan_workspace_setup(tmp_path), git=False)
    channels = (
        ChannelPolicy(name="staging", gates={"max_start_ms": 500, "max_memory_mb": 200, "min_score": 80}),
        ChannelPolicy(name="production", source="staging", gates={"max_start_ms": 400}),
    )
    assert cost_limits(channels) == {"max_start_ms": 400, "max_memory_mb": 200}
    (plain,) = [stage for stage in workspace_stages(space) if stage.name == "validate"]
    with (space.root / CONFIG).open("a") as file:
        file.write('[[pipeline.channels]]\nname = "staging"\ngates = { max_call_ms = 80 }\n')
    (limited,) = [stage for stage in workspace_stages(Workspace.find(space.root)) if stage.name == "validate"]
    assert limited.settings == {"limits": {"max_call_ms": 80}}
    assert limited.stamp != plain.stamp, "so that another limit is judged anew"


def test_a_server_without_an_api_document_has_nothing_to_cover():
    assert closed_gates({"min_coverage": 100}, replace(GOOD, facts={"document": False})) == {}


def test_a_closed_gate_stops_a_promotion_and_names_its_remedy(books):
    books.configure('[[pipeline.channels]]\nname = "production"\nfrom = "staging"\ngates = { min_tests = 5 }\n')
    with refused("min_tests 5 cannot be checked") as caught:
        books.promote()
    assert caught.value.hint == "add tests to servers/books/tests/"


def test_a_closed_gate_of_the_first_channel_blocks_the_run_and_says_so(books):
    gated = [
        replace(stage, channel=ChannelPolicy(name="staging", gates={"min_score": 90})) if stage.channel else stage
        for stage in STAGES
    ]
    (books.folder / "source.txt").write_text("two")
    outcome = run_pipeline(books.workspace, stages=gated, executor=InProcessExecutor())
    assert (outcome.servers, outcome.failed) == ({"books": "blocked"}, True)
    (step,) = [step for step in plan_servers(books.workspace, stages=gated) if step.stage == "staging"]
    assert (step.verdict, step.reasons) == ("blocked", ("min_score 90 cannot be checked: the candidate does not say",))
    assert books.offered("staging") == [b"one"]
