"""A channel that automation moved back in a job: the move is taken as a run makes it, and in no other form."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.ci.admission import ShardResultError, Terms, admit
from mcpfactory_pipeline.plan.stage import Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.state.store import Store
from tests.pipeline.cheap import STAGES, add_server
from tests.pipeline.here import Here

Event = dict[str, Any]


def smoke(inputs: StageInputs) -> StageOutputs:
    """Fails on a wheel that is bad."""
    assert inputs.candidate is not None
    bad = inputs.candidate.wheel.read_bytes() == b"bad"
    return StageOutputs("failed" if bad else "passed", "it was tried")


SMOKE = Stage("smoke", ("staging",), ("candidate",), ("checks",), 1, smoke, watches="staging", rollback=True)
KNOWN = (*STAGES, SMOKE)


@pytest.fixture
def handed(workspace) -> Callable[..., list[Event]]:
    """Admits what a job made of a bad candidate, after one that was good; `change` is what somebody does to its events before."""
    folder, store, runs = add_server(workspace.root, "books"), Store(workspace), []
    for source in ("good", "bad"):
        (folder / "source.txt").write_text(source)
        runs.append(new_id())
        run_pipeline(workspace, ["books"], stages=KNOWN, executor=Here(), jobs=1, run_id=runs[-1])
    events = store.history("books")
    first = [event for event in events if event["id"] < runs[-1]]

    def admitted(change: Callable[[Event], Any] = lambda _event: None) -> list[Event]:
        theirs = json.loads(json.dumps(events))
        for event in theirs[len(first) :]:
            change(event)
        return admit("books", first, theirs, Terms(runs[-1], {stage.name: stage for stage in KNOWN}, time.time()))

    return admitted


def moved(**facts: Any) -> Callable[[Event], None]:
    return lambda event: event.update(facts) if event["event"] == "rolled-back" else None


def test_what_automation_moved_back_in_a_job_is_taken(handed):
    new = handed()
    (event,) = [event for event in new if event["event"] == "rolled-back"]
    assert (event["actor"], event["stage"], event["channel"]) == ("automation", "smoke", "staging")
    assert [one["event"] for one in new[-2:]] == ["stage.finished", "rolled-back"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (moved(actor="ada"), "kind"),
        (moved(stage="test"), "kind"),
        (moved(stage="no-stage"), "stage"),
        (moved(channel="production"), "kind"),
        (moved(candidate="0123456789abcdef"), "channel"),
        (lambda event: event.update(outcome="passed") if event.get("stage") == "smoke" and "outcome" in event else None, "kind"),
        (lambda event: event.update(event="promoted") if event["event"] == "rolled-back" else None, "kind"),
    ],
    ids=["a person's", "a stage that moves nothing back", "no stage", "another channel", "never offered", "nothing failed", "a promotion"],
)  # fmt: skip
def test_a_move_back_that_no_failure_asked_for_is_refused(handed, change, code):
    with pytest.raises(ShardResultError) as caught:
        handed(change)
    assert caught.value.code == code
