"""Tests of the hand-written tools against the mock API: requests, results and errors."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from mcpfactory_runtime.client import Client
from starlette.responses import JSONResponse, Response
from upstream import SITE, Model

from google_search_console_mcp.days import today

OCTOBER = {"startDate": "2026-10-01", "endDate": "2026-10-07"}


async def told(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, {"siteUrl": SITE, **arguments})
    assert not result.get("isError"), result["content"]
    return result["structuredContent"]


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, {"siteUrl": SITE, **arguments})
    assert result["isError"]
    return str(result["content"][0]["text"])


def test_two_periods_are_compared_with_totals_of_their_own(with_server: Callable[..., Any]) -> None:
    async def work(client: Client, model: Model) -> None:
        found = await told(client, "compare_periods", **OCTOBER)
        assert (found["period"], found["compared_with"]) == ("2026-10-01 to 2026-10-07", "2026-09-24 to 2026-09-30")
        assert (found["now"]["clicks"], found["before"]["clicks"]) == (7 * 12, 7 * 12)
        assert [(one["key"], one["clicks_change"]) for one in found["won"]] == [("buy tea", 14), ("oolong", 7)]
        assert [(one["key"], one["clicks_change"]) for one in found["lost"]] == [("green tea", -21)]
        asked = [body for _, path, body in model.requests]
        assert sorted((body["startDate"], tuple(body["dimensions"])) for body in asked) == [
            ("2026-09-24", ()),
            ("2026-09-24", ("query",)),
            ("2026-10-01", ()),
            ("2026-10-01", ("query",)),
        ]
        assert {path for _, path, _ in model.requests} == {
            "/webmasters/v3/sites/sc-domain%3Aexample.com/searchAnalytics/query"
        }
        one = await told(client, "compare_periods", **OCTOBER, dimension="page", limit=1)
        assert [len(one["won"]), len(one["lost"])] == [1, 1]

    with_server(work)


def test_periods_that_are_half_given_or_backwards_are_refused(with_server: Callable[..., Any]) -> None:
    async def work(client: Client, model: Model) -> None:
        assert "go together" in await refused(client, "compare_periods", startDate="2026-10-01")
        backwards = await refused(client, "find_near_first_page", startDate="2026-10-07", endDate="2026-10-01")
        assert "before it begins" in backwards
        assert model.requests == []

    with_server(work)


def test_what_is_nearly_on_the_first_page_and_what_competes(with_server: Callable[..., Any]) -> None:
    async def work(client: Client, _: Model) -> None:
        near = await told(client, "find_near_first_page", **OCTOBER)
        assert [(one["query"], one["figures"]["position"]) for one in near["queries"]] == [
            ("green tea", 5.0),
            ("buy tea", 7.0),
            ("oolong", 11.0),
        ]
        few = await told(client, "find_near_first_page", **OCTOBER, limit=1, minImpressions=260)
        assert (few["found"], len(few["queries"])) == (2, 1)
        (found,) = (await told(client, "find_competing_pages", **OCTOBER))["queries"]
        assert (found["query"], [page["share"] for page in found["pages"]]) == ("buy tea", [0.692, 0.308])

    with_server(work)


def test_many_pages_are_inspected_and_what_keeps_them_out_is_said(with_server: Callable[..., Any]) -> None:
    pages = [f"https://www.example.com/{page}" for page in ("tea", "old", "gone", "tea?ref=1", "nowhere")]

    async def work(client: Client, model: Model) -> None:
        found = await told(client, "inspect_pages", urls=pages)
        assert found["verdicts"] == {"FAIL": 1, "NEUTRAL": 3, "PASS": 1}
        why = {page["url"].rpartition("/")[2]: page["why"] for page in found["pages"]}
        assert why == {
            "tea": "",
            "old": "Excluded by 'noindex' tag; blocked by meta tag",
            "gone": "Not found (404); fetching it gave not found",
            "tea?ref=1": "Alternate page with proper canonical tag; Google shows https://www.example.com/tea in its place",
            "nowhere": "URL is unknown to Google",
        }
        assert found["pages"][-1]["url"] == pages[0]
        model.inspections = 0
        none = await told(client, "inspect_pages", urls=pages[:2])
        assert (none["pages"], none["not_inspected"]) == ([], pages[:2])
        model.inspections = 10
        other = await told(client, "inspect_pages", urls=["https://elsewhere.test/"])
        assert (other["pages"][0]["verdict"], "403" in other["pages"][0]["why"]) == ("NOT_INSPECTED", True)

    with_server(work)


def test_sitemaps_with_problems_come_first(with_server: Callable[..., Any]) -> None:
    async def work(client: Client, model: Model) -> None:
        model.sitemaps["https://www.example.com/a.xml"] = {"lastDownloaded": "2999-01-01T00:00:00Z", "errors": "0"}
        found = (await told(client, "check_sitemaps"))["result"]
        assert [(one["path"].rpartition("/")[2], one["urls"], one["problems"]) for one in found] == [
            ("news.xml", 0, ["Google has not read it yet"]),
            ("sitemap.xml", 120, ["2 warnings", "Google read it last on 2020-01-02"]),
            ("a.xml", 0, []),
        ]

    with_server(work)


def test_a_bare_address_gets_its_slash_and_paths_are_encoded_once(with_server: Callable[..., Any]) -> None:
    async def work(client: Client, model: Model) -> None:
        await client.call_tool("list_sitemaps", {"siteUrl": "https://www.example.com"})
        sitemap = "https://www.example.com/blog.xml"
        await client.call_tool("submit_sitemap", {"siteUrl": "https://www.example.com/", "feedpath": sitemap})
        assert [(method, path) for method, path, _ in model.requests] == [
            ("GET", "/webmasters/v3/sites/https%3A%2F%2Fwww.example.com%2F/sitemaps"),
            (
                "PUT",
                "/webmasters/v3/sites/https%3A%2F%2Fwww.example.com%2F/sitemaps/https%3A%2F%2Fwww.example.com%2Fblog.xml",
            ),
        ]
        assert model.sitemaps[sitemap]["isPending"]

    with_server(work)


def test_refusals_come_in_googles_words(with_server: Callable[..., Any]) -> None:
    async def work(client: Client, _: Model) -> None:
        other = await client.call_tool("check_sitemaps", {"siteUrl": "https://other.example/"})
        assert "does not have sufficient permission" in other["content"][0]["text"]

    with_server(work)

    async def stranger(client: Client, _: Model) -> None:
        result = await client.call_tool("list_sites", {})
        assert result["isError"]
        assert "invalid authentication" in result["content"][0]["text"]

    with_server(stranger, token="wrong")


def test_more_rows_than_one_answer_has_are_read_page_by_page(with_server: Callable[..., Any], monkeypatch: Any) -> None:
    import upstream

    many = [(f"query {n}", "/", "DEU", "MOBILE", (1, 1, 1.0), (1, 1, 1.0)) for n in range(26_000)]
    monkeypatch.setattr(upstream, "FACTS", many)

    async def work(client: Client, model: Model) -> None:
        day = {"startDate": "2026-10-01", "endDate": "2026-10-01"}
        found = await told(client, "compare_periods", **day, limit=1)
        assert found["now"]["clicks"] == 26_000
        rows = [body.get("startRow", 0) for _, _, body in model.requests if body["dimensions"]]
        assert sorted(rows) == [0, 0, 25_000, 25_000]

    with_server(work)


# --- invalid responses, quotas, days ---

PAGE = Response("<!doctype html><html><title>Sign in</title></html>", media_type="text/html")
OTHERS = [PAGE, JSONResponse(None), JSONResponse([]), JSONResponse({"rows_": []})]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("tool", ["compare_periods", "find_competing_pages", "check_sitemaps"])
def test_an_answer_of_another_form_is_no_zero_clicks(
    with_server: Callable[..., Any], tool: str, other: Response
) -> None:
    async def work(client: Client, model: Model) -> None:
        model.instead = {"searchAnalytics": other, "sitemaps": other}
        said = await refused(client, tool)
        assert "expected an object" in said or "returned a page" in said

    with_server(work)


@pytest.mark.parametrize("other", [*OTHERS, JSONResponse({"inspectionResult": None})])
def test_one_odd_answer_loses_no_other_page(with_server: Callable[..., Any], other: Response) -> None:
    pages = [f"https://www.example.com/{page}" for page in ("tea", "old", "gone")]

    async def work(client: Client, model: Model) -> None:
        model.instead, model.last = {"index:inspect": other}, pages[2]
        found = (await told(client, "inspect_pages", urls=[*pages, pages[0]]))["pages"]
        assert {page["url"]: page["verdict"] for page in found if page["url"] != pages[2]} == {
            pages[0]: "PASS",
            pages[1]: "NEUTRAL",
        }
        assert len(model.requests) == 3  # duplicates are inspected once

    with_server(work)


@pytest.mark.parametrize("status", [403, 429])
def test_a_quota_that_is_used_up_ends_it_with_the_reason(with_server: Callable[..., Any], status: int) -> None:
    pages = [f"https://www.example.com/{number}" for number in range(20)]

    async def work(client: Client, model: Model) -> None:
        model.inspections, model.quota = 4, status
        found = await told(client, "inspect_pages", urls=pages)
        assert (len(found["pages"]), len(found["not_inspected"])) == (4, 16)
        assert "Quota exceeded" in found["why_not"]

    with_server(work)


def test_a_sitemap_with_an_odd_date_is_listed_with_it(with_server: Callable[..., Any]) -> None:
    async def work(client: Client, model: Model) -> None:
        model.sitemaps["https://www.example.com/a.xml"] = {"lastDownloaded": "yesterday", "errors": None}
        found = {one["path"][24:]: one["problems"] for one in (await told(client, "check_sitemaps"))["result"]}
        assert found["a.xml"] == ["invalid time of the last read by Google: yesterday"]
        model.instead = {"sitemaps": JSONResponse({})}
        assert (await told(client, "check_sitemaps"))["result"] == []  # an empty object means no sitemaps

    with_server(work)


def test_days_that_are_none_or_too_long_ago_are_refused(with_server: Callable[..., Any]) -> None:
    old = {"startDate": str(today() - timedelta(days=600)), "endDate": str(today() - timedelta(days=590))}

    async def work(client: Client, model: Model) -> None:
        assert "16 months" in await refused(client, "compare_periods", days=480)
        assert "16 months" in await refused(client, "find_competing_pages", **old)
        await refused(client, "compare_periods", startDate="2026-13-01", endDate="2026-13-02")
        ask = "query_search_analytics"
        assert "not a valid day" in await refused(client, ask, startDate="2026-13-01", endDate="2026-10-02")
        assert "before it begins" in await refused(client, ask, startDate="2026-10-03", endDate="2026-10-02")
        assert "swap" in await refused(client, "find_near_first_page", fromPosition=20, toPosition=4)
        assert model.requests == []

    with_server(work)
