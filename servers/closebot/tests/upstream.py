"""Mock of CloseBot's API on loopback: bots, test conversations, personas, sources, leads, metrics and billing.

`python upstream.py` prints the server's environment as one line of JSON, and serves until stdin is closed.
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
    """Return a past time in the API's format."""
    return (datetime.now(UTC) - timedelta(hours=hours)).isoformat().replace("+00:00", "Z")


def bot(name: str, title: str, published: bool, sources: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a bot in its API form."""
    day = "2026-11-01T10:00:00Z"
    version = {"version": "3", "name": None, "published": published, "modifiedAt": day, "modifiedBy": "Sam"}
    sequences = [{"order": 1, "duration": 2, "unit": "hours"}]
    state = {"id": 1, "name": "Default", "isDefault": True, "sequences": sequences, "repeatFinal": False, "order": 1}
    return {
        "id": name,
        "name": title,
        "modifiedAt": "2026-11-01T10:00:00Z" if published else "2026-11-20T10:00:00Z",
        "modifiedBy": "Sam",
        "versions": [version],
        "sources": sources,
        "personaIds": ["per_MARIA"],
        "favorited": False,
        "locked": False,
        "reschedulingEnabled": True,
        "category": "GHL",
        "folderId": None,
        "followUpActive": True,
        "followUpSequences": sequences,
        "smartFollowUp": False,
        "followUpRepeat": False,
        "followUpVarianceMinutes": 15,
        "followUpExtraPrompt": None,
        "followUpStates": [{**state, "extraPrompt": None}],
        "tools": [{"id": "tool_1", "type": "booking", "enabled": True, "options": {}}],
    }


def attached(source: str, name: str, enabled: bool) -> dict[str, Any]:
    """Return the attachment of a bot to a source."""
    tags = [{"name": "lead-ad", "approveDeny": True, "id": "t1"}]
    return {
        "id": source,
        "category": "GHL",
        "key": SECRET,
        "name": name,
        "tags": tags,
        "tagFilterConfig": {"operator": "and", "groups": []},
        "flowVariableValues": {},
        "channelList": ["SMS"],
        "personaNameOverride": "Maria",
        "enabled": enabled,
    }


def lead(name: str, title: str, hours: float, direction: str, why: str | None = None) -> dict[str, Any]:
    """Return a lead in its API form."""
    return {
        "id": name,
        "name": title,
        "contactId": f"c-{name}",
        "lastMessage": "Are you open on Sunday?",
        "lastMessageTime": ago(hours),
        "lastMessageDirection": direction,
        "lastMessageBotId": BOT,
        "mostRecentFailureReason": why,
        "mimicSourceId": None,
        "starred": False,
        "unread": True,
        "wontRespondUntil": None,
        "source": {"id": SOURCE, "name": "Yoga Centre"},
        "tags": ["lead-ad"],
        "fields": [{"field": "goal", "name": "Goal", "value": "A trial class", "aiProduced": True}],
        "instances": [
            {
                "botId": BOT,
                "botVersion": "3",
                "followUpTimezoneKind": "contact",
                "followUpTimezone": "Europe/Berlin",
                "followUpTime": "2026-11-25T09:00:00Z",
                "isSmartFollowUpTime": False,
                "scheduleRespondTime": None,
            }
        ],
    }


@dataclass(frozen=True, slots=True)
class Seen:
    """A received request with its response."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    status: int
    answer: Any


@dataclass
class Model:
    """State of the agency; the bot of a test conversation answers at the second poll."""

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
    seen: list[Seen] = field(default_factory=list)
    # Responses that replace the usual ones, by method and end of the path.
    instead: dict[tuple[str, str], Response] = field(default_factory=dict)
    credits: bool = True
    answers: bool = True

    @property
    def asked(self) -> list[tuple[str, str, Any]]:
        """Method, path, and body or query of each request."""
        return [(one.method, one.path, one.query if one.body is None else one.body) for one in self.seen]

    async def answer(self, request: Request) -> Response:
        """Handle one request."""
        raw = await request.body()
        body = json.loads(raw) if raw else None
        parts = request.url.path.strip("/").split("/")
        refused = request.headers.get("x-cb-key") != KEY
        answer = JSONResponse({"error": "Unauthorized"}, 401) if refused else None
        answer = answer or self._instead(request.method, request.url.path)
        answer = answer or self._answer(request.method, parts, body or {}, request)
        found = answer if isinstance(answer, Response) else JSONResponse(answer)
        query, headers = dict(request.query_params), dict(request.headers)
        shown = json.loads(found.body or b"null") if found.media_type == "application/json" else None
        self.seen.append(Seen(request.method, request.url.path, query, headers, body, found.status_code, shown))
        return found

    def _instead(self, method: str, path: str) -> Response | None:
        found = (one for (wanted, end), one in self.instead.items() if method == wanted and path.endswith(end))
        return next(found, None)

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
            case "PUT", [name]:
                names = {"favorite": "favorited", "rescheduling": "reschedulingEnabled"}
                self.bots[name] |= {names.get(key, key): value for key, value in body.items()}
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
                self.sessions[name] = {
                    **lead(name, "Test", 0, ""),
                    "lastMessage": None,
                    "lastMessageTime": None,
                    "looks": 0,
                }
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
                    ("outbound", "You are booked for Monday at 9.", [{"activity": "booked", "data": "Trial class"}]),
                    ("inbound", "Monday at 9, please.", []),
                    ("outbound", "When would you like to come?", []),
                    ("inbound", "Do you have trial classes?", []),
                ]
                return [message(number, *one, query.get("leadId", "lead_1")) for number, one in enumerate(said)]
            case ["actions"]:
                ids = {"actionId": "act_1", "leadId": "lead_1", "sourceId": SOURCE, "botId": query.get("botId", BOT)}
                return [{"timestamp": ago(1), **ids, "nodeId": 3, "frontendNodeId": "n3"}]
        return missing()

    def _rest(self, method: str, parts: list[str], body: dict[str, Any], request: Request) -> Any:
        match request.method, request.url.path.strip("/").split("/"):
            case "GET", ["persona"]:
                return [persona("per_MARIA")]
            case "POST", ["persona"]:
                return {**persona("per_NEW"), **body}
            case "GET" | "PUT", ["persona", name]:
                return {**persona(name), **body}
            case "GET", ["agency", "source"]:
                rows = [source(SOURCE, "Yoga Centre"), source(OTHER, "Dentist")]
                words = request.query_params.get("query", "").casefold()
                rows = [one for one in rows if words in one["name"].casefold()]
                return {"total": len(rows), "results": rows, "page": 0, "pageSize": 20}
            case "GET" | "PUT", ["agency", "source", name]:
                known = {key: value for key, value in body.items() if key != "markConversationsAsUnread"}
                return {**source(name, "Yoga Centre"), **known} if name == SOURCE else missing()
            case "GET", ["agency", "billing", "usages"]:
                return [usage()]
            case "GET", ["agency", "billing", "transactions"]:
                row = {"id": 7, "status": request.query_params.get("status", "succeeded"), "description": "Refill"}
                money = {"amount": 5000, "currency": "usd", "receiptUrl": "https://pay.example.com/7"}
                return [{**row, **money, "createdAt": "2026-11-01T00:00:00Z", "usage": usage()}]
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
    """Return a source in its API form, with CRM credentials."""
    attached_bot = {
        "id": BOT,
        "botName": "Front desk",
        "channels": ["SMS"],
        "enabled": True,
        "personaNameOverride": None,
        "tags": [{"name": "lead-ad", "approveDeny": True, "id": "t1"}],
    }
    window = {"dayOfWeekUtc": "Monday", "startTimeUtc": "09:00:00", "duration": "08:00:00"}
    wallet = {
        "reBilling": False,
        "autoRefill": True,
        "topUpAmount": 5000,
        "refillThreshold": 1000,
        "currency": "usd",
        **dict.fromkeys(("responseUnitCostOverride", "storageUnitCostOverride", "userUnitCostOverride")),
        "stripeCustomerId": SECRET,
    }
    return {
        "agencyId": "agency_1",
        "sourceId": name,
        "name": title,
        "category": "GHL",
        "key": SECRET,
        "accessToken": SECRET,
        "address": None,
        "connected": True,
        "autoShutoff": True,
        "gracefulGoodbye": False,
        "bots": [attached_bot],
        "accountsWithAccess": ["acc_1"],
        "isAvailabilityContactTimezone": True,
        "respondWindows": [window],
        "doNotRespondWindows": [{"start": "2026-12-24T00:00:00Z", "end": "2026-12-27T00:00:00Z"}],
        "summarizeAttachments": True,
        "respondToReactions": False,
        "markConversationAsUnread": False,
        "webhookCallback": None,
        "wallet": wallet,
    }


