"""Inbox, runs and tools: what they say, and that no page is too heavy."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.base.ids import acting_as, id_creation_time, new_id
from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.facts import RunFacts, ServerFacts, WorkspaceFacts
from mcpfactory_pipeline.dashboard.inbox import inbox
from mcpfactory_pipeline.dashboard.runs import gantt_chart, run_page, run_rows, runs_page
from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.views.inbox import KINDS, InboxItem
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from tests.dashboard.conftest import WorkspaceBuilder

JSON = {"Accept": "application/json"}


@pytest.fixture
def client(four_servers: WorkspaceBuilder) -> TestClient:
    return TestClient(create_app(four_servers.root), base_url="http://127.0.0.1:8765", headers={"Accept": "text/html"})


def waiting(*items: InboxItem, approvers: tuple[str, ...] = ()) -> WorkspaceFacts:
    servers = tuple(ServerFacts("zoo", item.server, {}, items=(item,)) for item in items)
    channels = (
        ChannelPolicy(name="staging"),
        ChannelPolicy(name="production", source="staging", approvals=1, approvers=approvers),
    )
    return WorkspaceFacts("zoo", servers, channels, datetime(2026, 5, 2, 12, tzinfo=UTC))


def test_the_inbox_says_for_whom_and_since_when() -> None:
    approval = InboxItem(
        "approval", "atlas", "production", "1 approval missing", "mcpfactory …", "2026-05-02T10:00:00Z"
    )
    failed = InboxItem("failed", "zebra", "test", "test failed", "mcpfactory …", "2026-05-01T12:00:00Z")
    view = inbox(waiting(approval, failed, approvers=("Ada", "Grace")))
    assert [(one.server, one.whom, one.waited) for one in view.items] == [
        ("zebra", "authors of the server", "1 d"),
        ("atlas", "Ada, Grace", "2 h"),
    ]
    assert inbox(waiting(approval)).items[0].whom == "anyone who may approve"


def test_the_inbox_is_filtered_by_kind_and_server() -> None:
    facts = waiting(InboxItem("failed", "zebra", "test", "no", ""), InboxItem("stale", "atlas", "test", "old", ""))
    assert [one.server for one in inbox(facts, kind="stale").items] == ["atlas"]
    assert [one.server for one in inbox(facts, query="ZE").items] == ["zebra"]
    assert len(inbox(facts, kind="no such kind").items) == 2


def test_the_landing_page_is_what_waits_with_the_command_to_type(client: TestClient) -> None:
    page = client.get("/").text
    assert ">Inbox <small>" in page
    assert "validate failed: score 62; first: tool-calls.some-succeed" in page
    assert ">mcpfactory validate atlas</code>" in page
    assert "anyone who may approve" in page


def event(kind: str, stage: str, run: str, **facts: object) -> dict[str, object]:
    return {
        "id": new_id(),
        "at": "2026-05-02T12:00:00Z",
        "actor": "Ada",
        "event": kind,
        "stage": stage,
        "run": run,
        **facts,
    }


def test_a_run_tells_every_step_with_its_reason_and_how_it_ended() -> None:
    events = [
        event("stage.started", "generate", "R", reasons=["never run"]),
        event("stage.finished", "generate", "R", outcome="errored", seconds=2.5, message="no space"),
        event("stage.started", "generate", "R", reasons=["never run"]),
        event("stage.finished", "generate", "R", outcome="passed", seconds=1.0, message="2 tools"),
        event("stage.started", "build", "R", reasons=["stage generate will run"]),
    ]
    running = run_page(RunFacts("zoo", "R", {"atlas": events}, {"atlas": ("build",)}))
    assert [(step.stage, step.attempt, step.status.key, step.seconds) for step in running.steps] == [
        ("generate", 1, "errored", 2.5), ("generate", 2, "passed", 1.0), ("build", 1, "running", None),
    ]  # fmt: skip
    assert running.steps[0].reasons == ("never run",)
    assert running.status.key == "running"
    known = RunFacts("zoo", "R", {"atlas": events}, {"atlas": ("build",)}, going=True)
    began = id_creation_time(str(events[0]["id"]))
    going = run_page(replace(known, now=began + 90.0))
    assert (going.seconds, going.steps[2].working, going.steps[1].working) == (90.0, True, False)
    assert going.steps[2].seconds == pytest.approx(90.0 - going.steps[2].start)
    chart = gantt_chart(going.steps, going.seconds)
    assert chart.ticks[-1].text == "90.0 s"
    assert chart.bars[2].x + chart.bars[2].width == pytest.approx(chart.width, abs=0.2)  # it ends now
    dead = run_page(RunFacts("zoo", "R", {"atlas": events}))
    assert dead.steps[2].status.key == "interrupted"
    assert runs_page("zoo", run_rows({"atlas": events})).runs[0].steps == 2


def test_a_run_is_drawn_with_its_timeline_and_links_to_the_logs(
    four_servers: WorkspaceBuilder, client: TestClient
) -> None:
    page = client.get(f"/runs/{four_servers.run}/").text
    assert page.count('<rect class="') == 10  # one for each step
    assert f'href="../../runs/{four_servers.run}/atlas/"' in page
    assert four_servers.run in client.get("/runs/").text


def test_each_step_leads_to_its_log_as_long_as_that_is_there(
    four_servers: WorkspaceBuilder, client: TestClient
) -> None:
    run, link = new_id(), 'servers/weather/logs/test/#wrong"'
    log = four_servers.workspace.artifacts / "weather/logs/test.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("E assert 1 == 2\n")
    four_servers.passed("weather", "build", run=run)
    four_servers.finished("weather", "test", "errored", run=run)
    four_servers.finished("weather", "test", "failed", run=run)
    for path in (f"/runs/{run}/", f"/runs/{run}/weather/"):
        page = client.get(path).text.partition(">Reason</th>")[2].partition("</table>")[0]
        assert page.count(link) == 1, "of two attempts the last has written it"
        assert "logs/build/" not in page
        assert page.index("attempt 2") < page.index(link)
    assert [one["kept"] for one in client.get(f"/runs/{run}/?format=json").json()["steps"]] == [False, False, True]
    assert client.get("/servers/weather/logs/test/").status_code == 200
    row = client.get("/runs/?format=json").json()["runs"][0]
    assert (row["names"], row["failed"]) == (["weather"], ["weather test: failed"])
    log.with_name("build.log").write_text("built\n")
    assert "servers/weather/logs/build/" in client.get(f"/runs/{run}/").text, "a step that passed has a log, too"
    later = new_id()
    four_servers.finished("weather", "test", "failed", run=later)
    assert link not in client.get(f"/runs/{run}/").text, "what is there is of another run"
    assert link in client.get(f"/runs/{later}/").text
    log.unlink()
    assert link not in client.get(f"/runs/{later}/").text


def test_an_unknown_run_is_not_found(client: TestClient) -> None:
    assert client.get("/runs/nothing/").status_code == 404
    assert "has no run nothing" in client.get("/runs/nothing/", headers=JSON).json()["error"]["message"]


def test_everything_that_can_wait_has_somebody_whom_it_waits_for_and_a_sign() -> None:
    items = tuple(InboxItem(kind, "s", "about", "message", "command") for kind in KINDS)
    facts = WorkspaceFacts("w", (ServerFacts("w", "s", {}, items=items),))
    shown = inbox(facts).items
    assert [one.kind for one in shown] == list(KINDS)
    assert all(one.whom and one.icon for one in shown)


def test_who_decided_what_is_one_page_over_all_servers(four_servers: WorkspaceBuilder, client: TestClient) -> None:
    with acting_as("Ada"):
        decision.hold(four_servers.workspace, "bookshop", "staging", reason="=HYPERLINK(1)")
    with acting_as("Grace"):
        decision.hold(four_servers.workspace, "atlas", "staging", reason="too early")
    found = client.get("/decisions/?format=json").json()
    assert [(one["server"], one["who"]) for one in found["decisions"][:2]] == [("atlas", "Grace"), ("bookshop", "Ada")]
    assert found["decisions"][0]["reason"] == "too early"
    (one,) = client.get("/decisions/?format=json&who=ada&what=held&q=book").json()["decisions"]
    assert (one["decision"], one["about"], one["server"]) == ("held", "staging", "bookshop")
    page = client.get("/decisions/").text
    assert "too early" in page
    assert 'href="../decisions.csv"' in page
    table = client.get("/decisions.csv?who=Ada").text.splitlines()
    assert table[0] == "at,server,decision,who,about,candidate,version,reason"
    assert table[1].endswith(",bookshop,held,Ada,staging,,,'=HYPERLINK(1)")
