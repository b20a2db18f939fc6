"""Stages end at their limits of time and memory; nothing else of the run is hurt."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.plan.stage import StageInputs, StageOutputs
from mcpfactory_pipeline.run.executor import LocalExecutor, process_tree_memory
from mcpfactory_pipeline.run.job import make_job
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from tests.pipeline.fake_stages import BUILD, SHIP, TEST, add_server
from tests.pipeline.staged_workspace import configured
from tests.pipeline.test_orphans import inputs_in, stage_of
from tests.skip_conditions import needs


@pytest.fixture
def executor():
    return None  # processes, as they are usually run


@needs("linux")
def test_a_stage_that_takes_more_memory_than_it_may_is_ended_and_the_others_go_on(workspace, run):
    add_server(workspace.root, "greedy", outcome="takes 400")
    add_server(workspace.root, "modest")
    bounded = replace(TEST, memory=200 * 2**20)
    assert run(stages=(BUILD, bounded, SHIP)).servers == {"greedy": "errored", "modest": "passed"}
    record = Store(workspace).state("greedy").stages["test"]
    assert record.message == "used more memory than its limit of 200 MiB"
    events = [event["event"] for event in Store(workspace).history("greedy") if event.get("stage") == "test"]
    assert events == ["stage.finished"] * 2, "the machinery broke: it is tried again"
    assert verify(workspace) == []


def test_limits_of_a_stage_are_set_in_the_workspace(workspace):
    space = configured(workspace, '[pipeline.limits.test]\ntimeout = 5\nmemory = "2GiB"\n')
    stages = {stage.name: stage for stage in workspace_stages(space)}
    assert (stages["test"].timeout, stages["test"].memory) == (5.0, 2 * 2**30)
    assert stages["build"].memory == 4 * 2**30
    before = {stage.name: stage.stamp for stage in workspace_stages(workspace)}
    assert stages["test"].stamp == before["test"], "a limit is no input: what passed stays passed"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[pipeline.limits.flight]\ntimeout = 3", "unknown stage 'flight'"),
        ("[pipeline.limits.test]\ntimeout = 0", "timeout: 0 is not valid"),
        ("[pipeline.limits.test]\nmemory = 1.5", "memory: must be a whole number or a string"),
    ],
)
def test_a_limit_that_cannot_be_meant_is_refused(workspace, text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        workspace_stages(configured(workspace, text))
    assert caught.value.hint


def chatter(inputs: StageInputs) -> StageOutputs:
    """A stage that writes 30 MB."""
    print("first line")
    for number in range(300_000):
        print(f"{number:099}")
    print("last line", flush=True)
    return StageOutputs("passed", "")


def test_a_long_log_keeps_its_beginning_and_its_end(tmp_path):
    log = tmp_path / "chatter.log"
    LocalExecutor(1).run(make_job(stage_of(chatter), inputs_in(tmp_path)), log=log)
    data = log.read_bytes()
    assert len(data) <= 10_000_000
    lines = data.splitlines()
    assert (lines[0], lines[-1]) == (b"first line", b"last line")
    (mark,) = (line for line in lines if b"left out" in line)
    assert 0 < int(re.search(rb"\d+", mark)[0]) <= 30_000_000


@needs("linux")
def test_pages_that_processes_share_count_once(tmp_path):
    ready, told = os.pipe()
    program = f"import os, time; data = os.urandom(50 * 2**20); [os.fork() for _ in range(2)]; os.write({told}, b'x'); input()"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", program], stdin=subprocess.PIPE, pass_fds=[told], start_new_session=True
    ) as process:
        for _ in range(4):
            os.read(ready, 1)
        assert process_tree_memory(process.pid, 1e9) > 200 * 2**20
        assert 50 * 2**20 < process_tree_memory(process.pid, 2**20) < 100 * 2**20
