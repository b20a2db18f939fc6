"""What one decides about: the candidate against what the channel offers, at one address, and on the page that confirms."""

from __future__ import annotations

import json
from html import unescape
from typing import Any

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.candidates import facts_of
from mcpfactory_pipeline.dashboard.pages import decide_about
from mcpfactory_pipeline.dashboard.reader import WorkspaceReader
from tests.dashboard.conftest import EVIL, Bench, serving
from tests.dashboard.person import PEOPLE, Browser
from tests.dashboard.test_action_routes import offered

DECIDE = "/servers/bookshop/decide/production/"
POLICY = '\n[[pipeline.channels]]\nname = "staging"\n[[pipeline.channels]]\nname = "production"\nfrom = "staging"\napprovals = 1\n'


def tool(name: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": sorted(properties)}
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema}


def finding(rule: str, message: str) -> dict[str, Any]:
    return {"rule": rule, "severity": 3, "gate": False, "message": message, "where": "here", "hint": "h", "source": "s"}


def reported(
    bench: Bench, candidate: str, tools: list[dict[str, Any]], findings: list[dict[str, Any]], score: int
) -> None:
    """What the validation of a candidate leaves: its tools, its report."""
    folder = bench.workspace.artifacts / "bookshop" / candidate / "validate"
    folder.mkdir(parents=True)
    (folder / "tools.json").write_text(json.dumps({"tools": tools}))
    (folder / "report.json").write_text(json.dumps({"score": score, "findings": findings}))
    summary = {"score": score, "findings": len(findings), "waived": 1, "waived_rules": ["tools.names"]}
    bench.finished("bookshop", "validate", "passed", candidate=candidate, summary=summary)
    bench.finished("bookshop", "test", "passed", candidate=candidate, summary={"passed": score, "failed": 0})


@pytest.fixture
def shop(bench: Bench) -> Bench:
    """A server whose production offers 1.0.0, and in whose staging 2.0.0 is, which removes, changes and adds tools."""
    config = bench.root / "mcpfactory.toml"
    config.write_text(config.read_text() + POLICY)
    bench.add("bookshop")
    bench.passed("bookshop", "generate")
    one = offered(bench, "bookshop", "1.0.0")
    text = {"type": "string"}
    reported(bench, one, [tool("get", isbn=text), tool("gone"), tool("same")], [finding("a.old", "is old")], 90)
    with bench.store.transaction("bookshop") as transaction:
        transaction.append("promoted", channel="production", candidate=one, version="1.0.0")
    two = offered(bench, "bookshop", "2.0.0")
    more = [tool("get", isbn=text, shop=text), tool("new", q=text), tool("same")]
    reported(bench, two, more, [finding("a.new", f"is new {EVIL}")], 97)
    return bench


def test_the_page_sets_a_candidate_against_what_the_channel_offers(shop: Bench) -> None:
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
    assert page["expect"] == client.get("/?format=json").json()["items"][0]["expect"]
    text = client.get("/servers/bookshop/decide/production/", headers={"Accept": "text/html"}).text
    assert EVIL not in text
    assert unescape(text).count(EVIL) == 1
    assert text.index("Breaks callers") < text.index("Added")


def test_a_tool_is_named_once_with_what_it_says_of_itself_and_thousands_stand_apart(shop: Bench) -> None:
    page = TestClient(create_app(shop.root), base_url="http://127.0.0.1").get(f"{DECIDE}?format=json").json()
    said = {(one["code"], one["tool"]): one["message"] for group in page["tools"] for one in group["changes"]}
    assert said["tool-added", "new"] == "Does new."
    assert said["tool-removed", "gone"] == "is gone"
    assert not any(message.startswith(tool) for (_, tool), message in said.items())
    facts = {"tokens": 2251, "coverage": "full", "signed": True}
    assert [fact.value for fact in facts_of(facts)] == ["2,251", "full", "yes"]


def test_every_row_of_the_inbox_leads_to_it_and_so_does_the_page_of_the_server(shop: Bench) -> None:
    client = TestClient(create_app(shop.root), base_url="http://127.0.0.1")
    for path, link in (("/", "servers/bookshop/decide/production/"), ("/servers/bookshop/", "decide/production/")):
        assert f'{link}"' in client.get(path, headers={"Accept": "text/html"}).text


def test_what_stands_for_and_against_it_is_on_the_page_that_confirms(shop: Bench) -> None:
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


def test_a_decision_that_was_made_meanwhile_is_shown_before_the_next_is_confirmed(shop: Bench) -> None:
    from mcpfactory_pipeline.promotion import decision

    with serving(shop.root, PEOPLE) as address:
        ada = Browser(address).login("Ada")
        seen = ada.get("/servers/bookshop/decide/production/?format=json").data["expect"]
        decision.reject(shop.workspace, "bookshop", "production", reason="no")
        page = ada.get("/servers/bookshop/actions/approve/", channel="production", expect=seen).text
        assert "This has changed since you looked" in page
        assert "Nothing was done" not in page, "nothing was pressed yet"


def test_a_first_candidate_is_all_new_and_what_is_offered_is_not_decided_about(shop: Bench) -> None:
    client = TestClient(create_app(shop.root), base_url="http://127.0.0.1")
    staging = client.get("/servers/bookshop/decide/staging/?format=json").json()
    assert (staging["candidate"], staging["asks"], staging["tools"]) == (staging["offered"], "", [])
    assert client.get("/servers/bookshop/decide/nowhere/").status_code == 404
    reader = WorkspaceReader(shop.root)
    with shop.store.transaction("bookshop") as transaction:
        transaction.append("retired", channel="production", reason="anew")
    view = decide_about(reader, reader.server("bookshop"), "production")
    assert (view.offered, [group.kind for group in view.tools]) == ("", ["added"])
    shop.add("empty")
    with pytest.raises(NotFoundError, match="no candidate of empty for production"):
        decide_about(reader, reader.server("empty"), "production")


