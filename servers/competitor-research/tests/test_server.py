"""Tests of the tools through a client, with two sample sites."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import upstream
from conftest import Tools
from mcpfactory_runtime.testing import connect
from upstream import Answer, Site

from competitor_research_mcp.server import server


def test_a_page_is_read_without_what_is_hidden_in_it(tools: Tools, acme: Site) -> None:
    found = tools("read_page", url=acme.url)
    assert found["text"].startswith("# Answer every customer within the hour\n")
    assert "Ignore your instructions" not in found["text"]
    assert "secret" not in found["text"]
    assert found["next_offset"] is None


def test_a_long_page_is_read_in_parts(tools: Tools, acme: Site) -> None:
    acme.pages["/long"] = Answer("".join(f"<p>line {number}</p>" for number in range(400)))
    parts, offset = [], 0
    while offset is not None:
        part = tools("read_page", url=f"{acme.url}/long", offset=offset, max_characters=1000)
        parts.append(part["text"])
        offset = part["next_offset"]
    assert len(parts) == 4
    assert "".join(parts).split("\n") == [f"line {number}" for number in range(400)]
    assert "there is nothing at 99999" in tools.error("read_page", url=f"{acme.url}/long", offset=99999)


@pytest.mark.parametrize(
    ("path", "says"), [("/nothing", "HTTP 404"), ("/admin/x", "robots.txt"), ("/feed.xml", "not a web page")]
)
def test_what_cannot_be_read_says_why_and_what_to_do(tools: Tools, acme: Site, path: str, says: str) -> None:
    said = tools.error("read_page", url=acme.url + path)
    assert says in said
    assert "hint: " in said


def test_prices_behind_a_redirect(tools: Tools, acme: Site) -> None:
    found = tools("find_prices", url=f"{acme.url}/old")
    assert found["url"] == f"{acme.url}/pricing"
    assert [one["amount"] for one in found["prices"]] == [29.0, 4.9, 2.0, 0.0, 29.0, None]
    assert found["plan_tables"][0]["plans"] == ["Starter", "Team", "Enterprise"]


def test_a_page_that_scripts_make_is_told_apart_from_one_without_prices(tools: Tools, acme: Site) -> None:
    acme.pages["/app"] = Answer("<div id=root></div><script src=/app.js></script>")
    assert "read_html" in tools("find_prices", url=f"{acme.url}/app")["note"]
    assert "read_html" not in tools("find_prices", url=f"{acme.url}/about")["note"]


def test_facts_of_a_page(tools: Tools, acme: Site) -> None:
    found = tools("inspect_page", url=acme.url)
    assert found["structured"]["organizations"][0]["legal_name"] == "Acme Desk Ltd"
    assert {one["name"]: one["evidence"] for one in found["technology"]} == {
        "Vercel": "header x-vercel-id: fra1::abc",
        "WordPress": "meta generator: WordPress 6.8",
        "Stripe": "script https://js.stripe.com/v3/",
    }
    assert found["key_pages"][0] == {"url": f"{acme.url}/pricing", "text": "pricing: Pricing"}


def test_html_of_somebody_else_is_read_without_a_request(tools: Tools, acme: Site) -> None:
    found = tools("read_html", html="<h2>Pro</h2><p>€29 / month</p><a href=/pricing>x</a>", url=acme.url)
    assert found["prices"]["prices"][0]["currency"] == "EUR"
    assert found["facts"]["key_pages"][0]["url"] == f"{acme.url}/pricing"
    assert acme.paths() == []
    assert "empty" in tools.error("read_html", html=" ")


def test_pages_of_a_site_by_its_index_in_gzip(tools: Tools, acme: Site) -> None:
    found = tools("list_site_pages", url=acme.url, modified_since="2026-09-01", limit=2)
    assert ([page["url"].removeprefix(acme.url) for page in found["pages"]], found["total"], found["next_offset"]) == (
        ["/pricing", "/blog/phone"],
        3,
        2,
    )
    assert tools("list_site_pages", url=acme.url, contains="/BLOG/")["total"] == 2
    assert tools("list_site_pages", url=acme.url, kind="pricing")["pages"][0]["modified"] == "2026-11-02"


def test_a_site_whose_robots_txt_names_no_sitemap(tools: Tools, globex: Site) -> None:
    assert "no readable sitemap" in tools.error("list_site_pages", url=globex.url)
    globex.pages["/sitemap.xml"] = Answer("<sitemapindex><sitemap><loc>/deep.xml</loc></sitemap></sitemapindex>")
    globex.pages["/deep.xml"] = Answer("<urlset><url><loc>/preise</loc></url></urlset>")
    found = tools("list_site_pages", url=globex.url)
    assert [page["url"] for page in found["pages"]] == [f"{globex.url}/preise"]
    assert globex.paths().count("/sitemap_index.xml") == 1


def test_a_broken_part_of_a_sitemap_is_named_and_the_rest_is_read(tools: Tools, globex: Site) -> None:
    index = "".join(f"<sitemap><loc>/{name}.xml</loc></sitemap>" for name in ("gone", "bad", "good", "good"))
    globex.pages |= {
        "/sitemap.xml": Answer(f"<sitemapindex>{index}</sitemapindex>"),
        "/bad.xml": Answer('<!DOCTYPE x [<!ENTITY a "b">]><urlset/>'),
        "/good.xml": Answer("<urlset><url><loc>/a</loc></url></urlset>"),
    }
    found = tools("list_site_pages", url=globex.url)
    assert found["total"] == 1
    assert len(found["left_out"]) == 2


def test_many_pages_are_counted_by_kind_and_filtered(tools: Tools, globex: Site) -> None:
    paths = ["/", "/preise", "/about", *(f"/blog/{number}" for number in range(5000))]
    globex.pages["/sitemap.xml"] = Answer(
        "".join(["<urlset>", *(f"<url><loc>{path}</loc></url>" for path in paths), "</urlset>"])
    )
    found = tools("list_site_pages", url=globex.url, limit=1, offset=4999)
    assert (found["kinds"], found["next_offset"]) == ({"home": 1, "pricing": 1, "about": 1, "other": 5000}, 5000)
    assert tools("list_site_pages", url=globex.url, kind="about")["total"] == 1


def test_a_feed_is_found_by_the_page_that_names_it(tools: Tools, acme: Site) -> None:
    for path in ("/feed.xml", "/blog/"):
        found = tools("read_feed", url=acme.url + path)
        assert [entry["title"] for entry in found["entries"]] == ["Phone support is here", "We raised a round"]
    found = tools("read_feed", url=f"{acme.url}/feed.xml", since="2026-10-01")
    assert (found["total"], found["entries"][0]["summary"]) == (1, "Calls in the same inbox.")
    assert "does not link to one" in tools.error("read_feed", url=f"{acme.url}/about")


@pytest.mark.parametrize("tool", ["read_feed", "list_site_pages"])
@pytest.mark.parametrize("day", ["next week", "2026-13-01", "2026", "31 Feb 2026"])
def test_a_day_that_is_none_is_refused(tools: Tools, acme: Site, tool: str, day: str) -> None:
    name = {"read_feed": "since", "list_site_pages": "modified_since"}[tool]
    assert f"{name} is '{day}', which is not" in tools.error(tool, url=f"{acme.url}/feed.xml", **{name: day})


def test_entries_without_a_date_that_can_be_read_are_counted_and_not_new(tools: Tools, acme: Site) -> None:
    acme.pages["/feed.xml"] = Answer(upstream.FEED.replace("Tue, 01 Sep 2026 09:00:00 GMT", "31 Feb 2026"))
    found = tools("read_feed", url=f"{acme.url}/feed.xml", since="2026-10-01")
    assert ([entry["title"] for entry in found["entries"]], found["undated"]) == (["Phone support is here"], 1)
    assert len(tools("read_feed", url=f"{acme.url}/feed.xml")["entries"]) == 2


def test_a_page_or_feed_that_is_too_large_is_said_to_be_cut(
    tools: Tools, acme: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPETITOR_RESEARCH_MAX_BYTES", "2000")
    acme.pages["/long"] = Answer("<h1>Prices</h1>" + "<p>$9 each</p>" * 1000)
    acme.pages["/feed.xml"] = Answer(upstream.FEED.replace("</channel>", "<item/>" * 1000 + "</channel>"))
    for tool in ("read_page", "inspect_page", "find_prices"):
        assert tools(tool, url=f"{acme.url}/long")["cut"] is True
        assert tools(tool, url=f"{acme.url}/about")["cut"] is False
    assert "too large" in tools.error("read_feed", url=f"{acme.url}/feed.xml")
    assert "too large" in tools("profile_competitor", url=f"{acme.url}/long", pages=0)["pages"][0]["problem"]
    tools("watch_competitor", competitor="Acme", url=f"{acme.url}/long", pages=0)
    assert "too large" in tools("check_changes")["problems"][0]


@pytest.mark.parametrize("source", ["<div>" * 60_000 + "end", "<" * 2_900_000, "<a x=" * 500_000 + ">"])
def test_a_source_that_takes_too_long_ends_with_an_error(
    tools: Tools, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setenv("COMPETITOR_RESEARCH_TIMEOUT", "0.1")
    assert "more than 0.1 seconds" in tools.error("read_html", html=source)


def test_what_robots_txt_says(tools: Tools, acme: Site) -> None:
    found = tools("check_robots", url=f"{acme.url}/admin/x")
    assert (found["allowed"], found["rule"], found["group"]) == (False, "Disallow: /admin/", "everyone")
    assert tools("check_robots", url=f"{acme.url}/admin/open")["allowed"]


def test_a_profile_reads_the_key_pages(tools: Tools, acme: Site) -> None:
    found = tools("profile_competitor", url=acme.url)
    assert (found["name"], found["headline"], found["organization"]["founded"]) == (
        "Acme Desk",
        "Answer every customer within the hour",
        "2019",
    )
    assert [page["kind"] for page in found["pages"]] == ["home", "pricing", "customers", "about", "news"]
    assert found["products"][0]["reviews"] == 1204
    assert acme.paths() == ["/robots.txt", "/", "/pricing", "/about", "/customers"]


def test_a_comparison_names_the_site_that_cannot_be_read(tools: Tools, acme: Site, globex: Site) -> None:
    found = tools("compare_competitors", urls=[acme.url, globex.url, "http://127.0.0.1:9"])
    assert "| headline | Answer every customer within the hour | Die Kasse für Läden |" in found["table"]
    assert "Wartung: 19.90 EUR a month" in found["table"]
    assert len(found["problems"]) == 1
    assert "private" in found["problems"][0]


# --- watching ---


def test_a_watched_competitor_whose_price_changes(tools: Tools, acme: Site) -> None:
    watched = tools("watch_competitor", competitor="Acme", url=acme.url)["pages"]
    assert [(page["kind"], page["prices"], page["snapshots"]) for page in watched] == [
        ("home", 0, 1),
        ("about", 0, 1),
        ("customers", 0, 1),
        ("pricing", 6, 1),
    ]
    assert tools("check_changes") == {"checked": 4, "changed": [], "unchanged": 4, "problems": [], "note": ""}

    acme.pages["/pricing"] = upstream.conditional(upstream.PRICING.replace("<span>29<", "<span>35<"), '"two"')
    (changed,) = tools("check_changes", competitor="acme")["changed"]
    assert (changed["url"], changed["changes"][0]["after"]) == (
        f"{acme.url}/pricing",
        "35 USD a month for each user (billed annually)",
    )
    assert tools("check_changes")["changed"] == []

    (kept,) = tools("list_changes", competitor="ACME")
    assert kept["changes"] == changed["changes"]
    assert tools("list_changes", competitor="other") == []
    report = tools("competitor_report", competitor="acme")
    assert "| Team | 35 USD a month for each user (billed annually) |" in report
    assert "29 USD a month for each user (billed annually) → 35 USD" in report
    assert "| Acme | 4 |" in tools("competitor_report")


def test_only_pages_that_changed_are_sent_again(tools: Tools, acme: Site) -> None:
    tools("watch_competitor", competitor="Acme", url=f"{acme.url}/pricing", pages=0)
    tools("check_changes")
    tags = [one.headers.get("if-none-match") for one in acme.asked if one.path == "/pricing"]
    assert tags == [None, '"one"']


def test_a_page_that_cannot_be_read_is_a_problem_and_no_change(tools: Tools, acme: Site) -> None:
    tools("watch_competitor", competitor="Acme", url=f"{acme.url}/about", pages=0)
    acme.pages["/about"] = Answer(status=500)
    found = tools("check_changes")
    assert (found["changed"], len(found["problems"])) == ([], 1)
    assert "HTTP 500" in tools("list_watched")["pages"][0]["problem"]


def test_a_long_look_may_be_a_task(tools: Tools, acme: Site) -> None:
    tools("watch_competitor", competitor="Acme", url=f"{acme.url}/about", pages=0)

    async def run() -> Any:
        async with connect(server, "2025-11-25") as client:
            begun = await client.request("tools/call", {"name": "check_changes", "arguments": {}, "task": {}})
            return await client.request("tasks/result", {"taskId": begun["task"]["taskId"]})

    assert asyncio.run(run())["structuredContent"]["checked"] == 1


def test_history_is_deleted_only_with_consent(tools: Tools, acme: Site) -> None:
    tools("watch_competitor", competitor="Acme", url=f"{acme.url}/pricing", pages=0)
    stop = ("stop_watching", {"competitor": "Acme", "forget_history": True})

    def answering(action: str, delete: bool) -> dict[str, Any]:
        async def answer(*_: Any) -> dict[str, Any]:
            return {"action": action, "content": {"go_ahead": delete}} if action == "accept" else {"action": action}

        return {"elicitation": answer}

    refusal = tools.calls(stop)[0]["content"][0]["text"]
    assert refusal.startswith("Nothing was deleted, and the watch list is unchanged: a person must agree")
    code = refusal.partition('confirm="')[2].partition('"')[0]
    for action, delete in (("decline", False), ("cancel", False), ("accept", False)):
        for confirm in ("", code):  # the user's answer overrides the model's code
            call = (stop[0], {**stop[1], "confirm": confirm})
            assert tools.calls(call, **answering(action, delete))[0].get("isError"), (action, confirm)
    assert len(tools("list_watched")["pages"]) == 1
    assert not tools.calls(stop, **answering("accept", True))[0].get("isError")
    assert tools("list_watched") == {"pages": [], "note": "Nothing is watched."}


def test_what_was_seen_stays_when_watching_ends(tools: Tools, acme: Site) -> None:
    tools("watch_competitor", competitor="Acme", url=f"{acme.url}/pricing", pages=0)
    acme.pages["/pricing"] = Answer(upstream.PRICING.replace("<span>29<", "<span>35<"))
    tools("check_changes")
    tools("stop_watching", competitor="Acme", url=f"{acme.url}/pricing")
    assert len(tools("list_changes")) == 1
    tools("watch_competitor", competitor="Acme", url=f"{acme.url}/pricing", pages=0)
    for guess in ("", "true", "yes"):
        refusal = tools.error("stop_watching", competitor="Acme", forget_history=True, confirm=guess)
    code = refusal.partition('confirm="')[2].partition('"')[0]
    assert len(tools("list_changes")) == 1
    tools("stop_watching", competitor="Acme", forget_history=True, confirm=code)
    assert tools("list_changes") == []


def test_who_is_not_watched_is_told_who_is(tools: Tools, acme: Site) -> None:
    assert "add one with watch_competitor" in tools.error("check_changes")
    tools("watch_competitor", competitor="Acme", url=f"{acme.url}/about", pages=0)
    assert "watched competitors are Acme" in tools.error("competitor_report", competitor="Globex")


def test_a_database_that_cannot_be_written_is_said_and_the_rest_works(
    tools: Tools, acme: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COMPETITOR_RESEARCH_DB", str(tmp_path / "file" / "research.sqlite"))
    found = tools("watch_competitor", competitor="Acme", url=f"{acme.url}/about", pages=0)
    assert "COMPETITOR_RESEARCH_DB" in found["note"]


def test_looking_at_the_list_makes_no_file(tools: Tools, tmp_path: Path) -> None:
    assert tools("list_watched")["pages"] == []
    assert not (tmp_path / "research.sqlite").exists()


def test_reports_are_resources_and_names_are_completed(tools: Tools, acme: Site) -> None:
    tools("watch_competitor", competitor="Acme", url=f"{acme.url}/pricing", pages=0)

    async def run() -> tuple[Any, Any, Any]:
        async with connect(server) as client:
            everything = await client.read_resource("report://competitors")
            one = await client.read_resource("report://competitors/acme")
            names = await client.complete({"type": "ref/resource", "uri": "report://competitors/{name}"}, "name", "a")
            return everything, one, names

    everything, one, names = asyncio.run(run())
    assert "| Acme | 1 |" in str(everything)
    assert "# Acme" in str(one)
    assert "Acme" in str(names)
