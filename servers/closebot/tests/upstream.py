"""A model of CloseBot's API on loopback: bots, test conversations, personas, sources, leads, figures and the bill, as its reference describes them.

`python upstream.py` prints one line of JSON with the environment that the server needs, and serves until its input ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

KEY = "cb_key-of-the-tests"
BOT, DRAFT, SOURCE, OTHER = "bot_FRONTDESK", "bot_DRAFT", "src_YOGA", "src_DENTIST"
SECRET = "eyJ-token-of-the-crm"
SERIES = {"responses": 10, "contacts": 4, "bookings": 1, "revenue": 50}


def ago(hours: float) -> str:
    """Return a time in the past as the API writes it."""
    return (datetime.now(UTC) - timedelta(hours=hours)).isoformat().replace("+00:00", "Z")


def bot(name: str, title: str, published: bool, sources: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a bot as the API shows it."""
    version = {"version": "3", "name": None, "published": published, "modifiedAt": "2026-11-01T10:00:00Z"}
    return {
        "id": name,
        "name": title,
        "modifiedAt": "2026-11-01T10:00:00Z" if published else "2026-11-20T10:00:00Z",
        "modifiedBy": "Sam",
        "versions": [version],
        "sources": sources,
        "personaIds": ["per_MARIA"],
        "followUpActive": True,
        "tools": [],
    }


def attached(source: str, name: str, enabled: bool) -> dict[str, Any]:
    """Return how a bot is attached to a source."""
    tags = [{"name": "lead-ad", "approveDeny": True, "id": "t1"}]
    return {
        "id": source,
        "category": "GHL",
        "key": SECRET,
        "name": name,
        "tags": tags,
        "channelList": ["SMS"],
        "personaNameOverride": "Maria",
        "enabled": enabled,
    }


def lead(name: str, title: str, hours: float, direction: str, why: str | None = None) -> dict[str, Any]:
    """Return a lead as the API shows it."""
    return {
        "id": name,
        "name": title,
        "contactId": f"c-{name}",
        "lastMessage": "Are you open on Sunday?",
        "lastMessageTime": ago(hours),
        "lastMessageDirection": direction,
        "mostRecentFailureReason": why,
        "source": {"id": SOURCE, "name": "Yoga Centre"},
        "tags": ["lead-ad"],
        "fields": [],
        "instances": [{"botId": BOT, "botVersion": "3"}],
    }


