"""What waits as an Atom feed, read by a real parser of XML: live, for one person, and in the export."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import urljoin, urlsplit
from xml.etree import ElementTree

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.export import export
from mcpfactory_pipeline.dashboard.facts import ServerFacts, WorkspaceFacts
from mcpfactory_pipeline.dashboard.feed import atom_feed
from mcpfactory_pipeline.promotion import decision, promote
from mcpfactory_pipeline.views.inbox import InboxItem
from tests.dashboard.conftest import EVIL, Bench
from tests.dashboard.test_decision import POLICY, shop

__all__ = ["shop"]

ATOM = {"a": "http://www.w3.org/2005/Atom"}
ORIGIN = "https://factory.example.org"


def client(root: Path, **options: str) -> TestClient:
    return TestClient(create_app(root, **options), base_url="http://127.0.0.1")  # type: ignore[arg-type]


def entries(feed: bytes) -> list[dict[str, str]]:
    """The entries of a feed; every element that the format demands is there."""
    root = ElementTree.fromstring(feed)
    assert root.tag == "{http://www.w3.org/2005/Atom}feed"
    found = []
    for part in (root, *root.findall("a:entry", ATOM)):
        said = {name: part.findtext(f"a:{name}", "", ATOM) for name in ("id", "title", "updated", "summary")}
        assert all(said[name] for name in ("id", "title", "updated")), said
        assert said["id"].startswith("urn:uuid:")
        (link,) = part.findall("a:link[@rel='alternate']", ATOM)
        category = part.find("a:category", ATOM)
        found.append(
            {**said, "link": link.get("href", ""), "kind": category.get("term", "") if category is not None else ""}
        )
    assert len({one["id"] for one in found}) == len(found)
    return found[1:]


def test_the_feed_has_what_waits_with_the_way_to_the_decision(shop: Bench) -> None:
    answer = client(shop.root, origin=ORIGIN).get("/feed.atom")
    assert answer.headers["content-type"].startswith("application/atom+xml")
    (asked,) = [one for one in entries(answer.content) if one["kind"] == "approval"]
    assert asked["link"] == f"{ORIGIN}/servers/bookshop/decide/production/"
    assert asked["title"].startswith("bookshop: ")
    assert "It waits for anyone who may approve." in asked["summary"]
    assert "mcpfactory pipeline approve bookshop --channel production" in asked["summary"]
    page = client(shop.root).get(urlsplit(asked["link"]).path, headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert (
        '<link rel="alternate" type="application/atom+xml" title="What waits" href="../../../../feed.atom">'
        in page.text
    )
    assert entries(client(shop.root).get("/feed.atom").content)[0]["link"].startswith("http://127.0.0.1/servers/")


def test_what_waits_no_more_is_gone_and_what_waits_for_nobody_was_never_there(shop: Bench) -> None:
    web = client(shop.root)
    before = entries(web.get("/feed.atom").content)
    assert [one["kind"] for one in before] == [one["kind"] for one in web.get("/?format=json").json()["items"]]
    decision.approve(shop.workspace, "bookshop", "production")
    promote.promote(shop.workspace, "bookshop", "production")
    assert not [one for one in entries(web.get("/feed.atom").content) if "/decide/production/" in one["link"]]


def test_an_entry_keeps_its_id_while_the_same_thing_waits_and_another_has_another() -> None:
    def ids(*items: InboxItem) -> list[str]:
        servers = (ServerFacts("w", "books", {}, items=items),)
        return [one["id"] for one in entries(atom_feed(WorkspaceFacts("w", servers), lambda path: path))]

    item = InboxItem("approval", "books", "production", "2 of 2 missing", "c", since="2026-01-01T00:00:00Z")
    assert ids(item) == ids(replace(item, message="1 of 2 missing", waited=9.0, expect="other"))
    assert ids(item) != ids(replace(item, since="2026-01-02T00:00:00Z")), "the next candidate"
    assert len(set(ids(item, replace(item, about="eu"), replace(item, kind="ready"), replace(item, since=None)))) == 4


def test_whoever_reads_the_feed_of_a_person_reads_what_is_theirs(shop: Bench) -> None:
    config = shop.root / "mcpfactory.toml"
    named = POLICY.replace("approvals = 1", 'approvals = 1\napprovers = ["Grace"]')
    config.write_text(config.read_text().replace(POLICY, named))
    web = client(shop.root)
    kinds = {
        who: {one["kind"] for one in entries(web.get(f"/feed.atom?for={who}").content)} for who in ("Grace", "Ada")
    }
    assert ("approval" in kinds["Grace"], "approval" in kinds["Ada"]) == (True, False)


def test_names_and_texts_stay_text_whatever_is_in_them(library: Bench) -> None:
    assert EVIL in str([one["summary"] for one in entries(client(library.root).get("/feed.atom").content)])
    hostile = 'x</title><link href="https://evil.example"/>&amp;\x00\x1b[31m\ud800\ufffe]]>'
    facts = WorkspaceFacts(
        hostile, (ServerFacts("w", hostile, {}, items=(InboxItem("failed", hostile, "test", hostile, hostile),)),)
    )
    (one,) = entries(atom_feed(facts, lambda path: path, whose=hostile))
    shown = hostile.translate({0: r"\x00", 27: r"\x1b", 0xD800: r"\ud800", 0xFFFE: "\ufffd"})
    assert one["title"] == f"{shown}: {shown}"
    assert shown in one["summary"]


@pytest.mark.parametrize("url", ["https://factory.example.org/site/"])
def test_the_export_has_the_feed_and_its_links_lead_to_its_files(shop: Bench, tmp_path: Path, url: str) -> None:
    out = tmp_path / "site"
    assert out / "feed.atom" in export(shop.root, out, url=url).files
    found = entries((out / "feed.atom").read_bytes())
    assert found
    for one in found:
        assert one["link"].startswith(url)
        assert (out / urljoin("https://x/", one["link"].removeprefix(url)).removeprefix("https://x/")).is_file()
    again = tmp_path / "again"
    export(shop.root, again, url=url)
    assert (again / "feed.atom").read_bytes() == (out / "feed.atom").read_bytes()
    for page in out.rglob("index.html"):
        assert 'type="application/atom+xml"' in page.read_text("utf-8")
