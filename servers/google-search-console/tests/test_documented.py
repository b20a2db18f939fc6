"""Comparison of requests and mock responses with the examples of Google's reference.

Each row is a call of the reference or of a sample of Google's client library, with other values. The request must be as documented, and
the mock response must have every documented member, with the same JSON type and format. Methods, paths, members and types are from
Google's discovery document (searchconsole v1, revision 20240608), which spells enumerations in capitals (BY_PAGE) instead of byPage.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.schemas.validation import compile_schema
from mcpfactory_runtime.testing import differences
from upstream import SITE, TOKEN, Model, Seen

Json = dict[str, Any]

SITES = "/webmasters/v3/sites"
DOMAIN, PREFIX = f"{SITES}/sc-domain%3Aexample.com", f"{SITES}/https%3A%2F%2Fwww.example.com%2F"
MAP = "https://www.example.com/sitemap.xml"
ENCODED = "https%3A%2F%2Fwww.example.com%2Fsitemap.xml"
DAYS = {"startDate": "2026-10-01", "endDate": "2026-10-28"}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")  # google-datetime
VERDICT = {"VERDICT_UNSPECIFIED", "PASS", "PARTIAL", "FAIL", "NEUTRAL"}


@dataclass(frozen=True, slots=True)
class Example:
    """A tool call, and the documented request and response that belong to it."""

    where: str
    tool: str
    arguments: Json
    method: str
    path: str
    body: Any = None
    answer: Any = None
    status: int = 200
    query: tuple[tuple[str, str], ...] = ()


def rows(kind: str, *keys: str) -> Json:
    """Return a Search Analytics response; rows have keys only if dimensions were requested."""
    figures = {"clicks": 1.0, "impressions": 1.0, "ctr": 1.0, "position": 1.0}
    return {"rows": [({"keys": list(keys)} if keys else {}) | figures], "responseAggregationType": {kind}}


SITE_ENTRY = {
    "siteUrl": "",
    "permissionLevel": {"siteOwner", "siteFullUser", "siteRestrictedUser", "siteUnverifiedUser"},
}
READ = {
    "path": "https://www.example.com/sitemap.xml", "lastSubmitted": MOMENT, "lastDownloaded": MOMENT, "isPending": False, "isSitemapsIndex": False,
    "type": {"notSitemap", "urlList", "sitemap", "rssFeed", "atomFeed", "patternSitemap"}, "errors": "0", "warnings": "0",
    "contents": [{"type": {"web", "image", "video", "news", "mobile", "androidApp", "iosApp", "pattern"}, "submitted": "120", "indexed": "0"}],
}  # fmt: skip
PENDING = {
    name: READ[name] for name in ("path", "lastSubmitted", "isPending", "isSitemapsIndex", "type", "errors", "warnings")
}
CRAWLED = {
    "verdict": VERDICT, "coverageState": "", "robotsTxtState": {"ALLOWED", "DISALLOWED", "ROBOTS_TXT_STATE_UNSPECIFIED"},
    "indexingState": {"INDEXING_STATE_UNSPECIFIED", "INDEXING_ALLOWED", "BLOCKED_BY_META_TAG", "BLOCKED_BY_HTTP_HEADER", "BLOCKED_BY_ROBOTS_TXT"},
    "pageFetchState": {
        "PAGE_FETCH_STATE_UNSPECIFIED", "SUCCESSFUL", "SOFT_404", "BLOCKED_ROBOTS_TXT", "NOT_FOUND", "ACCESS_DENIED", "SERVER_ERROR",
        "REDIRECT_ERROR", "ACCESS_FORBIDDEN", "BLOCKED_4XX", "INTERNAL_CRAWL_ERROR", "INVALID_URL",
    },
    "crawledAs": {"CRAWLING_USER_AGENT_UNSPECIFIED", "DESKTOP", "MOBILE"}, "lastCrawlTime": MOMENT,
}  # fmt: skip
INDEXED = {
    **CRAWLED, "verdict": {"PASS"}, "googleCanonical": "https://a.test", "userCanonical": "https://a.test", "sitemap": ["https://a.test/s"],
    "referringUrls": ["https://a.test"],
}  # fmt: skip
LINK = "https://search.google.com/search-console/inspect?resource_id=x"
MOBILE = {"verdict": VERDICT}
RICH = {"verdict": VERDICT, "detectedItems": [{"richResultType": "", "items": [{"name": "", "issues": []}]}]}
REFUSED = {
    "error": {"code": 403, "message": "", "errors": [{"message": "", "domain": "global", "reason": "forbidden"}]}
}


def asked(where: str, answer: Json, **body: Any) -> Example:
    """Return an example of a Search Analytics query."""
    body = {**DAYS, **body}
    return Example(
        where,
        "query_search_analytics",
        {"siteUrl": SITE, **body},
        "POST",
        f"{DOMAIN}/searchAnalytics/query",
        body,
        answer,
    )


def inspected(where: str, page: str, answer: Json, **more: str) -> Example:
    """Return an example of a URL inspection."""
    body = {"inspectionUrl": f"https://www.example.com{page}", "siteUrl": SITE, **more}
    found = {"inspectionResult": {"inspectionResultLink": LINK, "mobileUsabilityResult": MOBILE, **answer}}
    return Example(where, "inspect_url", body, "POST", "/v1/urlInspection/index:inspect", body, found)


EXAMPLES = (
    Example("Sites: list", "list_sites", {}, "GET", SITES, answer={"siteEntry": [SITE_ENTRY]}),
    Example("Sites: get, a domain property", "get_site", {"siteUrl": SITE}, "GET", DOMAIN, answer=SITE_ENTRY),
    Example("Sites: get, a URL prefix", "get_site", {"siteUrl": "https://www.example.com/"}, "GET", PREFIX, answer=SITE_ENTRY),
    Example("Sites: add", "add_site", {"siteUrl": "https://www.example.com/"}, "PUT", PREFIX, status=204),
    Example("Sites: delete", "remove_site", {"siteUrl": "https://www.example.com/"}, "DELETE", PREFIX, status=204),
    Example("Sitemaps: list", "list_sitemaps", {"siteUrl": SITE}, "GET", f"{DOMAIN}/sitemaps", answer={"sitemap": [READ, PENDING]}),
    Example(
        "Sitemaps: list, of a sitemap index", "list_sitemaps", {"siteUrl": SITE, "sitemapIndex": "https://www.example.com/index.xml"},
        "GET", f"{DOMAIN}/sitemaps", query=(("sitemapIndex", "https://www.example.com/index.xml"),), answer={"sitemap": [PENDING]},
    ),
    Example("Sitemaps: get", "get_sitemap", {"siteUrl": SITE, "feedpath": MAP}, "GET", f"{DOMAIN}/sitemaps/{ENCODED}", answer=READ),
    Example("Sitemaps: submit", "submit_sitemap", {"siteUrl": SITE, "feedpath": MAP}, "PUT", f"{DOMAIN}/sitemaps/{ENCODED}", status=204),
    Example("Sitemaps: delete", "delete_sitemap", {"siteUrl": SITE, "feedpath": MAP}, "DELETE", f"{DOMAIN}/sitemaps/{ENCODED}", status=204),
    asked("search_analytics_api_sample: available dates", rows("byProperty", "2026-10-01"), dimensions=["date"]),
    asked("search_analytics_api_sample: totals", rows("byProperty")),
    asked("search_analytics_api_sample: top queries", rows("byProperty", ""), dimensions=["query"], rowLimit=10),
    asked(
        "search_analytics_api_sample: mobile queries", rows("byProperty", ""), dimensions=["query"], rowLimit=1, startRow=1,
        dimensionFilterGroups=[{"filters": [{"dimension": "device", "expression": "mobile"}]}],
    ),
    asked("search_analytics_api_sample: top pages", rows("byPage", "https://www.example.com/"), dimensions=["page"], rowLimit=10),
    asked(
        "Search Analytics: query, request body", rows("byPage", "", "DEU", "MOBILE"), dimensions=["query", "country", "device"], type="web",
        aggregationType="byPage", dataState="all", rowLimit=25000, startRow=0,
        dimensionFilterGroups=[{"groupType": "and", "filters": [{"dimension": "country", "operator": "equals", "expression": "deu"}]}],
    ),
    inspected("UrlInspectionResult: a page in the index", "/tea", {"indexStatusResult": INDEXED, "richResultsResult": RICH}, languageCode="en-US"),
    inspected("UrlInspectionResult: a page that was left out", "/old", {"indexStatusResult": CRAWLED}),
    Example(
        "Error responses: forbidden", "list_sitemaps", {"siteUrl": "https://other.example/"}, "GET", f"{SITES}/https%3A%2F%2Fother.example%2F/sitemaps",
        status=403, answer=REFUSED,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Done:
    """Outcome of a call: the received requests, the result, and the tool definition."""

    seen: list[Seen]
    result: Json
    tool: Json


@pytest.fixture(scope="module")
def done(with_server: Callable[..., Any]) -> dict[str, Done]:
    """Call each example once, with a fresh mock API."""

    async def work(client: Client, model: Model) -> dict[str, Done]:
        tools = {tool["name"]: tool for tool in await client.list_tools()}
        found = {}
        for example in EXAMPLES:
            model.__dict__.update(Model().__dict__)
            result = await client.call_tool(example.tool, example.arguments)
            found[example.where] = Done(model.seen, result, tools[example.tool])
        return found

    return with_server(work)


each = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.where)


@each
def test_the_api_is_asked_as_documented(example: Example, done: dict[str, Done]) -> None:
    (seen,) = done[example.where].seen
    assert (seen.method, seen.path, seen.query, seen.body) == (
        example.method,
        example.path,
        dict(example.query),
        example.body,
    )
    assert seen.headers["authorization"] == f"Bearer {TOKEN}"
    assert seen.headers.get("content-type") == ("application/json" if example.body else None)


@each
def test_the_model_answers_as_documented(example: Example, done: dict[str, Done]) -> None:
    (seen,) = done[example.where].seen
    assert seen.status == example.status
    assert differences(example.answer, seen.answer) == []


@each
def test_the_documented_answer_is_what_the_tool_says_that_it_gives(example: Example, done: dict[str, Done]) -> None:
    (seen,), result, tool = done[example.where].seen, done[example.where].result, done[example.where].tool
    if example.status >= 400:
        assert result["isError"]
        assert seen.answer["error"]["message"] in result["content"][0]["text"]
    elif example.status != 204:
        assert result["structuredContent"] == seen.answer
        compile_schema(tool["outputSchema"]).validate(seen.answer)