@dataclass
class Model:
    """What the agency has; a test conversation is answered at the second look."""

    bots: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {
            BOT: bot(BOT, "Front desk", True, [attached(SOURCE, "Yoga Centre", True)]),
            DRAFT: bot(DRAFT, "Recall", False, [attached(OTHER, "Dentist", False)]),
        }
    )
    leads: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {
            one["id"]: one
            for one in (
                lead("lead_1", "Jordan Lee", 30, "to_bot", "No credits"),
                lead("lead_2", "Ana Ruiz", 5, "to_bot", "No credits"),
                lead("lead_3", "Kim Park", 0.5, "to_bot"),
                lead("lead_4", "Lou Maier", 50, "to_bot"),
                lead("lead_5", "Max Roth", 1, "from_bot"),
            )
        }
    )
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    credits: bool = True
    answers: bool = True

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        raw = await request.body()
        body = json.loads(raw) if raw else None
        self.asked.append((request.method, request.url.path, body if body is not None else dict(request.query_params)))
        if request.headers.get("x-cb-key") != KEY:
            return JSONResponse({"error": "Unauthorized"}, 401)
        parts = request.url.path.strip("/").split("/")
        found = self._answer(request.method, parts, body or {}, request)
        return found if isinstance(found, Response) else JSONResponse(found)

    def _answer(self, method: str, parts: list[str], body: dict[str, Any], request: Request) -> Any:
        area = {"bot": self._bots, "lead": self._leads, "botMetric": self._figures}.get(parts[0], self._rest)
        return area(method, parts[1:], body, request)

    def _bots(self, method: str, parts: list[str], body: dict[str, Any], request: Request) -> Any:
        if parts and parts[0] not in self.bots and parts != ["ai"]:
            return missing()
        match method, parts:
            case "GET", []:
                return list(self.bots.values())
            case "POST", [] | ["ai"]:
                made = bot(f"bot_{len(self.bots)}", body["name"], False, [])
                self.bots[made["id"]] = made
                return made
            case "GET", [name]:
                return self.bots[name]
            case "DELETE", [name]:
                del self.bots[name]
                return {}
            case "POST", [name, "publish"]:
                self.bots[name]["versions"][0]["published"] = True
                return self.bots[name]
            case "GET", [name, "export"]:
                return {"id": name, "version": "3", "kdl": 'Source id="1" {}'}
            case "POST", [name, "source", source]:
                for one in self.bots[name]["sources"]:
                    if one["id"] == source:
                        one.update(enabled=body.get("enabled", True), tags=body["tags"], channelList=body["channels"])
                return {}
            case _, [_, "testSession", *rest]:
                return self._testing(method, rest, body)
        return missing()

    def _testing(self, method: str, parts: list[str], body: dict[str, Any]) -> Any:
        match method, parts:
            case "POST", []:
                name = f"lead_TEST{len(self.asked)}"
                self.sessions[name] = {"id": name, "lastMessage": None, "lastMessageTime": None, "looks": 0}
                return {"leadId": name, "sourceId": "src_TEST"}
            case "GET", []:
                for one in self.sessions.values():
                    self._speak(one)
                return {"leads": list(self.sessions.values()), "total": len(self.sessions)}
            case "POST", ["message"]:
                if not self.credits:
                    return JSONResponse({"error": "No Credits"}, 420)
                self.sessions[body["leadId"]].update(
                    lastMessage=body["message"], lastMessageTime=ago(0), lastMessageDirection="to_bot", looks=0
                )
                return {}
            case "PUT", [name]:
                self.sessions[name]["mimicSourceId"] = body["mimicSourceId"]
                return {}
            case "DELETE", [name]:
                del self.sessions[name]
                return {}
        return missing()

    def _speak(self, session: dict[str, Any]) -> None:
        if session.get("lastMessageDirection") != "to_bot":
            return
        session["looks"] += 1
        if session["looks"] > 1 and self.answers:
            said = f"You said: {session['lastMessage']}"
            session.update(lastMessage=said, lastMessageTime=ago(0), lastMessageDirection="from_bot")
        elif session["looks"] > 1:
            session["mostRecentFailureReason"] = "The flow has no step after Source"

    def _leads(self, method: str, parts: list[str], body: dict[str, Any], request: Request) -> Any:
        match method, parts:
            case "GET", []:
                return {"total": len(self.leads), "results": list(self.leads.values()), "page": 0, "pageSize": 20}
            case "POST", ["search"]:
                wanted = [
                    one
                    for one in self.leads.values()
                    if body.get("lastMessageDirection") in (None, one["lastMessageDirection"])
                    and (not body.get("sourceIds") or one["source"]["id"] in body["sourceIds"])
                    and body.get("search", "").casefold() in one["name"].casefold()
                ]
                first = body.get("offset", 0)
                return {"total": len(wanted), "leads": wanted[first : first + body.get("count", 20)]}
            case "GET", [name] if name in self.leads:
                return self.leads[name]
            case "DELETE", [name] if name in self.leads:
                del self.leads[name]
                return {}
        return missing()

    def _figures(self, method: str, parts: list[str], body: dict[str, Any], request: Request) -> Any:
        query = request.query_params
        match parts:
            case ["agencySummary"]:
                return {
                    "currentMonthMessageCount": 120,
                    "lastMonthMessageCount": 100,
                    "currentMonthSuccessfulBookings": 7,
                }
            case ["agencyMetric"]:
                first, last = (datetime.fromisoformat(query[name]).date() for name in ("start", "end"))
                days = [first + timedelta(number) for number in range((last - first).days)]
                each = SERIES[query["metric"]]
                return [{"timestamp": f"{day}T00:00:00Z", "value": each * (2 if day.day > 15 else 1)} for day in days]
            case ["leaderboard"]:
                return [{"id": SOURCE, "name": "Yoga Centre", "value": 7}]
            case ["messages"]:
                said = [
                    ("from_bot", "You are booked for Monday at 9.", [{"activity": "booked", "data": "Trial class"}]),
                    ("to_bot", "Monday at 9, please.", []),
                    ("from_bot", "When would you like to come?", []),
                    ("to_bot", "Do you have trial classes?", []),
                ]
                return [
                    {
                        "messageId": f"m{number}",
                        "sourceId": SOURCE,
                        "leadId": query.get("leadId", "lead_1"),
                        "botId": BOT,
                        "channel": "SMS",
                        "fromBot": direction == "from_bot",
                        "direction": direction,
                        "message": text,
                        "timestamp": ago(number + 1),
                        "activities": activities,
                    }
                    for number, (direction, text, activities) in enumerate(said)
                ]
            case ["actions"]:
                return []
        return missing()

    def _rest(self, method: str, parts: list[str], body: dict[str, Any], request: Request) -> Any:
        match request.method, request.url.path.strip("/").split("/"):
            case "GET", ["persona"]:
                return [{"id": "per_MARIA", "personaName": "Maria", "voiceStyles": "warm", "bots": []}]
            case "GET", ["persona", name]:
                return {"id": name, "personaName": "Maria", "voiceStyles": "warm", "bots": []}
            case "GET", ["agency", "source"]:
                rows = [source(SOURCE, "Yoga Centre"), source(OTHER, "Dentist")]
                words = request.query_params.get("query", "").casefold()
                rows = [one for one in rows if words in one["name"].casefold()]
                return {"total": len(rows), "results": rows, "page": 0, "pageSize": 20}
            case "GET", ["agency", "source", name]:
                return source(name, "Yoga Centre") if name == SOURCE else missing()
            case "GET", ["agency", "billing", "balance"]:
                return {"balance": 12.5, "currency": "usd"}
            case "GET", ["library", "files", name]:
                return {
                    "fileId": name,
                    "fileName": "prices.pdf",
                    "fileStatus": "ready",
                    "fileSize": 4096,
                    "sources": [],
                }
        return missing()


def source(name: str, title: str) -> dict[str, Any]:
    """Return a source as the API shows it, with the credentials that it sends along."""
    return {
        "sourceId": name,
        "name": title,
        "category": "GHL",
        "connected": True,
        "key": SECRET,
        "accessToken": SECRET,
        "bots": [{"id": BOT, "botName": "Front desk", "channels": ["SMS"], "enabled": True}],
        "wallet": {"stripeCustomerId": SECRET, "currency": "usd"},
    }


def missing() -> JSONResponse:
    """Return the answer about what is not there."""
    return JSONResponse({"error": "Not found"}, 404)


def environment(url: str) -> dict[str, str]:
    """Return what a server needs that asks the model at this address."""
    return {"CLOSEBOT_BASE_URL": url, "CLOSEBOT_API_KEY": KEY, "CLOSEBOT_ALLOW_PRIVATE": "1"}


def application(model: Model) -> Starlette:
    """Return the model as an application."""
    return Starlette(routes=[Route("/{path:path}", model.answer, methods=["GET", "POST", "PUT", "DELETE"])])


async def main() -> None:
    """Serve until the input ends."""
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
