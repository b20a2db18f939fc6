"""Runs on a dask cluster: the same results and books as with processes of one's own, whoever dies."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys

import pytest
from filelock import FileLock

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from tests.pipeline.fake_stages import STAGES, add_server
from tests.pipeline.staged_workspace import configured
from tests.timeouts import TIMEOUT, wait_until


@pytest.fixture
def executor():
    return None  # processes, as they are usually run


pytestmark = [
    pytest.mark.xdist_group("dask"),  # each of these starts several processes: one after the other is enough
]


@pytest.fixture
def on_dask(workspace):
    """The workspace, with the executor in its settings."""
    return configured(workspace, 'executor = "dask"\n')


def ended(process) -> dict[str, str]:
    """The outcomes of a run that came to its end without a word on stderr."""
    out, err = process.communicate(timeout=TIMEOUT)
    assert err == ""
    return json.loads(out.splitlines()[-1])["servers"]


def test_a_run_completes_although_a_worker_is_killed_in_the_middle(on_dask, start_pipeline_process):
    for name, outcome in (("a", "passed"), ("b", "worker dies"), ("c", "passed"), ("d", "failed")):
        add_server(on_dask.root, name, outcome=outcome)
    assert ended(start_pipeline_process()) == {"a": "passed", "b": "passed", "c": "passed", "d": "failed"}
    assert (on_dask.root / "died").exists()
    events = [(e["event"], e.get("message", "")) for e in Store(on_dask).history("b") if e.get("stage") == "test"]
    assert [kind for kind, _ in events] == ["stage.interrupted", "stage.finished"]
    assert events[0][1] == "the dask worker that ran the stage died"
    assert verify(on_dask) == []


def test_ctrl_c_ends_the_jobs_on_the_workers_and_keeps_what_was_finished(on_dask, start_pipeline_process):
    add_server(on_dask.root, "books", outcome="held")
    process = start_pipeline_process("books")
    wait_until((on_dask.root / "holding").exists)
    process.send_signal(signal.SIGINT)
    assert ended(process) == {"books": "interrupted"}
    assert process.returncode == 130
    FileLock(on_dask.root / "alive.lock").acquire(timeout=TIMEOUT)  # only free when the stage's process is gone
    stages = Store(on_dask).state("books").stages
    assert (stages["build"].outcome, stages["test"].outcome) == ("passed", "interrupted")
    assert verify(on_dask) == []


@pytest.fixture
def cluster():
    """A scheduler and a worker that somebody else runs; gives the scheduler's address."""

    def start(*words: str, until: str) -> tuple[subprocess.Popen, str]:
        process = subprocess.Popen([sys.executable, "-m", *words], stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            if found := re.search(until, line):
                return process, found[1]
        raise AssertionError(f"{words[0]} ended with {process.wait()}")

    scheduler, address = start(
        "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
        until=r"Scheduler at: +(tcp://\S+)",
    )  # fmt: skip
    worker, _ = start(
        "distributed.cli.dask_worker",
        address,
        "--nthreads",
        "2",
        "--no-dashboard",
        until=r"(Starting established connection)",
    )
    yield address
    for process in (worker, scheduler):
        process.terminate()
        process.communicate(timeout=TIMEOUT)


def test_a_cluster_that_exists_is_used_and_left_as_it_was(workspace, start_pipeline_process, cluster):
    space = configured(workspace, f'executor = "{cluster}"\n')
    add_server(space.root, "books")
    assert ended(start_pipeline_process()) == {"books": "passed"}


def test_a_cluster_that_is_not_there_is_said_before_anything_runs(workspace):
    add_server(workspace.root, "books")
    with pytest.raises(ConfigError, match="cannot be used") as caught:
        run_pipeline(workspace, stages=STAGES, executor="tcp://nowhere")
    assert "--executor dask" in caught.value.hint
    assert Store(workspace).history("books") == []
