"""Stages of one server that are at work side by side: each is shown as running, on every page and in the status, until it has ended."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.base.locks import run_lock
from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.plan.stage import StageOutputs
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.views.status import status
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.cli.terminal_capture import run as command
from tests.dashboard.conftest import WorkspaceBuilder
from tests.pipeline.fake_stages import with_fake_stages
from tests.pipeline.inprocess_executor import InProcessExecutor
from tests.timeouts import TIMEOUT

HTML, JSON = {"Accept": "text/html"}, {"Accept": "application/json"}


class Held(InProcessExecutor):
    """Runs jobs in this process; `test` and `validate` have begun once both have, and end when they are let go."""

    slots = 2

    def __init__(self) -> None:
        self.both = threading.Barrier(3)
        self.let_go = {"test": threading.Event(), "validate": threading.Event()}

    def run(self, job: Mapping[str, Any], *, log: Path) -> StageOutputs:
        stage = str(job["stage"])
        if stage not in self.let_go:
            return super().run(job, log=log)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"{stage} prints\n")
        self.both.wait(TIMEOUT)
        assert self.let_go[stage].wait(TIMEOUT)
        return StageOutputs("passed", f"{stage} is done")


@contextmanager
def running(workspace: Workspace, server: str) -> Iterator[tuple[str, Held]]:
    """A run of which `test` and `validate` are at work: its id, and what lets them go."""
    held, run, stop = Held(), new_id(), threading.Event()
    stages = with_fake_stages(workspace_stages(workspace))
    options: dict[str, Any] = {"stages": stages, "executor": held, "jobs": 2, "run_id": run, "stop": stop}
    thread = threading.Thread(target=run_pipeline, args=(workspace, [server]), kwargs=options)
    thread.start()
    try:
        held.both.wait(TIMEOUT)
        yield run, held
    finally:
        stop.set()
        for event in held.let_go.values():
            event.set()
        thread.join(TIMEOUT)


@pytest.fixture
def client(builder: WorkspaceBuilder) -> TestClient:
    builder.add("weather")
    (builder.root / "servers" / "weather" / "source.txt").write_text("one")
    return TestClient(create_app(builder.root), base_url="http://127.0.0.1", headers=HTML)


def cells(client: TestClient) -> dict[str, str]:
    """How the stages of the server stand: on the board, and the same on its own page."""
    (row,) = client.get("/board/", headers=JSON).json()["servers"]
    page = client.get("/servers/weather/", headers=JSON).json()
    found = {cell["stage"]: cell["status"] for cell in row["cells"]}
    assert {stage["stage"]: stage["status"] for stage in page["stages"]} == found
    return found


def at_work_box(page: str) -> dict[str, str]:
    """What the box "At work now" of a run's page has: the end of the log of each step."""
    found = re.findall(r'<details open data-step="weather/(\w+)/1">.*?<code>(.*?)</code>', page, re.DOTALL)
    return {stage: unescape(re.sub(r"<[^>]+>", "", text)) for stage, text in found}


def steps(client: TestClient, run: str) -> dict[str, str]:
    view = client.get(f"/runs/{run}/", headers=JSON).json()
    return {step["stage"]: step["status"] for step in view["steps"]}


def test_two_stages_at_work_are_both_shown_everywhere(builder: WorkspaceBuilder, client: TestClient) -> None:
    with running(builder.workspace, "weather") as (run, _):
        assert steps(client, run) == {
            "generate": "passed", "build": "passed", "test": "running", "validate": "running"
        }  # fmt: skip
        for path in (f"/runs/{run}/", f"/runs/{run}/weather/"):
            page = client.get(path).text
            assert "interrupted" not in page
            assert "its end was not recorded" not in page
            assert at_work_box(page) == {"test": "test prints\n", "validate": "validate prints\n"}
        known = cells(client)
        assert (known["test"], known["validate"]) == ("running", "running")
        graph = client.get("/graph/", headers=JSON).json()
        busy = [
            place["node"]["name"] for place in graph["places"] for chip in place["chips"] if chip["status"] == "running"
        ]
        assert (busy, graph["running"]) == (["test", "validate"], 1)
        for stage in ("test", "validate"):
            log = client.get(f"/servers/weather/logs/{stage}/", headers=JSON).json()
            assert (log["status"], log["going"]) == ("running", True)
        (row,) = status(builder.workspace)
        assert (row["running"], row["at_work"]) == ("test", ["test", "validate"])
        shown = command(["pipeline", "status", "weather"], builder.root, terminal=False)
        assert shown.text.count("running") == 2
        assert "test running +" in command(["pipeline", "status"], builder.root, terminal=False).text
        assert "running" not in client.get("/inbox/").text


def test_what_a_stage_at_work_found_the_last_time_is_no_result_of_the_run_that_goes_on(
    four_servers: WorkspaceBuilder,
) -> None:
    client = TestClient(create_app(four_servers.root), base_url="http://127.0.0.1", headers=JSON)
    candidate = four_servers.store.state("bookshop").candidate
    four_servers.passed("bookshop", "test", candidate=candidate, message="4 passed", summary={"tests": 4})
    run = new_id()

    def stages() -> dict[str, dict[str, Any]]:
        page = client.get("/servers/bookshop/").json()
        notes = {place["node"]["name"]: place["node"]["note"] for place in page["graph"]}
        (row,) = client.get("/board/?q=bookshop").json()["servers"]
        said = {cell["stage"]: cell["note"] for cell in row["cells"]}
        return {
            one["stage"]: {**one, "node": notes[one["stage"]], "cell": said[one["stage"]]} for one in page["stages"]
        }

    with run_lock(four_servers.store.locks, "bookshop", run, waiting=print, stopped=lambda: False) as announce:
        starts = four_servers.starts("bookshop", run, "test", "validate")
        announce(starts)
        found = stages()
        for stage, words in (("test", "last time: passed, 4 passed"), ("validate", "last time: passed, score 99")):
            one = found[stage]
            assert (one["status"], one["run"]) == ("running", run)
            assert (one["message"], one["last_run"]) == (words, four_servers.run)
            assert (one["facts"], one["reasons"], one["node"], one["cell"]) == ([], [], "", "")
        text = client.get("/servers/bookshop/", headers=HTML).text
        assert f'last time: passed, 4 passed (<a href="../../runs/{four_servers.run}/bookshop/">its run</a>)' in text
        drawn = command(["pipeline", "status", "bookshop", "--graph", "text"], four_servers.root, terminal=False).text
        assert re.search(r"^ *test +needs build +running$", drawn, re.MULTILINE), drawn
        with four_servers.store.transaction("bookshop") as transaction:
            transaction.append("stage.interrupted", stage="test", run=run, message="the run was ended")
        announce(starts[1:])
        one = stages()["test"]
        assert (one["status"], one["message"], one["last_run"]) == ("interrupted", "the run was ended", "")
