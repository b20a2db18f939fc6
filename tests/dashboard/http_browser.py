"""Browser for tests, over real HTTP."""

from __future__ import annotations

import http.client
import json
import re
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import urlencode

from tests.timeouts import TIMEOUT

PEOPLE = {"Ada": "ada-token-0123456789", "Grace": "grace-token-0123456789"}


@dataclass
class Answer:
    """Response to a request."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text)
        return found


@dataclass
class Browser:
    """Browser without JavaScript: it keeps cookies, sends Origin with a POST, and fills in forms.

    `source` is its loopback address; `headers` are sent with each request, as a proxy would add them.
    """

    address: str
    cookies: dict[str, str] = field(default_factory=dict)
    source: str = "127.0.0.1"
    headers: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, path: str, body: str = "", **headers: str) -> Answer:
        connection = http.client.HTTPConnection(
            self.address.removeprefix("http://"), timeout=TIMEOUT, source_address=(self.source, 0)
        )
        usual = {"Accept": "text/html", "Cookie": "; ".join(f"{k}={v}" for k, v in self.cookies.items())}
        if method == "POST":
            usual |= {"Origin": self.address, "Content-Type": "application/x-www-form-urlencoded"}
        sent = {name.replace("_", "-"): value for name, value in (usual | self.headers | headers).items() if value}
        connection.request(method, path, body=body.encode(), headers=sent)
        answer = connection.getresponse()
        for cookie in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        found = Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode())
        connection.close()
        return found

    def get(self, path: str, **query: str) -> Answer:
        return self.send("GET", path + (f"?{urlencode(query)}" if query else ""))

    def post(self, path: str, fields: dict[str, str], **headers: str) -> Answer:
        return self.send("POST", path, urlencode(fields), **headers)

    def login(self, name: str) -> Browser:
        assert self.post("/login/", {"token": PEOPLE[name], "next": "/board/"}).headers["location"] == "/board/"
        return self

    def confirmation(self, server: str, action: str, **values: str) -> dict[str, str]:
        """Return the fields of the confirmation form of an action."""
        page = self.get(f"/servers/{server}/actions/{action}/", **values).text
        return confirming(page)

    def act(self, server: str, action: str, **values: str) -> Answer:
        return self.post(f"/servers/{server}/actions/{action}/", self.confirmation(server, action, **values))


def confirming(page: str) -> dict[str, str]:
    form = next((form for form in page.split("<form") if 'name="ticket' in form), "")
    found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form)
    assert found, page
    return {name: unescape(value) for name, value in found}
