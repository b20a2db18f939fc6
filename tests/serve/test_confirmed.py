"""Agents publish and install after a person confirmed what would happen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpfactory_pipeline.checks import call_plan
from mcpfactory_pipeline.serve.factory_server import make_factory_server
from mcpfactory_runtime.revisions import LATEST_LEGACY
from mcpfactory_runtime.testing import connect
from tests.publish.promoted_workspace import PromotedWorkspace
from tests.serve.test_factory import AGENT, Person, text

pytestmark = pytest.mark.anyio
CHANNELS = """
[[pipeline.channels]]
name = "staging"
[[pipeline.channels]]
name = "production"
from = "staging"
{agents}
[publish.sbom]
resolve = "declared"
"""
NO = {"action": "decline"}


@pytest.fixture
def shelf(tmp_path, monkeypatch) -> PromotedWorkspace:
    """A workspace whose server `books` is in production, and a person's home folder with nothing in it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = PromotedWorkspace(tmp_path / "space")
    (made.workspace.root / "servers/books/pyproject.toml").write_text('[project]\nname = "books"\nversion = "1.0"\n')
    made.configure(CHANNELS.format(agents='agents = ["publish"]'))
    made.put()
    return made


async def ask(shelf: PromotedWorkspace, tool: str, person: Any, revision: str = "", **arguments: Any) -> dict[str, Any]:
    async with connect(make_factory_server(shelf.workspace.root), revision, elicitation=person, info=AGENT) as client:
        return await client.call_tool(tool, {"server": "books", **arguments})


async def test_a_release_is_published_where_the_policy_permits_it_and_a_person_said_yes(shelf):
    person = Person()
    done = (await ask(shelf, "publish", person, targets=["sbom"]))["structuredContent"]
    candidate = shelf.state.channels["production"].candidate
    assert (done["candidate"], done["actor"], done["confirmed"]) == (candidate, "agent:robot", "Ada")
    assert [one["outcome"] for one in done["outcomes"]] == ["made"]
    assert f"Publish books 1.0.0 (candidate {candidate}) of production?" in person.asked[0]
    shelf.configure(CHANNELS.format(agents=""))
    refused = await ask(shelf, "publish", person, targets=["sbom"])
    assert "channel production does not permit agents to publish" in text(refused)
    assert len(person.asked) == 1


@pytest.mark.parametrize("revision", ["", LATEST_LEGACY.name])
async def test_another_candidate_than_the_one_in_the_question_is_not_published(shelf, revision):
    class Slow(Person):
        def __call__(self, params: dict[str, Any]) -> Any:
            if not self.asked:
                shelf.put("1.1.0")
            return super().__call__(params)

    person = Slow()
    result = await ask(shelf, "publish", person, revision, targets=["sbom"])
    if revision:
        assert "production offers candidate" in text(result)
    else:  # each round begins anew, so the person was asked about the other candidate
        assert ["1.0.0" in person.asked[0], "1.1.0" in person.asked[1]] == [True, True]


async def test_what_targets_refuse_is_said_and_nobody_is_asked(shelf):
    person = Person()
    shelf.put("1.2.0", readme="")
    result = await ask(shelf, "publish", person, targets=["pypi"])
    assert "pypi/readme the package has no description" in text(result)
    assert person.asked == []


async def test_a_server_is_installed_after_a_yes_and_only_one_of_the_workspace(shelf, tmp_path, monkeypatch):
    monkeypatch.setattr(call_plan, "required_variables", lambda _folder: {"BOOKS_LANGUAGE": False})
    monkeypatch.setenv("BOOKS_LANGUAGE", "Latin")  # a person's environment is not shown to an agent
    file, person = tmp_path / "home/.cursor/mcp.json", Person(NO)
    assert "did not confirm" in text(await ask(shelf, "install", person, clients=["cursor"]))
    assert ("books" in person.asked[0], "BOOKS_LANGUAGE" in person.asked[0]) == (True, False)
    assert str(file) in person.asked[0]
    assert not file.exists()
    done = await ask(shelf, "install", Person(), clients=["cursor"])
    assert [one["outcome"] for one in done["structuredContent"]["changes"]] == ["installed"]
    assert "books" in json.loads(file.read_text())["mcpServers"]
    strange = await ask(shelf, "install", person, server="https://a.test/mcp", clients=["cursor"])
    assert "agents can install only servers of the workspace" in text(strange)
    async with connect(make_factory_server(shelf.workspace.root, local=False)) as client:
        assert "install" not in {tool["name"] for tool in await client.list_tools()}
