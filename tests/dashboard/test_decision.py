"""What one decides about: the candidate against what the channel offers, at one address, and on the page that confirms."""

from __future__ import annotations

import json
import zipfile
from html import unescape
from typing import Any

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.dashboard.app import create_app
from tests.dashboard.conftest import EVIL, WorkspaceBuilder, serving
from tests.dashboard.http_browser import PEOPLE, Browser
from tests.dashboard.test_action_routes import offered

DECIDE = "/servers/bookshop/decide/production/"
POLICY = '\n[[pipeline.channels]]\nname = "staging"\n[[pipeline.channels]]\nname = "production"\nfrom = "staging"\napprovals = 1\n'


def tool(name: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": sorted(properties)}
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema}


def finding(rule: str, message: str) -> dict[str, Any]:
    return {"rule": rule, "severity": 3, "gate": False, "message": message, "where": "here", "hint": "h", "source": "s"}


def reported(
    builder: WorkspaceBuilder, candidate: str, tools: list[dict[str, Any]], findings: list[dict[str, Any]], score: int
) -> None:
    """What the validation of a candidate leaves: its tools, its report."""
    folder = builder.workspace.artifacts / "bookshop" / candidate / "validate"
    folder.mkdir(parents=True)
    (folder / "tools.json").write_text(json.dumps({"tools": tools}))
    (folder / "report.json").write_text(json.dumps({"score": score, "findings": findings}))
    summary = {"score": score, "findings": len(findings), "waived": 1, "waived_rules": ["tools.names"]}
    builder.finished("bookshop", "validate", "passed", candidate=candidate, summary=summary)
    builder.finished("bookshop", "test", "passed", candidate=candidate, summary={"passed": score, "failed": 0})


@pytest.fixture
def shop(builder: WorkspaceBuilder) -> WorkspaceBuilder:
    """A server whose production offers 1.0.0, and in whose staging 2.0.0 is, which removes, changes and adds tools."""
    config = builder.root / "mcpfactory.toml"
    config.write_text(config.read_text() + POLICY)
    builder.add("bookshop")
    builder.passed("bookshop", "generate")
    one = offered(builder, "bookshop", "1.0.0")
    text = {"type": "string"}
    reported(builder, one, [tool("get", isbn=text), tool("gone"), tool("same")], [finding("a.old", "is old")], 90)
    with builder.store.transaction("bookshop") as transaction:
        transaction.append("promoted", channel="production", candidate=one, version="1.0.0")
    two = offered(builder, "bookshop", "2.0.0")
    more = [tool("get", isbn=text, shop=text), tool("new", q=text), tool("same")]
    reported(builder, two, more, [finding("a.new", f"is new {EVIL}")], 97)
    return builder


def test_the_page_sets_a_candidate_against_what_the_channel_offers(shop: WorkspaceBuilder) -> None:
    client = TestClient(create_app(shop.root), base_url="http://127.0.0.1")
    page = client.get("/servers/bookshop/decide/production/?format=json").json()
    assert (page["version"], page["offered_version"]) == ("2.0.0", "1.0.0")
    kinds = {group["kind"]: [(one["code"], one["tool"]) for one in group["changes"]] for group in page["tools"]}
    assert next(iter(kinds)) == "breaking"
    assert ("tool-removed", "gone") in kinds["breaking"]
    assert any(tool == "get" for _, tool in kinds["breaking"]), "an argument that is required by now"
    assert kinds["added"] == [("tool-added", "new")]
    assert page["breaking"] == len(kinds["breaking"])
    assert [one["rule"] for one in page["come"]] == ["a.new"]
    assert [one["rule"] for one in page["gone"]] == ["a.old"]
    assert page["waived"] == ["tools.names"]
    facts = {fact["name"]: (fact["old"], fact["new"]) for fact in page["facts"]}
    assert (facts["score"], facts["tests passed"], facts["tools"]) == (("90", "97"), ("90", "97"), ("3", "3"))
    assert "1 of 1 approval missing" in page["asks"]
    assert page["precondition"] == client.get("/?format=json").json()["items"][0]["precondition"]
    text = client.get("/servers/bookshop/decide/production/", headers={"Accept": "text/html"}).text
    assert EVIL not in text
    assert unescape(text).count(EVIL) == 1
    assert text.index("Breaks callers") < text.index("Added")


def test_what_stands_for_and_against_it_is_on_the_page_that_confirms(shop: WorkspaceBuilder) -> None:
    with serving(shop.root, PEOPLE) as address:
        ada = Browser(address).login("Ada")
        page = ada.get("/servers/bookshop/decide/production/").text
        assert 'name="reason"' in page
        for action in ("approve", "reject"):
            checked = ada.get(f"/servers/bookshop/actions/{action}/", channel="production", reason="because").text
            for words in ("Breaks callers", "a.new", "a.old", "tests passed", "tools.names", 'name="ticket"'):
                assert words in checked, (action, words)
        assert ada.act("bookshop", "approve", channel="production", reason="looked at it").status == 303
        assert "approved</b> by Ada: looked at it" in ada.get("/servers/bookshop/decide/production/").text
        assert 'data-key="p"' in ada.get("/servers/bookshop/decide/production/").text, "what comes next is to promote"