def persona(name: str) -> dict[str, Any]:
    """Return a persona in its API form."""
    day = "2026-11-01T10:00:00Z"
    return {
        "id": name,
        "agencyId": "agency_1",
        "personaName": "Maria",
        "description": None,
        "color": "#336699",
        "imageUri": None,
        "voiceStyles": "warm",
        "howToRespond": None,
        "typoPercent": 0,
        "breakupLargeMessagePercent": 50,
        "responseTime": "Fast",
        "responseDelay": 5,
        "modifiedAt": day,
        "modifiedBy": "Sam",
        "aiProviderPreferences": [],
        "folderId": None,
        "botIds": [BOT],
        "bots": [{"name": "Front desk", "id": BOT}],
        "favorited": False,
        "default": True,
    }


def message(number: int, direction: str, text: str, activities: list[Any], who: str) -> dict[str, Any]:
    """Return a message in its API form."""
    return {
        "messageId": f"m{number}",
        "sourceId": SOURCE,
        "leadId": who,
        "botId": BOT,
        "personaId": "per_MARIA",
        "channel": "SMS",
        "fromBot": direction == "outbound",
        "direction": direction,
        "message": text,
        "attachments": [],
        "timestamp": ago(number + 1),
        "activities": [{**one, "timeData": None} for one in activities],
    }


def usage() -> dict[str, Any]:
    """Return usage and cost of a month."""
    month = {"startTime": "2026-11-01T00:00:00Z", "endTime": "2026-12-01T00:00:00Z"}
    return {
        **month,
        "responses": 120,
        "libraryBytes": 4096,
        "users": 3,
        "responseCost": 240,
        "libraryCost": 1,
        "userCost": 0,
    }


def missing() -> JSONResponse:
    """Return an HTTP 404 response."""
    return JSONResponse({"error": "Not found"}, 404)


def environment(url: str) -> dict[str, str]:
    """Return the environment of a server that uses the mock API at `url`."""
    return {"CLOSEBOT_BASE_URL": url, "CLOSEBOT_API_KEY": KEY, "CLOSEBOT_ALLOW_PRIVATE": "1"}


def application(model: Model) -> Starlette:
    """Return the mock API as an ASGI application."""
    return Starlette(routes=[Route("/{path:path}", model.answer, methods=["GET", "POST", "PUT", "DELETE"])])


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
