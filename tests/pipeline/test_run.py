"""Runs of cheap stages through the front door: what runs, in which order, what is recorded, and what a person is told."""

from __future__ import annotations

import json
import signal

import pytest

from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.base.events import FailedStageLog, ServerUnusable, StageFinished, StageSkipped, StageStarted
from mcpfactory_pipeline.base.versions import installed_version
from mcpfactory_pipeline.plan.fingerprint import InputReader, read_stage_inputs
from mcpfactory_pipeline.run.run import plan_servers
from mcpfactory_pipeline.stages import STAGES as ALL_STAGES
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.views.status import history, status
from tests.pipeline.conftest import Recorder
from tests.pipeline.fake_stages import IMPATIENT, STAGES, add_server
from tests.pipeline.inprocess_executor import InProcessExecutor
from tests.timeouts import TIMEOUT

IN_PROCESSES = pytest.mark.parametrize("executor", [None], ids=["processes"])
"""For tests of what only a process can do; a process for each stage is most of what a run costs."""


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def ran(recorder: Recorder) -> list[tuple[str, str]]:
    return [(event.stage, event.outcome) for event in recorder.of(StageFinished)]


def test_another_uv_makes_no_stage_due(workspace):
    add_server(workspace.root, "books")
    subject = InputReader(workspace.server("books"), ServerState("books"))
    read = read_stage_inputs(ALL_STAGES, subject)
    assert set(read) >= {"generate", "build", "test", "validate", "staging"}
    assert [stage for stage, inputs in read.items() if installed_version("uv") in inputs.values()] == []


@IN_PROCESSES
def test_all_stages_run_in_order_and_the_result_is_recorded(workspace, run, recorder):
    add_server(workspace.root, "books")
    outcome = run("books", reporter=recorder)
    assert (outcome.servers, outcome.ran) == ({"books": "passed"}, 3)
    assert (outcome.failed, outcome.errored, outcome.interrupted) == (False, False, False)
    assert ran(recorder) == [("build", "passed"), ("test", "passed"), ("staging", "passed")]
    state = Store(workspace).state("books")
    assert state.channels["staging"].candidate == state.candidate
    assert state.candidates[state.candidate].checks["test"]["outcome"] == "passed"
    assert verify(workspace) == []


def test_a_second_run_without_changes_runs_nothing_and_writes_nothing(workspace, run, recorder):
    add_server(workspace.root, "books")
    run()
    before = {file: file.read_bytes() for file in workspace.pipeline.glob("[sh]*/*")}
    assert run(reporter=recorder).ran == 0
    assert recorder.of(StageStarted) == []
    assert {file: file.read_bytes() for file in workspace.pipeline.glob("[sh]*/*")} == before
    assert [step.verdict for step in plan_servers(workspace, stages=STAGES)] == ["up-to-date"] * 3


def test_a_change_runs_what_reads_it_and_says_why(workspace, run, recorder):
    folder = add_server(workspace.root, "books")
    run()
    (folder / "tests" / "more.txt").write_text("x")
    steps = {step.stage: (step.verdict, step.reasons) for step in plan_servers(workspace, stages=STAGES)}
    assert steps == {
        "build": ("up-to-date", ()),
        "test": ("run", ("tests changed",)),
        "staging": ("run", ("stage test will run",)),
    }
    run(reporter=recorder)
    assert ran(recorder) == [("test", "passed")], "the same candidate passed again, so there is nothing to promote"


def test_a_change_that_comes_to_the_same_candidate_stops_there(workspace, run, recorder):
    folder = add_server(workspace.root, "books")
    run()
    (folder / "notes.md").write_text("the wheel does not hold this")
    run(reporter=recorder)
    assert ran(recorder) == [("build", "passed")]


def test_only_the_changed_server_runs(workspace, run):
    for name in ("a", "b"):
        add_server(workspace.root, name)
    run()
    (workspace.root / "servers" / "b" / "source.txt").write_text("two")
    due = {step.server for step in plan_servers(workspace, stages=STAGES) if step.verdict != "up-to-date"}
    assert due == {"b"}
    assert run().ran == 3


def test_a_failed_stage_is_tried_once_and_bars_what_needs_it(workspace, run, recorder):
    add_server(workspace.root, "books", outcome="failed")
    outcome = run("books", reporter=recorder)
    assert outcome.failed
    assert outcome.servers == {"books": "failed"}
    assert ran(recorder) == [("build", "passed"), ("test", "failed")]
    assert [(event.stage, event.verdict, event.reasons) for event in recorder.of(StageSkipped)] == [
        ("staging", "blocked", ("needs test, which failed",))
    ]
    (log,) = recorder.of(FailedStageLog)
    assert log.lines == ("the outcome is to be failed",)
    assert (workspace.root / log.log).exists()
    assert Store(workspace).state("books").channels == {}


def test_from_a_stage_runs_it_again_and_what_needs_it(workspace, run, recorder):
    add_server(workspace.root, "books")
    run("books")
    assert run("books", again="test", reporter=recorder).servers == {"books": "passed"}
    assert ran(recorder) == [("test", "passed"), ("staging", "passed")]
    assert run("books").ran == 0, "once"


def test_a_stage_that_failed_is_tried_again_from_there(workspace, run, recorder):
    add_server(workspace.root, "books", outcome="failed")
    run("books")
    assert run("books", again="test", reporter=recorder).servers == {"books": "failed"}
    assert ran(recorder) == [("test", "failed")]
    with pytest.raises(NotFoundError, match="unknown stage 'tset'"):
        run("books", again="tset")


