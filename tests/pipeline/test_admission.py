"""A channel that automation moved back in a job: the move is taken as a run makes it, and in no other form."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.delivery.ci.admission import AdmissionRules, ShardResultError, admit_job_events
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.plan.stage import Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.state.manifest import with_details
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.fake_stages import STAGES, add_server
from tests.pipeline.inprocess_executor import InProcessExecutor
from tests.pipeline.staged_workspace import configured

Event = dict[str, Any]


def smoke(inputs: StageInputs) -> StageOutputs:
    """Fails on a wheel that is bad."""
    assert inputs.candidate is not None
    bad = inputs.candidate.wheel.read_bytes() == b"bad"
    return StageOutputs("failed" if bad else "passed", "it was tried")


SMOKE = Stage(
    "smoke", ("staging",), ("candidate",), ("checks",), 1, f"{__name__}:smoke", watches="staging", rollback=True
)
KNOWN = (*STAGES, SMOKE)


PROBE = replace(SMOKE, name="probe")  # known, and never run


@pytest.fixture(scope="module")
def made(tmp_path_factory, wheelhouse) -> tuple[str, list[Event]]:
    """The second of two runs, and the events of both: a bad candidate after one that was good."""
    space = configured(apply_setup(plan_workspace_setup(tmp_path_factory.mktemp("admission") / "space"), git=False))
    shutil.copytree(wheelhouse, space.artifacts / ".wheelhouse")
    folder, runs = add_server(space.root, "books"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MCPFACTORY_ACTOR", "tester")
        for source in ("good", "bad"):
            (folder / "source.txt").write_text(source)
            runs.append(new_id())
            run_pipeline(space, ["books"], stages=KNOWN, executor=InProcessExecutor(), jobs=1, run_id=runs[-1])
    return runs[-1], [_with_all_details(space, event) for event in Store(space).history("books")]


def _with_all_details(space: Workspace, event: Event) -> Event:
    """Return an event in the form of earlier versions, which had no manifests."""
    detailed = with_details(event, space.artifacts / "books" / "manifests")
    return {key: value for key, value in detailed.items() if key != "manifest"}


@pytest.fixture
def handed(made) -> Callable[..., list[Event]]:
    """Admits what a job made of the bad candidate; `change` is what somebody does to its events before, `smoke` the stage that the workspace has."""
    run, events = made
    first = [event for event in events if event["id"] < run]

    def admitted(change: Callable[[Event], Any] = lambda _event: None, smoke: Stage = SMOKE) -> list[Event]:
        theirs = json.loads(json.dumps(events))
        for event in theirs[len(first) :]:
            change(event)
        stages = {stage.name: stage for stage in (*STAGES, smoke, PROBE)}
        return admit_job_events("books", first, theirs, AdmissionRules(run, stages))

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
        (moved(stage="probe"), "kind"),
        (moved(stage="no-stage"), "stage"),
        (moved(channel="production"), "kind"),
        (moved(candidate="0123456789abcdef"), "channel"),
        (lambda event: event.update(outcome="passed") if event.get("stage") == "smoke" and "outcome" in event else None, "kind"),
        (lambda event: event.update(event="promoted") if event["event"] == "rolled-back" else None, "kind"),
    ],
    ids=["a person's", "a stage that moves nothing back", "a stage that did not run", "no stage", "another channel", "never offered", "nothing failed", "a promotion"],
)  # fmt: skip
def test_a_move_back_that_no_failure_asked_for_is_refused(handed, change, code):
    with pytest.raises(ShardResultError) as caught:
        handed(change)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("facts", "channel"),
    [
        ({"rollback": False}, "staging"),
        ({"watches": "production"}, "staging"),
        ({"watches": "production"}, "production"),
    ],
    ids=["it only watches", "it watches another channel", "the channel offers nothing"],
)
def test_a_stage_moves_back_only_what_it_watches_and_may_move(handed, facts, channel):
    with pytest.raises(ShardResultError) as caught:
        handed(moved(channel=channel), replace(SMOKE, **facts))
    assert caught.value.code == "kind"


def test_a_failure_of_what_the_channel_does_not_offer_holds_nothing(handed):
    def change(event: Event) -> None:
        if event["event"] == "stage.finished" and event["stage"] == "staging":
            event.pop("channel")
        if event["event"] == "rolled-back":
            event["event"] = "held"
            del event["candidate"], event["version"]

    with pytest.raises(ShardResultError) as caught:
        handed(change)
    assert caught.value.code == "channel"


@pytest.mark.parametrize(
    "path",
    ["0123456789abcdef/books-1.0.0-py3-none-any.whl", "0123456789abcdef/smoke/report.json", "tests.json", "logs/test.log", "smoke/report.json", ""],
    ids=["another candidate", "its reports", "what the server keeps", "another stage's log", "a stage without a candidate", "nothing"],
)  # fmt: skip
def test_a_stage_hands_over_its_own_log_and_reports_and_no_other_file(handed, path):
    def change(event: Event) -> None:
        if event.get("stage") == "smoke" and event["event"] == "stage.finished":
            event["artifacts"] = {path: hash_bytes(b"x")}

    with pytest.raises(ShardResultError) as caught:
        handed(change)
    assert caught.value.code == "files"


def test_reports_of_the_candidate_that_a_stage_checked_are_taken(handed):
    def change(event: Event) -> None:
        if event.get("stage") == "smoke" and event["event"] == "stage.finished":
            event["artifacts"] = {f"{event['candidate']}/smoke/report.json": hash_bytes(b"x"), **event["artifacts"]}

    assert handed(change)
