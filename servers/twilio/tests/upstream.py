"""A model of Twilio's three APIs on loopback: messages, calls, numbers, usage, lookups and codes, as their reference describes them.

`python upstream.py` prints one line of JSON with the environment that the server needs, and serves until its input ends.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

ACCOUNT, TOKEN = "AC" + "a" * 32, "token-of-the-tests"
SUBACCOUNT = "AC" + "b" * 32
SERVICE = "VA" + "c" * 32
CODE = "123456"
ERRORS = {
    "+15005550001": (21211, "The 'To' number +15005550001 is not a valid phone number."),
    "+15005550002": (21610, "Attempt to send to unsubscribed recipient"),
}


def sid(lead: str, number: int) -> str:
    """Return the sid of a thing by its number."""
    return f"{lead}{number:032x}"


def message(number: int, to: str, status: str, code: int | None = None) -> dict[str, Any]:
    """Return a message as the API shows it."""
    return {
        "sid": sid("SM", number),
        "account_sid": ACCOUNT,
        "to": to,
        "from": "+15017122661",
        "body": "Hello",
        "status": status,
        "direction": "outbound-api",
        "error_code": code,
        "error_message": None,
        "num_segments": "1",
        "price": None,
        "price_unit": "USD",
        "date_created": "Sun, 22 Nov 2026 10:00:00 +0000",
        "date_sent": None,
    }


@dataclass
class Model:
    """What the account has; each look at a queued message brings it one state further."""

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
    forms: list[tuple[str, str, dict[str, list[str]]]] = field(default_factory=list)

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        form = parse_qs((await request.body()).decode(), keep_blank_values=True)
        self.forms.append((request.method, request.url.path, form))
        wanted = base64.b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {wanted}":
            return problem(401, 20003, "Authenticate")
        found = self._answer(
            request.method, request.url.path.strip("/").split("/"), {k: v[0] for k, v in form.items()}, request
        )
        return found if isinstance(found, Response) else JSONResponse(found)

    def _answer(self, method: str, parts: list[str], form: dict[str, str], request: Request) -> Any:
        match method, parts:
            case "GET", ["2010-04-01", "Accounts.json"]:
                return {
                    "accounts": [
                        {"sid": ACCOUNT, "friendly_name": "Shop", "status": "active"},
                        {"sid": SUBACCOUNT, "friendly_name": "Branch", "status": "active"},
                    ],
                    "next_page_uri": None,
                }
            case _, ["2010-04-01", "Accounts", account, *_] if account not in (ACCOUNT, SUBACCOUNT):
                return problem(404, 20404, "The requested resource was not found")
            case "GET", ["2010-04-01", "Accounts", account, "Messages.json"]:
                own = [one for one in self.messages.values() if one["account_sid"] == account]
                return {
                    "messages": own,
                    "next_page_uri": None,
                    "page_size": int(request.query_params.get("PageSize", 50)),
                }
            case "POST", ["2010-04-01", "Accounts", account, "Messages.json"]:
                return self._send(account, form)
            case "GET", ["2010-04-01", "Accounts", _, "Messages", name]:
                return self._look(name.removesuffix(".json"))
            case "DELETE", ["2010-04-01", "Accounts", _, "Messages", name]:
                found = self.messages.pop(name.removesuffix(".json"), None)
                return (
                    Response(status_code=204) if found else problem(404, 20404, "The requested resource was not found")
                )
            case "POST", ["2010-04-01", "Accounts", _, "Calls.json"]:
                return JSONResponse(
                    {
                        "sid": sid("CA", 1),
                        "to": form["To"],
                        "from": form["From"],
                        "status": "queued",
                        "direction": "outbound-api",
                    },
                    201,
                )
            case "GET", ["2010-04-01", "Accounts", _, "Balance.json"]:
                return {"account_sid": ACCOUNT, "balance": "42.10", "currency": "USD"}
            case "GET", ["2010-04-01", "Accounts", _, "Usage", "Records.json"]:
                return {
                    "usage_records": [
                        {
                            "category": "totalprice",
                            "description": "Total Price",
                            "price": "12.30",
                            "price_unit": "usd",
                            "count": "",
                            "usage": "12.30",
                            "usage_unit": "usd",
                            "start_date": "2026-11-01",
                            "end_date": "2026-11-30",
                        }
                    ],
                    "next_page_uri": None,
                }
            case "GET", ["v2", "PhoneNumbers", number]:
                kind = (
                    {"type": "mobile", "carrier_name": "A carrier"}
                    if "line_type" in request.query_params.get("Fields", "")
                    else None
                )
                return {
                    "phone_number": number,
                    "valid": number != "+1555",
                    "country_code": "US",
                    "line_type_intelligence": kind,
                }
            case "GET", ["v2", "Services"]:
                return {
                    "services": [{"sid": SERVICE, "friendly_name": "Shop", "code_length": 6}],
                    "meta": {"next_page_url": None},
                }
            case "POST", ["v2", "Services", _, "Verifications"]:
                return JSONResponse(
                    {
                        "sid": sid("VE", 1),
                        "to": form["To"],
                        "channel": form["Channel"],
                        "status": "pending",
                        "valid": False,
                    },
                    201,
                )
            case "POST", ["v2", "Services", _, "VerificationCheck"]:
                good = form["Code"] == CODE
                return JSONResponse(
                    {
                        "sid": sid("VE", 1),
                        "to": form["To"],
                        "channel": "sms",
                        "status": "approved" if good else "pending",
                        "valid": good,
                    },
                    201,
                )
        return problem(404, 20404, "The requested resource was not found")

    def _send(self, account: str, form: dict[str, str]) -> Response:
        if form.get("To") in ERRORS:
            code, said = ERRORS[form["To"]]
            return problem(400, code, said)
        if not (form.get("From") or form.get("MessagingServiceSid")):
            return problem(400, 21603, "A 'From' phone number is required.")
        made = {
            **message(len(self.messages) + 100, form["To"], "queued"),
            "account_sid": account,
            "body": form.get("Body", ""),
        }
        self.messages[made["sid"]] = made
        return JSONResponse(made, 201)

    def _look(self, name: str) -> Any:
        found = self.messages.get(name)
        if found is None:
            return problem(404, 20404, "The requested resource was not found")
        shown = dict(found)
        found["status"] = {"queued": "sent", "sent": "delivered"}.get(found["status"], found["status"])
        return shown


def problem(status: int, code: int, said: str) -> JSONResponse:
    """Return a refusal in Twilio's form."""
    return JSONResponse(
        {"code": code, "message": said, "more_info": f"https://www.twilio.com/docs/errors/{code}", "status": status},
        status,
    )


def environment(url: str) -> dict[str, str]:
    """Return what a server needs that asks the model at this address."""
    places = {f"TWILIO_{name}_BASE_URL": url for name in ("API", "LOOKUPS", "VERIFY")}
    return {**places, "TWILIO_USERNAME": ACCOUNT, "TWILIO_PASSWORD": TOKEN, "TWILIO_ALLOW_PRIVATE": "1"}


def application(model: Model) -> Starlette:
    """Return the model as an application."""
    return Starlette(routes=[Route("/{path:path}", model.answer, methods=["GET", "POST", "DELETE"])])


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
