"""Mock of the Search Console API on loopback: properties, analytics, sitemaps and inspections.

`python upstream.py` prints the server's environment as one line of JSON, and serves until stdin is closed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

TOKEN = "token-of-the-tests"
SITE = "sc-domain:example.com"
# query, page, country, device, and for each day: clicks, impressions and position before and from October 2026 on
FACTS = [
    ("buy tea", "/tea", "DEU", "MOBILE", (4, 80, 3.0), (6, 90, 2.0)),
    ("buy tea", "/tea-offers", "DEU", "DESKTOP", (1, 40, 6.0), (1, 40, 7.0)),
    ("green tea", "/green", "USA", "MOBILE", (5, 100, 2.0), (2, 60, 5.0)),
    ("oolong", "/oolong", "USA", "DESKTOP", (0, 30, 12.0), (1, 35, 11.0)),
    ("tea shop berlin", "/", "DEU", "MOBILE", (2, 20, 1.0), (2, 20, 1.0)),
]
CHANGED = date(2026, 10, 1)
CRAWLED = {
    "robotsTxtState": "ALLOWED",
    "indexingState": "INDEXING_ALLOWED",
    "pageFetchState": "SUCCESSFUL",
    "crawledAs": "MOBILE",
    "lastCrawlTime": "2026-11-20T08:39:51Z",
}
RICH = {
    "verdict": "PASS",
    "detectedItems": [{"richResultType": "Product snippets", "items": [{"name": "Tea", "issues": []}]}],
}
PAGES = {
    "https://www.example.com/tea": {
        "verdict": "PASS",
        "coverageState": "Submitted and indexed",
        "googleCanonical": "https://www.example.com/tea",
        "userCanonical": "https://www.example.com/tea",
        "sitemap": ["https://www.example.com/sitemap.xml"],
        "referringUrls": ["https://www.example.com/"],
    },
    "https://www.example.com/old": {
        "verdict": "NEUTRAL",
        "coverageState": "Excluded by 'noindex' tag",
        "indexingState": "BLOCKED_BY_META_TAG",
    },
    "https://www.example.com/gone": {
        "verdict": "FAIL",
        "coverageState": "Not found (404)",
        "pageFetchState": "NOT_FOUND",
    },
    "https://www.example.com/tea?ref=1": {
        "verdict": "NEUTRAL",
        "coverageState": "Alternate page with proper canonical tag",
        "googleCanonical": "https://www.example.com/tea",
        "userCanonical": "https://www.example.com/tea?ref=1",
    },
}


class Refused(Exception):
    """An error response in Google's form."""

    def __init__(self, code: int, status: str, message: str) -> None:
        super().__init__(message)
        reason = {"PERMISSION_DENIED": "forbidden", "NOT_FOUND": "notFound", "UNAUTHENTICATED": "authError"}
        errors = [{"message": message, "domain": "global", "reason": reason.get(status, "invalidParameter")}]
        self.answer = JSONResponse(
            {"error": {"code": code, "message": message, "errors": errors, "status": status}}, code
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """A received request with its encoded path, and its response."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    status: int
    answer: Any


@dataclass
class Model:
    """State of the account; `inspections` is the rest of the daily quota."""

    sites: dict[str, str] = field(
        default_factory=lambda: {
            SITE: "siteOwner",
            "https://www.example.com/": "siteFullUser",
            "https://other.example/": "siteUnverifiedUser",
        }
    )
    sitemaps: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {
            "https://www.example.com/sitemap.xml": {
                "lastSubmitted": "2020-01-02T03:04:00.000Z",
                "lastDownloaded": "2020-01-02T03:04:05.000Z",
                "isPending": False,
                "isSitemapsIndex": False,
                "type": "sitemap",
                "errors": "0",
                "warnings": "2",
                "contents": [{"type": "web", "submitted": "120", "indexed": "0"}],
            },
            "https://www.example.com/news.xml": submitted(),
        }
    )
    inspections: int = 2000
    quota: int = 429  # status of an inspection above the quota; Google also returns 403
    instead: dict[str, Response] = field(default_factory=dict)  # replacements of responses, by part of a path
    last: str = ""  # the page whose inspection `instead` replaces
    seen: list[Seen] = field(default_factory=list)

    @property
    def requests(self) -> list[tuple[str, str, Any]]:
        """Method, path and body of each request."""
        return [(one.method, one.path, one.body) for one in self.seen]

    async def answer(self, request: Request) -> Response:
        """Handle one request."""
        path = request.scope["raw_path"].decode().partition("?")[0]
        body = json.loads(await request.body() or b"null")
        query, headers = dict(request.query_params), dict(request.headers)
        try:
            if request.headers.get("authorization") != f"Bearer {TOKEN}":
                raise Refused(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
            other = next((one for part, one in self.instead.items() if part in path), None)
            if other is not None and self.last in ("", (body or {}).get("inspectionUrl")):
                self.seen.append(Seen(request.method, path, query, headers, body, 200, None))
                return other
            found = self._answer(request.method, [unquote(part) for part in path.split("/")[1:]], query, body)
        except Refused as refused:
            found = refused.answer
        answer = json.loads(found.body or b"null")
        self.seen.append(Seen(request.method, path, query, headers, body, found.status_code, answer))
        return found

    def _answer(self, method: str, parts: list[str], query: dict[str, str], body: Any) -> Response:
        match method, parts:
            case "POST", ["v1", "urlInspection", "index:inspect"]:
                return JSONResponse({"inspectionResult": self._inspected(body)})
            case "GET", ["webmasters", "v3", "sites"]:
                found = [{"siteUrl": site, "permissionLevel": level} for site, level in self.sites.items()]
                return JSONResponse({"siteEntry": found})
            case "PUT", ["webmasters", "v3", "sites", site]:
                self.sites.setdefault(site, "siteUnverifiedUser")
                return Response(status_code=204)
            case method, ["webmasters", "v3", "sites", site, *rest]:
                if site not in self.sites:
                    raise Refused(404, "NOT_FOUND", f"'{site}' is not a verified Search Console site in this account.")
                return self._of_site(method, site, rest, query, body)
        raise Refused(404, "NOT_FOUND", "Not found.")

    def _of_site(self, method: str, site: str, rest: list[str], query: dict[str, str], body: Any) -> Response:
        if rest and self.sites[site] == "siteUnverifiedUser":
            raise Refused(403, "PERMISSION_DENIED", f"User does not have sufficient permission for site '{site}'.")
        match method, rest:
            case "GET", []:
                return JSONResponse({"siteUrl": site, "permissionLevel": self.sites[site]})
            case "DELETE", []:
                del self.sites[site]
                return Response(status_code=204)
            case "POST", ["searchAnalytics", "query"]:
                return JSONResponse(queried(body))
            case "GET", ["sitemaps"]:
                named = [path for path in self.sitemaps if "sitemapIndex" not in query or path.endswith("news.xml")]
                return JSONResponse({"sitemap": [{"path": path, **self.sitemaps[path]} for path in named]})
            case "GET", ["sitemaps", path] if path in self.sitemaps:
                return JSONResponse({"path": path, **self.sitemaps[path]})
            case "PUT", ["sitemaps", path]:
                self.sitemaps[path] = submitted()
                return Response(status_code=204)
            case "DELETE", ["sitemaps", path] if path in self.sitemaps:
                del self.sitemaps[path]
                return Response(status_code=204)
        raise Refused(404, "NOT_FOUND", "Requested entity was not found.")

    def _inspected(self, body: Any) -> dict[str, Any]:
        if self.inspections <= 0:
            if self.quota == 403:
                raise Refused(403, "PERMISSION_DENIED", "quotaExceeded: Quota exceeded for quota metric 'Inspections'.")
            raise Refused(429, "RESOURCE_EXHAUSTED", "Quota exceeded for sc-domain:example.com.")
        self.inspections -= 1
        if body["siteUrl"] not in self.sites or "example.com" not in body["inspectionUrl"]:
            raise Refused(403, "PERMISSION_DENIED", "You do not own this site, or the inspected URL is not part of it.")
        unknown = {"verdict": "NEUTRAL", "coverageState": "URL is unknown to Google"}
        known = PAGES.get(body["inspectionUrl"])
        found = {"indexStatusResult": {**CRAWLED, **known} if known else unknown}
        if known and known["verdict"] == "PASS":
            found["richResultsResult"] = RICH
        link = f"https://search.google.com/search-console/inspect?resource_id={body['siteUrl']}&utm_source=api"
        return {"inspectionResultLink": link, **found, "mobileUsabilityResult": {"verdict": "VERDICT_UNSPECIFIED"}}


def submitted() -> dict[str, Any]:
    """Return a sitemap that Google has not read yet."""
    return {
        "lastSubmitted": "2026-11-23T10:00:00.000Z",
        "isPending": True,
        "isSitemapsIndex": False,
        "type": "sitemap",
        "errors": "0",
        "warnings": "0",
    }


def queried(body: dict[str, Any]) -> dict[str, Any]:
    """Return a page of rows of a query: sums over the days, most clicks first."""
    first, last = (date.fromisoformat(body[name]) for name in ("startDate", "endDate"))
    if last < first:
        raise Refused(400, "INVALID_ARGUMENT", "startDate must be before endDate.")
    wanted = body.get("dimensions", [])
    if "page" in wanted and body.get("aggregationType") == "byProperty":
        raise Refused(400, "INVALID_ARGUMENT", "'BY_PROPERTY' is not a valid aggregation type when grouping by page.")
    sums: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for number in range((last - first).days + 1):
        day = first + timedelta(days=number)
        for query, page, country, device, *figures in FACTS:
            clicks, seen, place = figures[day >= CHANGED]
            known = {"query": query, "page": f"https://www.example.com{page}", "country": country, "device": device}
            if not passes(known, body):
                continue
            one = sums[tuple({**known, "date": str(day)}[name] for name in wanted)]
            one[:] = [one[0] + clicks, one[1] + seen, one[2] + place * seen]
    rows = [
        ({"keys": list(keys)} if wanted else {})
        | {"clicks": clicks, "impressions": seen, "ctr": clicks / seen, "position": place / seen}
        for keys, (clicks, seen, place) in sums.items()
    ]
    rows.sort(key=lambda row: (-row["clicks"], row.get("keys", [])))
    start = body.get("startRow", 0)
    rows = rows[start : start + body.get("rowLimit", 1000)]
    asked = body.get("aggregationType", "auto")
    kind = asked if asked != "auto" else "byPage" if "page" in wanted else "byProperty"
    return {"responseAggregationType": kind} | ({"rows": rows} if rows else {})


def passes(known: dict[str, str], body: dict[str, Any]) -> bool:
    """Return True if a row matches the filters of a query, ignoring case."""
    filters = [one for group in body.get("dimensionFilterGroups", ()) for one in group["filters"]]
    compare = {
        "equals": str.__eq__,
        "notEquals": str.__ne__,
        "contains": str.__contains__,
        "notContains": lambda value, part: part not in value,
    }
    return all(
        compare[one.get("operator", "equals")](known[one["dimension"]].lower(), one["expression"].lower())
        for one in filters
    )


def application(model: Model) -> Starlette:
    """Return the mock API as an ASGI application."""
    methods = ["GET", "POST", "PUT", "DELETE"]
    return Starlette(routes=[Route("/{path:path}", model.answer, methods=methods)])


async def main() -> None:
    """Serve until stdin is closed."""
    server = uvicorn.Server(uvicorn.Config(application(Model()), port=0, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    name = "GOOGLE_SEARCH_CONSOLE"
    environment = {f"{name}_BASE_URL": f"http://127.0.0.1:{port}", f"{name}_TOKEN": TOKEN, f"{name}_ALLOW_PRIVATE": "1"}
    print(json.dumps({"environment": environment}), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await serving


if __name__ == "__main__":
    asyncio.run(main())
