"""The plan as a table: state and inputs in, verdicts and reasons out."""

from __future__ import annotations

from typing import NamedTuple

from mcpfactory_pipeline.plan.plan import plan
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.state.state import ServerState, StageRecord
from tests.subtest_table import parametrize_subtests

A = Stage("a", (), ("document", "runtime"), ("generated",), 1, "builtins:print")
B = Stage("b", ("a",), ("source",), ("candidate",), 1, "builtins:print")
C = Stage("c", ("b",), ("candidate",), ("checks",), 1, "builtins:print")
NOW = {
    "a": {"stage": "1", "document": "#d", "runtime": "0.3"},
    "b": {"stage": "1", "source": "#s"},
    "c": {"stage": "1", "candidate": "c0ffee"},
}
RUN, OK, BLOCKED = "run", "up-to-date", "blocked"


def passed(name: str, **inputs: str) -> StageRecord:
    return StageRecord("passed", inputs={**NOW[name], **inputs})


def ended(name: str, outcome: str) -> StageRecord:
    return StageRecord(outcome, inputs=NOW[name])


DONE = {name: passed(name) for name in NOW}


class Case(NamedTuple):
    name: str
    records: dict[str, StageRecord]
    expected: dict[str, tuple[str, tuple[str, ...]]]
    now: dict[str, dict[str, str]] = NOW
    force: tuple[str, ...] = ()
    present: bool = True


NEW = {
    "a": (RUN, ("never run",)),
    "b": (RUN, ("never run", "stage a will run")),
    "c": (RUN, ("never run", "stage b will run")),
}
AGAIN = {"b": (RUN, ("stage a will run",)), "c": (RUN, ("stage b will run",))}
CASES = [
    Case("nothing was ever run", {}, NEW),
    Case("everything passed and nothing changed", DONE, dict.fromkeys("abc", (OK, ()))),
    Case("content changed", {**DONE, "a": passed("a", document="#old")}, {"a": (RUN, ("document changed",)), **AGAIN}),
    Case("a version changed", {**DONE, "a": passed("a", runtime="0.2")}, {"a": (RUN, ("runtime 0.2 → 0.3",)), **AGAIN}),
    Case("content appeared", {**DONE, "a": passed("a", document="none")}, {"a": (RUN, ("document added",)), **AGAIN}),
    Case(
        "content went away",
        DONE,
        {"a": (RUN, ("document removed",)), **AGAIN},
        now={**NOW, "a": {**NOW["a"], "document": "none"}},
    ),
    Case("the stage itself changed", {**DONE, "a": passed("a", stage="0")}, {"a": (RUN, ("stage 0 → 1",)), **AGAIN}),
    Case(
        "an input that was not read before",
        {**DONE, "a": StageRecord("passed", inputs={"stage": "1", "document": "#d"})},
        {"a": (RUN, ("runtime is read now",)), **AGAIN},
    ),
    Case(
        "an input that is read no more", {**DONE, "a": passed("a", cases="#c")}, {"a": (RUN, ("cases is no longer read",)), **AGAIN}
    ),
    Case(
        "several reasons are all told",
        {**DONE, "a": passed("a", document="#old", runtime="0.2")},
        {"a": (RUN, ("document changed", "runtime 0.2 → 0.3")), **AGAIN},
    ),
    Case("only the last stage is stale", {**DONE, "c": passed("c", candidate="old")}, {"a": (OK, ()), "b": (OK, ()), "c": (RUN, ("candidate old → c0ffee",))}),
    *(
        Case(f"{outcome} is tried again", {**DONE, "b": ended("b", outcome)}, {"a": (OK, ()), "b": (RUN, (f"last outcome {outcome}",)), "c": (RUN, ("stage b will run",))})
        for outcome in ("errored", "interrupted", "inconclusive")
    ),
    Case(
        "failed with the same inputs is not tried again",
        {**DONE, "b": ended("b", "failed")},
        {"a": (OK, ()), "b": (BLOCKED, ("failed, and nothing that it reads has changed since",)), "c": (BLOCKED, ("needs b, which failed",))},
    ),
    Case(
        "failed with other inputs is tried again",
        {**DONE, "b": StageRecord("failed", inputs={"stage": "1", "source": "#old"})},
        {"a": (OK, ()), "b": (RUN, ("source changed",)), "c": (RUN, ("stage b will run",))},
    ),
    Case(
        "blocked goes down the line",
        {"a": ended("a", "failed")},
        {"a": (BLOCKED, ("failed, and nothing that it reads has changed since",)), "b": (BLOCKED, ("needs a, which failed",)), "c": (BLOCKED, ("needs b, which is blocked",))},
    ),
    Case("forced", DONE, {"a": (OK, ()), "b": (RUN, ("forced",)), "c": (RUN, ("stage b will run",))}, force=("b",)),
    Case("forced although it failed", {**DONE, "b": ended("b", "failed")}, {"a": (OK, ()), "b": (RUN, ("forced",)), "c": (RUN, ("stage b will run",))}, force=("b",)),
    Case("files that are not here are not missed while nobody wants them", DONE, dict.fromkeys("abc", (OK, ())), present=False),
    Case(
        "files that are not here are built when a stage wants them",
        {**DONE, "c": passed("c", candidate="old")},
        {"a": (OK, ()), "b": (RUN, ("the candidate's files are not on this machine",)), "c": (RUN, ("candidate old → c0ffee", "stage b will run"))},
        present=False,
    ),
]  # fmt: skip


@parametrize_subtests("case", CASES, name=lambda case: case.name)
def test_the_plan_says_what_runs_and_why(case):
    steps = plan((A, B, C), ServerState("s", stages=case.records), case.now, force=case.force, present=case.present)
    assert {step.stage: (step.verdict, step.reasons) for step in steps} == case.expected
    assert {step.server for step in steps} == {"s"}


def test_a_step_is_plain_data():
    (step, *_) = plan((A,), ServerState("s"), NOW)
    assert step.to_json() == {"server": "s", "stage": "a", "verdict": "run", "reasons": ("never run",)}