def test_a_program_is_told_which_field_to_send_when_things_have_changed(shop: Bench) -> None:
    from mcpfactory_pipeline.promotion import decision

    with serving(shop.root, PEOPLE) as address:
        ada, path = Browser(address).login("Ada"), "/servers/bookshop/actions/approve/"
        asked = ada.get(path, channel="production", format="json").data
        decision.reject(shop.workspace, "bookshop", "production", reason="no")
        body = json.dumps({**asked["settled"], "ticket": asked["ticket"]})
        told = ada.send("POST", path, body, Content_Type="application/json", Accept="application/json")
        assert (told.status, "--expect" in told.text) == (409, False)
        assert f"`expect` is {told.data['settled']['expect']}" in told.data["error"]["hint"]


def told(shop: Bench) -> dict[str, Any]:
    client = TestClient(create_app(shop.root), base_url="http://127.0.0.1")
    page: dict[str, Any] = client.get(f"{DECIDE}?format=json").json()
    return page


def shown(shop: Bench) -> str:
    client = TestClient(create_app(shop.root), base_url="http://127.0.0.1")
    return client.get(DECIDE, headers={"Accept": "text/html"}).text


def build_again(shop: Bench, version: str, commit: str) -> None:
    """The same bytes, built once more from that commit."""
    built = {"version": version, "files": {f"bookshop_mcp-{version}-py3-none-any.whl": "sha256:" + "ab" * 32}}
    candidate = f"{version}-fedcba987654"
    shop.finished("bookshop", "build", "passed", candidate=candidate, built=built, made_from={"commit": commit})


def test_no_command_is_offered_that_does_not_show_what_was_not_committed(shop: Bench) -> None:
    one, two = "7b452fb1ed9a" + "0" * 28, "2b079f522543" + "0" * 28
    build_again(shop, "1.0.0", one)
    build_again(shop, "2.0.0", f"{two}+changes")
    page = told(shop)
    assert (page["source"], page["uncommitted"]) == ("", ["2.0.0"])
    assert "2.0.0 was built from changes that were not committed" in shown(shop)
    assert "git diff" not in shown(shop)
    build_again(shop, "2.0.0", two)  # the same bytes come from a commit
    page = told(shop)
    assert (page["source"], page["uncommitted"]) == (f"git diff {one[:12]} {two[:12]} -- servers/bookshop", [])
    build_again(shop, "2.0.0", f"{two}+changes")
    build_again(shop, "1.0.0", "none")
    assert told(shop)["source"] == page["source"], "which they still do"


def test_a_candidate_was_built_when_it_was_built_first(shop: Bench) -> None:
    before = told(shop)
    build_again(shop, "2.0.0", "none")
    page = told(shop)
    assert page["built_at"] == before["built_at"]
    assert page["built_at"] <= page["waits_since"]


def test_findings_are_counted_one_by_one_and_a_group_says_how_many_it_is(shop: Bench) -> None:
    alike = [{**finding("a.new", "is new"), "where": where} for where in ("x", "y", "y")]
    folder = shop.workspace.artifacts / "bookshop" / "2.0.0-fedcba987654" / "validate"
    (folder / "report.json").write_text(json.dumps({"score": 97, "findings": alike}))
    page = told(shop)
    assert (page["come_total"], page["gone_total"], page["stayed"]) == (3, 1, 0)
    assert [one["number"] for one in page["come"]] == [3]
    assert "<small>3 new, 1 gone, 0 stayed</small>" in shown(shop)
    shop.validated("bookshop", "2.0.0-fedcba987654", "passed", {"score": 97, "findings": alike})
    server = TestClient(create_app(shop.root), base_url="http://127.0.0.1").get("/servers/bookshop/")
    assert 'href="#findings">Findings <small>3</small>' in server.text


def test_a_rollback_is_a_decision_and_approvals_from_before_it_are_marked(shop: Bench) -> None:
    with serving(shop.root, PEOPLE) as address:
        ada, grace = Browser(address).login("Ada"), Browser(address).login("Grace")
        ada.act("bookshop", "approve", channel="production", reason="fine")
        ada.act("bookshop", "promote", channel="production")
        grace.act("bookshop", "rollback", channel="production", reason="orders fail")
        grace.act("bookshop", "release", channel="production")
        page = ada.get(DECIDE, format="json").data
        said = [(one["what"], one["who"], one["why"], one["counts"]) for one in page["decisions"]]
        assert said == [("approved", "Ada", "fine", False), ("rolled back", "Grace", "orders fail", True)]
        assert page["decisions"][1]["at"] == shop.store.history("bookshop")[-2]["at"]
        for path in (DECIDE, "/servers/bookshop/actions/approve/?channel=production"):
            text = ada.get(path).text
            assert "rolled back</b> by Grace: orders fail" in text, path
            assert "before the rollback: it counts no more" in text, path
        assert "rolled back out of production by Grace: orders fail" in ada.get("/servers/bookshop/").text
        ada.act("bookshop", "approve", channel="production", reason="mended")
        said = [(one["what"], one["why"], one["counts"]) for one in ada.get(DECIDE, format="json").data["decisions"]]
        assert said == [("rolled back", "orders fail", True), ("approved", "mended", True)]


def test_the_heading_has_no_hash_that_a_button_copies(shop: Bench) -> None:
    heading = shown(shop).partition("<h1")[2].partition("</h1>")[0]
    assert "data-copy" not in heading
    assert 'data-copy="2.0.0-fedcba987654"' in shown(shop)
