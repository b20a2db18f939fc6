"""Mock of Twilio's three APIs on loopback: messages, calls, numbers, usage, lookups and verification.

`python upstream.py` prints the server's environment as one line of JSON, and serves until stdin is closed.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

sys.path.insert(0, str(Path(__file__).parent))

from resources import (
    ACCOUNT,
    NUMBER,
    SERVICE,
    SUBACCOUNT,
    account,
    call,
    check,
    free_number,
    lookup,
    message,
    number_of_account,
    page,
    service,
    sid,
    usage,
    verification,
)

TOKEN = "token-of-the-tests"
CODE = "123456"
ERRORS = {
    "+15005550001": (21211, "The 'To' number +15005550001 is not a valid phone number."),
    "+15005550002": (21610, "Attempt to send to unsubscribed recipient"),
}
SILENCE = Response(status_code=500)  # never sent: the caller times out


@dataclass(frozen=True, slots=True)
class Seen:
    """A received request, query and form with all values by name, and its response."""

    method: str
    path: str
    query: dict[str, list[str]]
    form: dict[str, list[str]]
    headers: dict[str, str]
    status: int
    answer: Any


@dataclass
class Model:
    """State of the account; each read of a queued message advances its state."""

    messages: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {
            one["sid"]: one
            for one in (
                message(1, "+15558675310", "delivered"),
                message(2, "+15558675311", "undelivered", 30003),
                message(3, "+15558675312", "undelivered", 30003),
                message(4, "+15558675313", "failed", 30006),
                message(5, "+15558675314", "queued"),
            )
        }
    )
    seen: list[Seen] = field(default_factory=list)
    answers: dict[tuple[str, str], list[Response | None]] = field(default_factory=dict)  # see `instead`

    def instead(self, method: str, ending: str, *answers: Response | None) -> None:
        """Replace responses by method and end of the path, in order; the last one is kept. None is the usual response."""
        self.answers[method, ending] = list(answers)

    @property
    def forms(self) -> list[tuple[str, str, dict[str, list[str]]]]:
        """Method, path and form of each request."""
        return [(one.method, one.path, one.form) for one in self.seen]

    async def answer(self, request: Request) -> Response:
        """Handle one request."""
        form = parse_qs((await request.body()).decode(), keep_blank_values=True)
        query = parse_qs(request.url.query, keep_blank_values=True)
        path = unquote(request.url.path)
        answer = self._permitted(request) or self._instead(request.method, path)
        answer = answer or self._answer(request.method, path, _single(query), _single(form))
        found = answer if isinstance(answer, Response) else JSONResponse(answer)
        if found is SILENCE:
            while (await request.receive())["type"] != "http.disconnect":
                pass
        body = json.loads(found.body or b"null") if found.media_type == "application/json" else None
        seen = Seen(request.method, path, query, form, dict(request.headers), found.status_code, body)
        self.seen.append(seen)
        return found

    def _instead(self, method: str, path: str) -> Response | None:
        """Return the replacement of a response, or None."""
        for (wanted, ending), answers in self.answers.items():
            if method == wanted and path.endswith(ending) and answers:
                return answers[0] if len(answers) == 1 else answers.pop(0)
        return None

    def _permitted(self, request: Request) -> Response | None:
        wanted = base64.b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode()
        refused = request.headers.get("authorization") != f"Basic {wanted}"
        return problem(401, 20003, "Authenticate") if refused else None

    def _answer(self, method: str, path: str, query: dict[str, str], form: dict[str, str]) -> Any:
        match method, path.strip("/").split("/"):
            case "GET", ["2010-04-01", "Accounts.json"]:
                rows = [account(ACCOUNT, "Shop"), account(SUBACCOUNT, "Branch")]
                return page(
                    "accounts", [one for one in rows if query.get("Status") in (None, one["status"])], path, query
                )
            case method, ["2010-04-01", "Accounts", account_sid, *rest] if account_sid in (ACCOUNT, SUBACCOUNT):
                return self._of_account(method, rest, account_sid, path, query, form)
            case "GET", ["v2", "PhoneNumbers", number]:
                return lookup(number, query.get("Fields", ""))
            case "GET", ["v2", "Services"]:
                return services(query)
            case "POST", ["v2", "Services", name, "Verifications"] if name == SERVICE:
                return JSONResponse(verification(form["To"], form["Channel"]), 201)
            case "POST", ["v2", "Services", name, "VerificationCheck"] if name == SERVICE:
                return JSONResponse(check(form["To"], good=form["Code"] == CODE), 201)
        return unknown(path)

    def _of_account(
        self, method: str, rest: list[str], account_sid: str, path: str, query: dict[str, str], form: dict[str, str]
    ) -> Any:
        match method, rest:
            case "GET", ["Messages.json"]:
                own = [one for one in self.messages.values() if one["account_sid"] == account_sid]
                kept = [one for one in own if all(query.get(key) in (None, one[key.lower()]) for key in ("To", "From"))]
                return page("messages", kept, path, query)
            case "POST", ["Messages.json"]:
                return self._send(account_sid, form)
            case _, ["Messages", name] if name.removesuffix(".json") in self.messages:
                return self._message(method, name.removesuffix(".json"), form)
            case "GET", ["Calls.json"]:
                rows = [call(account_sid, "+15558675310", NUMBER, "completed")]
                return page("calls", [one for one in rows if query.get("Status") in (None, one["status"])], path, query)
            case "POST", ["Calls.json"]:
                return JSONResponse(call(account_sid, form["To"], form["From"]), 201)
            case "GET" | "POST", ["Calls", name] if name == f"{sid('CA', 1)}.json":
                return call(account_sid, "+15558675310", NUMBER, form.get("Status", "completed"))
            case "GET", ["IncomingPhoneNumbers.json"]:
                return page("incoming_phone_numbers", [number_of_account(account_sid)], path, query)
            case "GET", ["AvailablePhoneNumbers", country, "Local.json"]:
                return {"available_phone_numbers": [free_number(country, query.get("AreaCode", "510"))], "uri": path}
            case "GET", ["Usage", "Records.json"]:
                category, start = query.get("Category", "totalprice"), query.get("StartDate", "2026-11-01")
                row = usage(account_sid, category, start, query.get("EndDate", "2026-11-30"))
                return page("usage_records", [row], path, query)
            case "GET", ["Balance.json"]:
                return {"account_sid": account_sid, "balance": "42.10", "currency": "USD"}
        return unknown(path)

    def _message(self, method: str, name: str, form: dict[str, str]) -> Any:
        if method == "DELETE":
            del self.messages[name]
            return Response(status_code=204)
        found = self.messages[name]
        if method == "POST":
            found |= {"body": form.get("Body", found["body"]), "status": form.get("Status", found["status"])}
            return found
        shown = dict(found)
        found["status"] = {"queued": "sent", "sent": "delivered"}.get(found["status"], found["status"])
        return shown

    def _send(self, account_sid: str, form: dict[str, str]) -> Response:
        if form.get("To") in ERRORS:
            code, said = ERRORS[form["To"]]
            return problem(400, code, said)
        if not (form.get("From") or form.get("MessagingServiceSid")):
            return problem(400, 21603, "A 'From' phone number is required.")
        made = message(len(self.messages) + 100, form["To"], "queued", account=account_sid)
        made |= {
            "body": form.get("Body", ""),
            "from": form.get("From"),
            "num_media": "1" if "MediaUrl" in form else "0",
        }
        made |= {"messaging_service_sid": form.get("MessagingServiceSid")}
        if form.get("ScheduleType"):
            made |= {"status": "scheduled", "num_segments": "0"}
        self.messages[made["sid"]] = made
        return JSONResponse(made, 201)


def services(query: dict[str, str]) -> dict[str, Any]:
    """Return the page of Verify services, with page data under `meta` and absolute URLs."""
    found = page("services", [service()], "https://verify.twilio.com/v2/Services", query)
    names = {"url": "uri", "first_page_url": "first_page_uri", "next_page_url": "next_page_uri"}
    meta = {name: found[old] for name, old in {**names, "previous_page_url": "previous_page_uri"}.items()}
    return {
        "services": found["services"],
        "meta": {"key": "services", "page": found["page"], "page_size": found["page_size"], **meta},
    }


def unknown(path: str) -> JSONResponse:
    """Return a 404 error in Twilio's form."""
    return problem(404, 20404, f"The requested resource {path} was not found")


def _single(values: dict[str, list[str]]) -> dict[str, str]:
    return {name: found[0] for name, found in values.items()}


def problem(status: int, code: int, said: str) -> JSONResponse:
    """Return an error in Twilio's form."""
    return JSONResponse(
        {"code": code, "message": said, "more_info": f"https://www.twilio.com/docs/errors/{code}", "status": status},
        status,
    )


def environment(url: str) -> dict[str, str]:
    """Return the environment of a server that uses the mock API at `url`."""
    places = {f"TWILIO_{name}_BASE_URL": url for name in ("API", "LOOKUPS", "VERIFY")}
    return {**places, "TWILIO_USERNAME": ACCOUNT, "TWILIO_PASSWORD": TOKEN, "TWILIO_ALLOW_PRIVATE": "1"}


def application(model: Model) -> Starlette:
    """Return the mock API as an ASGI application."""
    return Starlette(routes=[Route("/{path:path}", model.answer, methods=["GET", "POST", "DELETE"])])


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
