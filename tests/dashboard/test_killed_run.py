"""A run whose process was killed: what it was at is interrupted, everywhere and at once, before the next run has recorded that."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.base.locks import active_runs, register_run, run_lock
from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.plan.stage import StageOutputs
from mcpfactory_pipeline.run.run import plan_servers, run_pipeline
from mcpfactory_pipeline.views.inbox import InboxItem, read_inbox
from mcpfactory_pipeline.views.status import status
from tests.cli.terminal_capture import run as command
from tests.dashboard.conftest import WorkspaceBuilder
from tests.dashboard.killed_run import kill_run
from tests.pipeline.inprocess_executor import InProcessExecutor
from tests.system import ended_process

JSON = {"Accept": "application/json"}
RUN_AGAIN = "mcpfactory pipeline run bookshop"


class Passing(InProcessExecutor):
    """Every stage passes, and does nothing."""

    def run(self, job: Mapping[str, Any], *, log: Path) -> StageOutputs:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")
        return StageOutputs("passed", f"{job['stage']} is done")


@pytest.fixture
def client(four_servers: WorkspaceBuilder) -> TestClient:
    return TestClient(create_app(four_servers.root), base_url="http://127.0.0.1", headers=JSON)


def found(client: TestClient, path: str) -> Any:
    return client.get(path).json()


def of_server(client: TestClient) -> dict[str, str]:
    """How the stages of the server stand: on the board, and the same on its own page and in the status."""
    row = next(one for one in found(client, "/board/")["servers"] if one["name"] == "bookshop")
    page = found(client, "/servers/bookshop/")
    known = {cell["stage"]: cell["status"] for cell in row["cells"]}
    assert {stage["stage"]: stage["status"] for stage in page["stages"]} == known
    assert page["status"] == row["status"]
    return {"all": row["status"], **known}


def of_run(client: TestClient, run: str) -> str:
    """How a run stands: in the list of all, and the same on its own page."""
    (row,) = (one for one in found(client, "/runs/")["runs"] if one["run"] == run)
    assert found(client, f"/runs/{run}/")["status"] == row["status"]
    return str(row["status"])


def interrupted(builder: WorkspaceBuilder) -> list[InboxItem]:
    return [item for item in read_inbox(builder.workspace, ["bookshop"]) if item.kind == "interrupted"]


def test_what_a_killed_run_was_at_is_interrupted_in_all_views(
    four_servers: WorkspaceBuilder, client: TestClient
) -> None:
    assert of_server(client)["test"] == "passed"
    assert interrupted(four_servers) == []
    run = kill_run(four_servers.root, "bookshop", "test")
    (start,) = four_servers.store.unfinished_starts("bookshop")
    assert (start["event"], start["stage"], start["run"]) == ("stage.started", "test", run)
    assert four_servers.store.state("bookshop").stages["test"].outcome == "passed"  # nothing is recorded yet

    assert of_run(client, run) == "interrupted"
    stages = of_server(client)
    assert (stages["all"], stages["test"], stages["build"]) == ("interrupted", "interrupted", "passed")
    (row,) = status(four_servers.workspace, ["bookshop"])
    assert (row["stages"]["test"]["outcome"], row["stale"], row["running"]) == ("interrupted", True, None)
    assert "interrupted" in command(["pipeline", "status", "bookshop"], four_servers.root, terminal=False).text
    (item,) = interrupted(four_servers)
    assert (item.about, item.command, item.since) == ("test", RUN_AGAIN, start["at"])
    (shown,) = (one for one in found(client, "/")["items"] if one["kind"] == "interrupted")
    assert (shown["server"], shown["command"], shown["since"]) == ("bookshop", RUN_AGAIN, start["at"])
    chips = [
        (place["node"]["name"], chip["status"])
        for place in found(client, "/servers/bookshop/")["graph"]
        for chip in place["chips"]
    ]
    assert ("test", "interrupted") in chips
    assert found(client, "/servers/bookshop/logs/test/")["status"] == "interrupted"
    steps = {step.stage: step.verdict for step in plan_servers(four_servers.workspace, ["bookshop"])}
    assert (steps["build"], steps["test"]) == ("up-to-date", "run")


def test_the_command_that_is_named_runs_it_again_and_nothing_is_interrupted_any_more(
    four_servers: WorkspaceBuilder, client: TestClient
) -> None:
    run = kill_run(four_servers.root, "bookshop", "test")
    run_pipeline(four_servers.workspace, ["bookshop"], executor=Passing(), jobs=1)
    assert "interrupted" not in of_server(client).values()
    assert interrupted(four_servers) == []
    kinds = [event["event"] for event in four_servers.store.history("bookshop") if event.get("run") == run]
    assert kinds == ["stage.interrupted"]
    assert of_run(client, run) == "interrupted"


def test_a_dashboard_that_showed_it_running_shows_it_interrupted(
    four_servers: WorkspaceBuilder, client: TestClient
) -> None:
    """Nothing but the process changes when it dies: no history, and no note."""
    run, locks = new_id(), four_servers.store.locks
    with run_lock(locks, "bookshop", run, waiting=print, stopped=lambda: False) as announce:
        announce(four_servers.starts("bookshop", run, "test"))
        assert (of_server(client)["test"], of_run(client, run)) == ("running", "running")
        assert interrupted(four_servers) == []
        note = locks / "bookshop.running"
        before = note.stat()
        note.write_text(note.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {ended_process()}'))
        os.utime(note, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (of_server(client)["test"], of_run(client, run)) == ("interrupted", "interrupted")


@pytest.mark.parametrize("note", ["", "{}", '{"pid": 1, "run": "r", "stage": "test", "stages": ["test"]}'])
def test_start_without_note_of_a_run_does_not_change_the_state(
    four_servers: WorkspaceBuilder, client: TestClient, note: str
) -> None:
    """An earlier version recorded starts in the history, and other fields in the note."""
    run = kill_run(four_servers.root, "bookshop", "test")
    with four_servers.store.transaction("bookshop") as transaction:
        transaction.append("stage.started", stage="test", run=run)
    (four_servers.store.locks / "bookshop.running").write_text(note)
    assert of_server(client)["test"] == "passed"
    assert interrupted(four_servers) == []
    assert of_run(client, run) == "interrupted"


def test_next_run_removes_the_entry_of_a_dead_run(tmp_path: Path) -> None:
    with register_run(tmp_path, "FIRST"):
        (note,) = tmp_path.rglob("FIRST.*")
        dead = note.with_name(f"DEAD.{ended_process()}.running")
        dead.touch()
        assert active_runs(tmp_path) == {"FIRST"}
        with register_run(tmp_path, "SECOND"):
            assert active_runs(tmp_path) == {"FIRST", "SECOND"}
            assert not dead.exists()