def test_a_decision_that_was_made_meanwhile_is_shown_before_the_next_is_confirmed(shop: WorkspaceBuilder) -> None:
    from mcpfactory_pipeline.decisions import decision

    with serving(shop.root, PEOPLE) as address:
        ada = Browser(address).login("Ada")
        seen = ada.get("/servers/bookshop/decide/production/?format=json").data["precondition"]
        decision.reject(shop.workspace, "bookshop", "production", reason="no")
        page = ada.get("/servers/bookshop/actions/approve/", channel="production", precondition=seen).text
        assert "This has changed since you looked" in page
        assert "Nothing was done" not in page, "nothing was pressed yet"


def test_a_program_is_told_which_field_to_send_when_things_have_changed(shop: WorkspaceBuilder) -> None:
    from mcpfactory_pipeline.decisions import decision

    with serving(shop.root, PEOPLE) as address:
        ada, path = Browser(address).login("Ada"), "/servers/bookshop/actions/approve/"
        asked = ada.get(path, channel="production", format="json").data
        decision.reject(shop.workspace, "bookshop", "production", reason="no")
        body = json.dumps({**asked["settled"], "ticket": asked["ticket"]})
        told = ada.send("POST", path, body, Content_Type="application/json", Accept="application/json")
        assert (told.status, "--precondition" in told.text) == (409, False)
        assert f"`precondition` is {told.data['settled']['precondition']}" in told.data["error"]["hint"]


def told(shop: WorkspaceBuilder) -> dict[str, Any]:
    client = TestClient(create_app(shop.root), base_url="http://127.0.0.1")
    page: dict[str, Any] = client.get(f"{DECIDE}?format=json").json()
    return page


def shown(shop: WorkspaceBuilder) -> str:
    client = TestClient(create_app(shop.root), base_url="http://127.0.0.1")
    return client.get(DECIDE, headers={"Accept": "text/html"}).text


def test_page_shows_git_diff_between_the_commits_of_both_builds(shop: WorkspaceBuilder) -> None:
    known = shop.store.state("bookshop").candidates
    recorded = ({"made_from": {"commit": "a" * 40}}, {"commit": "b" * 12}, {"commit": "c" * 12 + "+changes"})
    for (candidate, one), commit in zip([*known.items(), *known.items()][:3], recorded, strict=True):
        built = {"version": one.version, "files": dict(one.files)}
        shop.finished("bookshop", "build", "passed", candidate=candidate, built=built, **commit)
    assert told(shop)["source"] == f"git diff {'a' * 12} {'b' * 12} -- servers/bookshop"


def test_a_rollback_is_a_decision_and_approvals_from_before_it_are_marked(shop: WorkspaceBuilder) -> None:
    with serving(shop.root, PEOPLE) as address:
        ada, grace = Browser(address).login("Ada"), Browser(address).login("Grace")
        ada.act("bookshop", "approve", channel="production", reason="fine")
        ada.act("bookshop", "promote", channel="production")
        grace.act("bookshop", "rollback", channel="production", reason="orders fail")
        grace.act("bookshop", "unhold", channel="production", reason="over")
        page = ada.get(DECIDE, format="json").data
        said = [(one["what"], one["who"], one["why"], one["counts"]) for one in page["decisions"]]
        assert said == [("approved", "Ada", "fine", False), ("rolled back", "Grace", "orders fail", True)]
        assert page["decisions"][1]["at"] == shop.store.history("bookshop")[-2]["at"]
        for path in (DECIDE, "/servers/bookshop/actions/approve/?channel=production"):
            text = ada.get(path).text
            assert "rolled back</b> by Grace: orders fail" in text, path
            assert "before the rollback: no longer counts" in text, path
        assert "rolled back out of production by Grace: orders fail" in ada.get("/servers/bookshop/").text
        ada.act("bookshop", "approve", channel="production", reason="mended")
        said = [(one["what"], one["why"], one["counts"]) for one in ada.get(DECIDE, format="json").data["decisions"]]
        assert said == [("rolled back", "orders fail", True), ("approved", "mended", True)]


def test_the_inbox_and_the_board_mark_the_risks_of_a_promotion(shop: WorkspaceBuilder) -> None:
    artifacts = shop.workspace.artifacts / "bookshop"
    for version, needs in (("1.0.0", "httpx>=1"), ("2.0.0", "httpx>=2\nRequires-Dist: leftpad")):
        known = next(one for one in shop.store.state("bookshop").candidates.items() if one[1].version == version)
        wheel = artifacts / known[0] / next(name for name in known[1].files if name.endswith(".whl"))
        wheel.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"bookshop-{version}.dist-info/METADATA", f"Name: bookshop\nRequires-Dist: {needs}\n")
    client = TestClient(create_app(shop.root), base_url="http://127.0.0.1")
    (item,) = [one for one in client.get("/?format=json").json()["items"] if one["about"] == "production"]
    assert item["risks"] == ["breaking", "waived", "new dependency"]
    assert item["tone"] == "bad"
    assert client.get("/?format=json").json()["breaking"] == 1
    for path in ("/", "/board/"):
        assert '<b class="risk bad">breaking</b>' in client.get(path, headers={"Accept": "text/html"}).text
