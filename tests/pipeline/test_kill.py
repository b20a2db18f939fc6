"""Processes that die: killed at any moment, the state is the old one or the new one, nothing unfinished counts as done, and the
next run goes on. The real `run_pipeline` in a process of its own, with cheap stages."""

from __future__ import annotations

import json
import signal

import pytest
from filelock import FileLock

from mcpfactory_pipeline.base.locks import read_run_notes
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.views.status import status
from tests.pipeline.fake_stages import add_server
from tests.timeouts import TIMEOUT, wait_until


@pytest.fixture
def executor():
    return None  # processes, as they are usually run


def wait_until_held(process, root) -> None:
    """Reads the run's events until the stage that waits for ever has started, then waits until it really waits."""
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "step.started" and event["stage"] == "test":
            break
    wait_until((root / "holding").exists)


@pytest.fixture
def held(workspace, start_pipeline_process):
    """A run that is under way: `build` has passed, `test` holds a lock and waits for ever."""
    add_server(workspace.root, "books", outcome="held")
    process = start_pipeline_process("books")
    wait_until_held(process, workspace.root)
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_in_order_and_keeps_what_was_finished(workspace, held, number):
    held.send_signal(number)
    out, err = held.communicate(timeout=TIMEOUT)
    assert (held.returncode, err) == (130, "")
    assert json.loads(out.splitlines()[-1])["servers"] == {"books": "interrupted"}
    FileLock(workspace.root / "alive.lock").acquire(timeout=TIMEOUT)  # only free when the stage's process is gone
    state = Store(workspace).state("books")
    assert (state.stages["build"].outcome, state.stages["test"].outcome) == ("passed", "interrupted")
    assert verify(workspace) == []
    assert read_run_notes(workspace.pipeline / "locks", "books") == {}


def test_when_the_run_is_killed_its_stages_die_and_the_next_run_records_and_repeats_them(workspace, held, run):
    held.kill()
    held.wait()
    FileLock(workspace.root / "alive.lock").acquire(timeout=TIMEOUT)
    assert status(workspace)[0]["running"] is None
    (workspace.root / "servers" / "books" / "tests" / "outcome.txt").write_text("passed")
    assert run("books").servers == {"books": "passed"}
    events = [(event["event"], event.get("stage")) for event in Store(workspace).history("books")]
    assert events[:3] == [("stage.finished", "build"), ("stage.interrupted", "test"), ("stage.finished", "test")]
    assert [kind for kind, _ in events].count("stage.interrupted") == 1
    assert verify(workspace) == []


def test_a_second_run_of_the_same_server_waits_and_can_be_ended_while_it_waits(workspace, held, start_pipeline_process):
    second = start_pipeline_process("books")
    waiting = next(event for line in second.stdout if (event := json.loads(line))["event"] == "waiting")
    assert waiting["server"] == "books"
    assert waiting["holder"]["pid"] == held.pid
    second.send_signal(signal.SIGINT)
    second.communicate(timeout=TIMEOUT)
    assert second.returncode == 130
    assert held.poll() is None
