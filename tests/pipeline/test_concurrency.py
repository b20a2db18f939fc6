"""Several processes on one workspace: nothing is lost, nothing is mixed."""

from __future__ import annotations

import pytest

from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from tests.pipeline.fake_stages import add_server
from tests.pipeline.staged_workspace import configured
from tests.timeouts import TIMEOUT


@pytest.fixture
def executor():
    return None  # processes, as they are usually run


def finish(*processes) -> None:
    for process in processes:
        out, err = process.communicate(timeout=TIMEOUT)
        assert (process.returncode, err) == (0, ""), out


def test_two_runs_of_different_servers_do_not_disturb_each_other(workspace, start_pipeline_process):
    for name in ("a", "b"):
        add_server(workspace.root, name)
    finish(start_pipeline_process("run", "a"), start_pipeline_process("run", "b"))
    assert verify(workspace) == []
    for name in ("a", "b"):
        assert Store(workspace).state(name).channels["staging"]


def test_several_runs_of_the_same_server_follow_each_other(workspace, start_pipeline_process):
    add_server(workspace.root, "books")
    finish(*(start_pipeline_process("run", "books") for _ in range(2)))
    assert verify(workspace) == []
    events = Store(workspace).history("books")
    assert len(events) == 2 * 3 * 2
    for position in range(0, len(events), 6):
        assert len({event["run"] for event in events[position : position + 6]}) == 1, "a run's events stand together"


def test_promotions_from_several_processes_are_recorded_once_for_each_channel(workspace, start_pipeline_process, run):
    tables = (f'[[pipeline.channels]]\nname = "channel-{number}"\nfrom = "staging"\n' for number in range(2))
    configured(workspace, '[[pipeline.channels]]\nname = "staging"\n' + "".join(tables))
    add_server(workspace.root, "books")
    run("books")
    finish(
        *(start_pipeline_process("promote", "books", f"channel-{number}", "3") for number in range(2)),
        start_pipeline_process("run", "books"),
    )
    promoted = [event["reason"] for event in Store(workspace).history("books") if event["event"] == "promoted"]
    assert sorted(promoted) == [f"channel-{number} 0" for number in range(2)], "what is there is not promoted again"
    assert verify(workspace) == []
