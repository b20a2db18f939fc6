"""The factory's own server, by our own client: an agent makes a server, runs it, looks at it, and asks before it decides."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.events import FailedStageLog
from mcpfactory_pipeline.checks.report import Finding
from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.decisions.stage_decision import approve_stage
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.operations.run import StageRun
from mcpfactory_pipeline.serve import workspace_access
from mcpfactory_pipeline.serve.factory_server import make_factory_server
from mcpfactory_pipeline.serve.operation_tools import add_log_to_stage
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime.protocol.errors import METHOD_NOT_FOUND, MISSING_CAPABILITY, McpError
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, TASKS
from mcpfactory_runtime.testing import connect
from tests.cli.recorded_workspaces import make, stage
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/examples/bookshop/openapi.yaml"
AGENT = {"name": "robot", "version": "1"}
YES = {"action": "accept", "content": {"yes": True}}


def policy(space: Workspace, agents: str, approvals: int = 1) -> None:
    """What production leaves to agents."""
    (space.root / "mcpfactory.toml").write_text(
        f'[workspace]\nname = "space"\n[[pipeline.channels]]\nname = "staging"\n[[pipeline.channels]]\nname = "production"\n'
        f'from = "staging"\napprovals = {approvals}\nagents = {agents}\n'
    )


@pytest.fixture
def space(tmp_path) -> Workspace:
    """A workspace with the server `notes`, whose candidate is in staging."""
    made = make(tmp_path, "notes")
    stage(made, "notes", "one")
    return made


class Person:
    """Answers the questions, and keeps them."""

    def __init__(self, answer: Any = YES) -> None:
        self.answer, self.asked = answer, []

    def __call__(self, params: dict[str, Any]) -> Any:
        self.asked.append(params["message"])
        return self.answer


async def ask(space: Workspace, tool: str, person: Any = None, revision: str = "", **arguments: Any) -> dict[str, Any]:
    async with connect(make_factory_server(space.root), revision, elicitation=person, info=AGENT) as client:
        return await client.call_tool(tool, {"server": "notes", "reason": "the score is 97", **arguments})


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


async def test_without_a_policy_every_decision_is_refused_and_nobody_is_asked(space):
    before, person = Store(space).history("notes"), Person()
    for name in ("approve", "reject", "promote", "rollback", "hold", "unhold"):
        result = await ask(space, name, person)
        assert result["isError"]
        assert f"does not permit agents to {name}" in text(result)
        assert f'agents = ["{name}"]' in text(result)
        assert "ask a person to run" in text(result)
    assert person.asked == []
    assert Store(space).history("notes") == before


STAGE = '\n[[pipeline.stages]]\nname = "seen"\nkind = "approval"\nneeds = []\nshows = ["file:README.md"]\n'


async def test_a_stage_is_decided_when_it_leaves_that_to_agents_and_a_person_said_yes_to_what_it_shows(space):
    config, person = space.root / "mcpfactory.toml", Person()
    config.write_text(config.read_text() + STAGE)
    result = await ask(space, "approve", person, stage="seen")
    assert "stage seen does not permit agents to approve" in text(result)
    assert person.asked == []
    config.write_text(config.read_text() + 'agents = ["approve"]\n')
    assert "does not permit agents to reject" in text(await ask(space, "reject", person, stage="seen"))
    result = await ask(space, "approve", person, stage="seen")
    assert result["structuredContent"]["stage"] == "seen", text(result)
    assert "file:README.md  servers/notes/README.md" in person.asked[0]
    last = Store(space).history("notes")[-1]
    assert (last["event"], last["stage"], last["actor"], last["confirmed"]) == (
        "approved",
        "seen",
        "agent:robot",
        "Ada",
    )
    with pytest.raises(decision.PromotionError, match="Ada has already approved the output of seen"):
        approve_stage(Workspace.find(space.root), "notes", "seen")


@pytest.mark.parametrize("revision", [LATEST.name, LATEST_LEGACY.name])
async def test_with_a_policy_a_person_is_asked_and_the_history_has_both(space, revision):
    policy(space, "true")
    person, candidate = Person(), Store(space).state("notes").candidate
    for tool in ("approve", "promote"):
        result = await ask(space, tool, person, revision)
        assert not result.get("isError"), text(result)
        assert result["structuredContent"]["candidate"] == candidate
    assert [candidate in question for question in person.asked] == [True, True]
    assert "agent:robot asks: Promote notes 1.0" in person.asked[1]
    assert "the score is 97" in person.asked[1]
    noted = [(e["event"], e["actor"], e["confirmed"]) for e in Store(space).history("notes")[-2:]]
    assert noted == [("approved", "agent:robot", "Ada"), ("promoted", "agent:robot", "Ada")]
    assert Store(space).state("notes").channels["production"].candidate == candidate


@pytest.mark.parametrize(
    "answer", [{"action": "decline"}, {"action": "cancel"}, {"action": "accept", "content": {"yes": False}}]
)
async def test_anything_but_yes_changes_nothing(space, answer):
    policy(space, "true")
    before = Store(space).history("notes")
    result = await ask(space, "hold", Person(answer))
    assert result["isError"]
    assert Store(space).history("notes") == before


async def test_a_yes_to_another_candidate_or_channel_is_no_answer(space):
    policy(space, "true")
    space = Workspace.find(space.root)
    params = {"name": "approve", "arguments": {"server": "notes", "reason": "r"}}
    async with connect(make_factory_server(space.root), elicitation=Person(), info=AGENT) as client:
        token = decision.approve(space, "notes", "production", dry_run=True)["precondition"]
        asked = f"approve-notes-production-{token}"
        others = (asked.replace(token, "0" * len(token)), asked.replace("production", "staging"))
        for other in ("approve", asked.replace("approve", "promote"), *others):
            again = await client.request("tools/call", {**params, "inputResponses": {other: YES}})
            assert again["resultType"] == "input_required"
            assert list(again["inputRequests"]) == [asked]
        assert Store(space).history("notes")[-1]["event"] != "approved"


@pytest.mark.parametrize("revision", [LATEST.name, LATEST_LEGACY.name])
async def test_what_changes_while_a_person_is_asked_is_shown_and_asked_about_again(space, revision):
    policy(space, "true")

    class Slow(Person):
        def __call__(self, params: dict[str, Any]) -> Any:
            if not self.asked:
                decision.reject(Workspace.find(space.root), "notes", "production", reason="prices are wrong")
            return super().__call__(params)

    person = Slow()
    result = await ask(space, "approve", person, revision)
    assert not result.get("isError"), text(result)
    assert len(person.asked) == 2
    if revision == LATEST_LEGACY.name:  # in the newer lifecycle each round begins anew, and no earlier one is known
        assert "this has changed: decisions: rejected by Ada: prices are wrong (before: nothing)" in person.asked[1]
    assert [e["event"] for e in Store(space).history("notes")[-2:]] == ["rejected", "approved"]


async def test_an_agent_decides_about_what_it_read(space):
    policy(space, "true")
    async with connect(make_factory_server(space.root), elicitation=Person(), info=AGENT) as client:
        (item,) = (await client.call_tool("inbox", {}))["structuredContent"]["items"]
        decision.reject(Workspace.find(space.root), "notes", "production", reason="no")
        call = {"server": "notes", "reason": "r", "precondition": item["precondition"]}
        result = await client.call_tool("approve", call)
        assert "now decisions: rejected by Ada: no" in text(result)
        again = text(result).partition("precondition ")[2].split()[0]
        result = await client.call_tool("approve", {**call, "precondition": again})
        assert not result.get("isError"), text(result)


async def test_a_client_that_cannot_ask_a_person_decides_nothing(space):
    policy(space, "true")
    before = Store(space).history("notes")
    with pytest.raises(McpError) as error:
        await ask(space, "hold")
    assert error.value.code == MISSING_CAPABILITY
    assert Store(space).history("notes") == before


async def test_what_cannot_be_is_refused_before_anybody_is_asked(space):
    policy(space, "true")
    person = Person()
    result = await ask(space, "promote", person)
    assert "1 of 1 approval missing" in text(result)
    assert person.asked == []


async def test_a_person_counts_once_whether_she_approves_herself_or_says_yes_to_agents(space):
    policy(space, "true", approvals=2)
    assert not (await ask(space, "approve", Person())).get("isError")
    assert "Ada has already approved" in text(await ask(space, "approve", Person()))
    with pytest.raises(decision.PromotionError, match="Ada has already approved"):
        decision.approve(Workspace.find(space.root), "notes", "production")


async def test_an_agent_makes_one_server_of_several_documents_and_reads_one_anew(tmp_path):
    space = apply_setup(plan_workspace_setup(tmp_path / "space"), git=False)
    documents = [f"{label}={DOCUMENT}" for label in ("old", "new")]
    async with connect(make_factory_server(space.root, [str(DOCUMENT.parent)]), info=AGENT) as client:
        made = await client.call_tool("new", {"sources": documents, "name": "books"})
        assert made["structuredContent"]["tools"] == 22, text(made)
        refused = await client.call_tool("update", {"server": "books", "sources": [str(DOCUMENT)]})
        assert "documents: old, new" in text(refused)
        updated = await client.call_tool("update", {"server": "books", "sources": documents[:1]})
        assert not updated.get("isError"), text(updated)


async def test_an_agent_makes_a_server_and_runs_it_and_hears_of_each_step(tmp_path):
    space, heard = apply_setup(plan_workspace_setup(tmp_path / "space"), git=False), []
    async with connect(make_factory_server(space.root, [str(DOCUMENT.parent)]), info=AGENT) as client:
        refused = await client.call_tool("new", {"name": "books"})
        assert "an API document or a template" in text(refused)
        made = await client.call_tool("new", {"sources": [str(DOCUMENT)], "name": "books"})
        assert made["structuredContent"]["tools"] == 11, text(made)
        (address,) = made["structuredContent"]["addresses"]
        assert "only the API document says so: calls to it are refused\nhint: " in address
        arguments = {"servers": ["books"], "until": "generate"}
        ran = (await client.call_tool("run", arguments, progress=heard.append))["structuredContent"]
        assert ran["passed"], ran
        assert [(step["stage"], step["outcome"]) for step in ran["steps"]] == [("generate", "passed")]
        plan = (await client.call_tool("plan", {"until": "generate"}))["structuredContent"]
        assert plan["due"] == 0
        log = (await client.call_tool("log", {"server": "books", "stage": "generate"}))["structuredContent"]
        assert log["cut"] is False
        missing = await client.call_tool("findings", {"server": "books"})
        assert "no candidate yet" in text(missing)
        assert "hint: mcpfactory pipeline run books" in text(missing)
    messages = [params["message"] for params in heard]
    assert any(message.startswith("books: generate passed") for message in messages)
    assert heard[-1]["progress"] == heard[-1]["total"]
    assert {event["actor"] for event in Store(space).history("books")} == {"agent:robot"}


async def test_a_log_stays_with_its_step_while_other_servers_run():
    steps = [StageRun(server, "build", "failed", "", 1.0) for server in ("books", "books", "notes")]
    add_log_to_stage(steps, FailedStageLog("books", "build", "build.log", ("of books",)))
    assert [step.log for step in steps] == [[], ["of books"], []]


PAUSE = """
[[pipeline.stages]]
name = "pause"
command = ["{python}", "-c", "import signal; signal.pause()"]
needs = ["generate"]
reads = ["source"]
"""


@pytest.mark.parametrize("as_task", [False, True])
async def test_a_cancelled_run_ends_in_order(tmp_path, as_task):
    space = make(tmp_path, "notes")
    config = space.root / "mcpfactory.toml"
    config.write_text(config.read_text() + PAUSE.format(python=sys.executable))
    extensions = {"extensions": {TASKS: {}}} if as_task else {}
    paused = anyio.Event()

    def heard(params: dict[str, Any]) -> None:
        if "pause" in params.get("message", ""):
            paused.set()

    arguments = {"servers": ["notes"], "until": "pause"}
    async with connect(make_factory_server(space.root), capabilities=extensions, info=AGENT) as client:
        if as_task:
            task = await client.request("tools/call", {"name": "run", "arguments": arguments})
            assert task["resultType"] == "task"
            while "pause" not in (await client.request("tasks/get", {"taskId": task["taskId"]})).get(
                "statusMessage", ""
            ):
                await anyio.lowlevel.checkpoint()
            await client.request("tasks/cancel", {"taskId": task["taskId"]})
        else:
            async with anyio.create_task_group() as group:

                async def call() -> None:
                    await client.call_tool("run", arguments, progress=heard, timeout=None)

                group.start_soon(call)
                await paused.wait()
                group.cancel_scope.cancel()
        with anyio.fail_after(TIMEOUT):
            while Store(space).history("notes")[-1]["event"] != "stage.interrupted":
                await client.ping()
    assert Store(space).history("notes")[-1]["stage"] == "pause"


async def test_resources_are_there_for_programs(space):
    async with connect(make_factory_server(space.root)) as client:
        (inbox,) = await client.read_resource("factory://inbox")
        assert json.loads(inbox["text"])[0]["server"] == "notes"
        (kept,) = await client.read_resource("factory://servers/notes/history.json")
        assert "build" in [event.get("stage") for event in json.loads(kept["text"])]
        (status,) = await client.read_resource("factory://servers/notes/status")
        assert json.loads(status["text"])["channels"]["staging"]["version"] == "1.0"
        with pytest.raises(McpError) as error:
            await client.read_resource("factory://servers/nobody/report.json")
        assert error.value.code != METHOD_NOT_FOUND
        reference = {"type": "ref/resource", "uri": "factory://servers/{server}/report.json"}
        assert (await client.complete(reference, "server", "no"))["values"] == ["notes"]


async def test_findings_come_with_their_proof_and_gates_first(space):
    candidate = str(Store(space).state("notes").candidate)
    kept = space.artifacts / "notes" / candidate / "validate"
    kept.mkdir(parents=True)
    rows = [
        Finding(rule, 3, gate, "m", "w", "h", "s", evidence={"sent": 1}, follows=("c.rule: m",)).to_json()
        for rule, gate in (("a.small", False), ("b.gate", True))
    ]
    report = {"score": 80, "passed": False, "findings": rows, "not_checked": []}
    (kept / "report.json").write_text(json.dumps(report))
    async with connect(make_factory_server(space.root)) as client:
        found = (await client.call_tool("findings", {"server": "notes", "limit": 1}))["structuredContent"]
    assert (found["total"], [one["rule"] for one in found["findings"]]) == (2, ["b.gate"])
    assert (found["findings"][0]["evidence"], found["findings"][0]["follows"]) == ({"sent": 1}, ["c.rule: m"])


async def test_no_file_elsewhere_on_the_machine_is_read(space):
    async with connect(make_factory_server(space.root)) as client:
        for arguments in ({"sources": [str(DOCUMENT)]}, {"template": "../elsewhere"}, {"sources": ["../../x.yaml"]}):
            result = await client.call_tool("new", {**arguments, "name": "books"})
            assert "is not in the workspace" in text(result)


def test_documents_come_from_the_workspace_and_from_where_a_person_said(tmp_path, monkeypatch):
    monkeypatch.setattr(
        workspace_access.socket, "getaddrinfo", lambda host, *_a, **_o: [(0, 0, 0, "", (ADDRESSES[host], 0))]
    )
    (tmp_path / "apis").mkdir()
    (tmp_path / "space").mkdir()
    places = (str(tmp_path / "apis"), "localhost:8000", "Inside.example")
    known = workspace_access.WorkspaceAccess(tmp_path / "space", places)
    assert known.document("a.yaml") == str(tmp_path / "space/a.yaml")
    for name in (
        "http://localhost:8000/x",
        "https://inside.example/x",
        "https://outside.example/x",
        str(tmp_path / "apis/a.yaml"),
    ):
        assert known.document(name) == name
    for name in ("http://localhost:8001/x", "https://rebound.example/x"):
        with pytest.raises(ConfigError, match="is not at a public address") as caught:
            known.document(name)
        assert "mcpfactory serve --documents" in caught.value.hint


ADDRESSES = {"outside.example": "8.8.8.8", "inside.example": "10.0.0.1", "rebound.example": "10.0.0.1"}
