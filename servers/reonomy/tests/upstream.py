"""Mock of Reonomy's API on loopback: search, address resolution, parcels and details, with its rate limits.

`python upstream.py` prints the server's environment as one line of JSON, and serves until stdin is closed.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

ACCESS, SECRET = "access-of-the-tests", "secret-of-the-tests"
LIMITS = {"search": [(5, 1.0)], "single": [(5, 1.0)], "many": [(2, 1.0), (20, 60.0)]}
PLACE = ("address_line1", "city", "state", "zip5")
BASIC = (*PLACE, "active", "alternative_addresses", "apn", "asset_category", "bins", "building_area", "year_built")
HELD = object()
OF_TYPE = {
    "basic": BASIC,
    "sales": ("sales_date", "sales_price", "sales"),
    "mortgages": ("mortgage_amount", "mortgage_lender_name", "mortgages"),
    "reported_owner": ("reported_owners",),
    "taxes": ("tax_amount", "tax_year"),
    "ownership": (),
    "tenants": (),
}


def ident(number: int) -> str:
    """Return the ID of the property with this number."""
    return f"0a1b2c3d-0000-4000-8000-{number:012d}"


def day(months: int) -> str:
    """Return the date some months from now."""
    return str((datetime.now(UTC) + timedelta(days=30 * months)).date())


def building(number: int) -> dict[str, Any]:
    """Return a property; every third one is in Albany, and each owner has two."""
    area = 1000.0 * number
    return {
        "id": ident(number),
        "address_line1": f"{number} Main St",
        "city": "Albany" if number % 3 == 0 else "New York",
        "state": "NY",
        "zip5": "10001",
        "active": True,
        "alternative_addresses": [alternative(number)],
        "apn": f"101-32-{number:03d}.A",
        "bins": [f"{1000000 + number}"],
        "asset_category": "Office" if number % 2 else "Retail",
        "building_area": area,
        "year_built": 1900 + number,
        "sales_date": day(-number),
        "sales_price": area * 300 if number != 4 else None,
        "sales": [],
        "mortgage_amount": 1_000_000.0,
        "mortgage_lender_name": "First Bank",
        "mortgages": [{"maturity_date": day(number), "lender_name": "First Bank", "amount": 1_000_000.0}],
        "reported_owners": [{"name": f"Owner {(number + 1) // 2} LLC"}],
        "tax_amount": 9000.0,
        "tax_year": 2025,
    }


def alternative(number: int) -> dict[str, str]:
    """Return an alternative address of a property."""
    parts = {"house_nbr": str(number), "direction_left": "W", "street": "Side", "mode": "St", "direction_right": ""}
    return {**parts, "address_line1": f"{number} W Side St", "city": "New York", "state": "NY", "zip5": "10001"}


@dataclass(frozen=True, slots=True)
class Seen:
    """A received request, its query with all values by name, and its response."""

    method: str
    path: str
    query: list[tuple[str, str]]
    headers: dict[str, str]
    body: Any
    status: int
    answer: Any


@dataclass
class Model:
    """State of the API; `refused` counts requests above the rate limits.

    `instead` replaces the next responses by path: JSON, text (sent as HTML), a response, HELD (none until `released` is set),
    or None for the usual response. The last one is kept.
    """

    properties: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {one["id"]: one for one in map(building, range(1, 13))}
    )
    seen: list[Seen] = field(default_factory=list)
    refused: int = 0
    billed: int = 0
    limits: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: dict(LIMITS))
    instead: dict[str, list[Any]] = field(default_factory=dict)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    _begun: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @property
    def asked(self) -> list[tuple[str, str, Any]]:
        """Method and path of each request below /v2, with its body, or else its query."""
        return [(one.method, one.path.removeprefix("/v2"), one.body or one.query) for one in self.seen]

    async def answer(self, request: Request) -> Response:
        """Handle one request."""
        raw = await request.body()
        body = json.loads(raw) if raw else {}
        found = await self._instead(request) or self._answered(request, body)
        query, headers = list(request.query_params.multi_items()), dict(request.headers)
        is_json = found.headers.get("content-type") == "application/json"
        answer = json.loads(found.body or b"null") if is_json else bytes(found.body).decode()
        self.seen.append(Seen(request.method, request.url.path, query, headers, body, found.status_code, answer))
        return found

    async def _instead(self, request: Request) -> Response | None:
        """Return the replacement of a response, or None."""
        queue = self.instead.get(request.url.path.removeprefix("/v2"))
        other = None if not queue else queue.pop(0) if len(queue) > 1 else queue[0]
        if other is HELD:
            await self.released.wait()
        if other is None or isinstance(other, Response):
            return other
        if isinstance(other, str):
            return HTMLResponse(other)
        return JSONResponse(json.loads(other) if isinstance(other, bytes) else {} if other is HELD else other)

    def _answered(self, request: Request, body: dict[str, Any]) -> Response:
        path = request.url.path.removeprefix("/v2")
        wanted = base64.b64encode(f"{ACCESS}:{SECRET}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {wanted}":
            return JSONResponse({"error": "AuthorizationException", "message": "Invalid access token"}, 401)
        kind = "many" if path == "/property/bulk" else "single" if path.startswith("/property/") else "search"
        if self._too_fast(kind):
            self.refused += 1
            return JSONResponse({"error": "TooManyRequests", "message": "Rate limit exceeded"}, 429)
        found = self._answer(request, path, body)
        return found if isinstance(found, Response) else JSONResponse(found)

    def _too_fast(self, kind: str) -> bool:
        now, begun = time.monotonic(), self._begun[kind]
        if any(sum(one > now - seconds for one in begun) >= count for count, seconds in self.limits.get(kind, ())):
            return True
        begun.append(now)
        return False

    def _answer(self, request: Request, path: str, body: dict[str, Any]) -> Any:
        match request.method, path.strip("/").split("/"):
            case "POST", ["search", "summaries"]:
                return self._search(body, request.query_params.get("search_token"))
            case "POST", ["resolve", "property"]:
                wanted = body.get("address_line_1", "").casefold()
                items = [brief(one) for one in self.properties.values() if one["address_line1"].casefold() == wanted]
                return {"count": len(items), "items": items}
            case "POST", ["search", "property-shapes"]:
                return {"items": [{"address_line1": "1 Main St", "city": "New York", "state": "NY", "shape": {}}]}
            case "POST", ["property", "bulk"]:
                if len(body["property_ids"]) > 250:
                    return JSONResponse({"error": "BadRequest", "message": "At most 250 property_ids"}, 400)
                self.billed += len(body["property_ids"])
                types = body.get("detail_type", ["basic"])
                return [self._shown(one, types) for one in body["property_ids"] if one in self.properties]
            case "GET", ["property", name] if name in self.properties:
                self.billed += 1
                return self._shown(name, request.query_params.getlist("detail_type") or ["basic"])
        return JSONResponse({"error": "NotFound", "message": "Not found"}, 404)

    def _search(self, body: dict[str, Any], token: str | None) -> dict[str, Any]:
        settings = body["settings"]
        places = [one["text"] for one in settings.get("locations", []) if one["kind"] == "city"]
        fits = [
            one
            for one in self.properties.values()
            if (not places or one["city"] in places)
            and one["asset_category"] in settings.get("asset_category", [one["asset_category"]])
            and all(
                within(one[name], settings[name])
                for name in ("building_area", "year_built", "sales_price", "sales_date")
                if name in settings
            )
        ]
        first, limit = int(token or 0), body.get("limit", 50)
        more = str(first + limit) if first + limit < len(fits) else None
        return {"count": len(fits), "search_token": more, "items": [brief(one) for one in fits[first : first + limit]]}

    def _shown(self, name: str, types: list[str]) -> dict[str, Any]:
        whole = self.properties[name]
        return {"id": name, **{key: whole[key] for one in types for key in OF_TYPE[one]}}


def brief(one: dict[str, Any]) -> dict[str, Any]:
    """Return a property in the form of search results."""
    return {"id": one["id"], "lat": 40.7, "lon": -74.0}


def within(value: Any, limits: dict[str, Any]) -> bool:
    """Return True if a value is within the limits."""
    return value is not None and limits.get("min", value) <= value <= limits.get("max", value)


def environment(url: str) -> dict[str, str]:
    """Return the environment of a server that uses the mock API at `url`."""
    keys = {"REONOMY_USERNAME": ACCESS, "REONOMY_PASSWORD": SECRET}
    return {**keys, "REONOMY_BASE_URL": f"{url}/v2", "REONOMY_ALLOW_PRIVATE": "1"}


def application(model: Model) -> Starlette:
    """Return the mock API as an ASGI application."""
    return Starlette(routes=[Route("/{path:path}", model.answer, methods=["GET", "POST"])])


async def main() -> None:
    """Serve until stdin is closed."""
    server = uvicorn.Server(uvicorn.Config(application(Model()), port=0, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    print(json.dumps({"environment": environment(f"http://127.0.0.1:{port}")}), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await serving


if __name__ == "__main__":
    asyncio.run(main())