@pytest.mark.parametrize(
    ("case", "executor"),
    [
        (("broken", "errored", "the machine is broken; hint: mend it"), InProcessExecutor()),
        (("bug", "errored", "ZeroDivisionError: a bug"), InProcessExecutor()),
        (("dead", "interrupted", "the process of the stage was killed by signal 9"), None),
    ],
    ids=["broken", "bug", "dead"],
)
def test_broken_machinery_is_tried_again_as_often_as_allowed(workspace, run, recorder, case):
    wanted, outcome, message = case
    add_server(workspace.root, "books", outcome=wanted)
    ended = run("books", reporter=recorder)
    assert ended.servers == {"books": outcome}
    assert ran(recorder) == [("build", "passed"), ("test", outcome), ("test", outcome)]
    assert [event.attempt for event in recorder.of(StageStarted)] == [1, 1, 2]
    assert {event.message for event in recorder.of(StageFinished) if event.stage == "test"} == {message}
    test_step = plan_servers(workspace, stages=STAGES)[1]
    assert (test_step.verdict, test_step.reasons) == ("run", (f"last outcome {outcome}",))
    assert verify(workspace) == []


def test_inconclusive_is_not_passed_and_not_tried_again_in_the_same_run(workspace, run, recorder):
    add_server(workspace.root, "books", outcome="inconclusive")
    assert run("books", reporter=recorder).failed
    assert ran(recorder) == [("build", "passed"), ("test", "inconclusive")]


def test_a_run_that_is_ended_does_not_wait_for_another_attempt(workspace, start_pipeline_process):
    from tests.pipeline.staged_workspace import configured

    configured(workspace, "attempts = 3\n")
    config = workspace.root / "mcpfactory.toml"
    config.write_text(config.read_text().replace("backoff = 0", "backoff = 60"))
    add_server(workspace.root, "books", outcome="broken")
    process = start_pipeline_process("books")
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "log":
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, err) == (130, "")
    assert Store(workspace).state("books").stages["test"].outcome == "errored"


@IN_PROCESSES
def test_a_stage_over_its_time_limit_is_ended(workspace, run, recorder):
    add_server(workspace.root, "books", outcome="held")
    ended = run("books", stages=IMPATIENT, reporter=recorder)
    assert ended.errored
    assert recorder.of(StageFinished)[-1].message == "took longer than its limit of 0.5 seconds"


def test_no_path_of_this_machine_gets_into_the_state(workspace, run):
    add_server(workspace.root, "books")
    run("books")
    store = Store(workspace)
    text = store.history_file("books").read_text() + store.state_file("books").read_text()
    assert "it passed in ." in text
    assert str(workspace.root) not in text


def test_logs_and_reports_are_kept_with_their_hash(workspace, run):
    from mcpfactory_pipeline.base.hashing import hash_file
    from mcpfactory_pipeline.state.manifest import recorded_artifacts

    add_server(workspace.root, "books")
    run("books")
    state = Store(workspace).state("books")
    artifacts = recorded_artifacts(state.stages["test"], workspace.artifacts / "books" / "manifests")
    assert set(artifacts) == {"logs/test.log", f"{state.candidate}/test/report.txt"}
    for path, content in artifacts.items():
        assert hash_file(workspace.artifacts / "books" / path) == content


def test_a_fresh_clone_has_nothing_to_do_until_a_stage_wants_the_wheel(workspace, run, recorder):
    import shutil

    folder = add_server(workspace.root, "books")
    run("books")
    shutil.rmtree(workspace.artifacts)
    shutil.rmtree(workspace.pipeline / "locks")
    assert run("books").ran == 0
    (folder / "tests" / "more.txt").write_text("x")
    run("books", reporter=recorder)
    assert ran(recorder) == [("build", "passed"), ("test", "passed")]


def test_one_bad_server_does_not_hurt_the_others(workspace, run, recorder):
    add_server(workspace.root, "good")
    bad = add_server(workspace.root, "bad")
    (bad / "link").symlink_to("/etc")
    assert run(reporter=recorder).servers == {"bad": "errored", "good": "passed"}
    (trouble,) = recorder.of(ServerUnusable)
    assert trouble.server == "bad"
    assert "outside the server's folder" in trouble.message
    assert trouble.hint


def test_unknown_names_are_refused_before_anything_runs(workspace, run):
    add_server(workspace.root, "books")
    with pytest.raises(NotFoundError, match="no server 'boks'"):
        run("books", "boks")
    with pytest.raises(NotFoundError, match="unknown stage 'tset'") as caught:
        run("books", until="tset")
    assert "build, test, staging" in caught.value.hint
    assert Store(workspace).servers() == []


def test_status_says_where_every_server_stands(workspace, run):
    folder = add_server(workspace.root, "books")
    add_server(workspace.root, "new")
    run("books")
    (folder / "source.txt").write_text("two")
    books, new = status(workspace)
    assert json.loads(json.dumps([books, new])) == [books, new]
    assert (books["server"], books["version"], books["running"]) == ("books", "1.0", None)
    assert books["channels"]["staging"] == {"candidate": books["candidate"], "version": "1.0"}
    assert books["stages"]["build"]["outcome"] == "passed"
    assert books["stages"]["build"]["stale"]
    assert "source changed" in books["stages"]["build"]["reasons"]
    assert books["stages"]["test"]["summary"]["token"]
    assert books["stale"]
    assert (new["candidate"], new["stages"]["build"]["outcome"], new["stale"]) == (None, None, True)


def test_history_is_told_oldest_first_also_of_a_server_that_is_gone(workspace, run):
    import shutil

    add_server(workspace.root, "books")
    run("books")
    shutil.rmtree(workspace.root / "servers" / "books")
    assert [event["stage"] for event in history(workspace, "books")][:2] == ["build", "test"]
    with pytest.raises(NotFoundError):
        history(workspace, "never")
