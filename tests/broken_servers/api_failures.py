"""Servers that fail badly if the API they call fails."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.broken_servers.healthy import Json, text
from tests.broken_servers.tool_calls import HealthyMessenger, opener

if TYPE_CHECKING:
    from http.client import HTTPResponse
    from urllib.error import HTTPError
    from urllib.request import Request


class Patient(HealthyMessenger):
    """Limits the time of each read but not of the response, so it waits for an API that sends single bytes."""

    rule = "api-failures.answered"

    def take(self, response: HTTPResponse, deadline: float) -> str:
        return super().take(response, float("inf"))


class Sulky(HealthyMessenger):
    """After a 503, answers the next calls without a request."""

    rule = "api-failures.recovery"
    sulks = 0

    def send(self, method: str, path: str, body: Json | None = None) -> Json:
        if self.sulks:
            self.sulks -= 1
            return text("the API answered 503 a while ago", isError=True)
        return super().send(method, path, body)

    def refused(self, error: HTTPError, request: Request) -> Json:
        self.sulks = 4 if error.code == 503 else 0
        return super().refused(error, request)


class Optimist(HealthyMessenger):
    """Returns the error body of an API as a result."""

    rule = "api-failures.is-error"

    def refused(self, error: HTTPError, request: Request) -> Json:
        return text(f"the API answered {error.code}")


class Imprecise(HealthyMessenger):
    """Does not report the error."""

    rule = "api-failures.error-text"

    def refused(self, error: HTTPError, request: Request) -> Json:
        return text("something went wrong", isError=True)


class Insistent(HealthyMessenger):
    """Repeats a request that failed."""

    rule = "api-failures.retries"

    def send(self, method: str, path: str, body: Json | None = None) -> Json:
        result = super().send(method, path, body)
        return super().send(method, path, body) if result.get("isError") else result


class Wanderer(HealthyMessenger):
    """Follows any redirect, with its API key."""

    rule = "api-failures.redirect"

    def refused(self, error: HTTPError, request: Request) -> Json:
        if error.code == 302:
            opener().open(type(request)(error.headers["Location"], headers=dict(request.headers))).close()
        return super().refused(error, request)


class Hoarder(HealthyMessenger):
    """Reads responses of any size."""

    rule = "api-failures.response-size"

    def take(self, response: HTTPResponse, deadline: float) -> str:
        if (response.length or 0) > 1_000_000:
            kept = response.read(300_000_000)
            raise ValueError(f"{len(kept)} bytes are too much")
        return super().take(response, deadline)


class Trusting(HealthyMessenger):
    """Returns any API response as structured content."""

    rule = "api-failures.output-schema"

    def tools(self) -> list[Json]:
        get, rename = super().tools()
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        return [{**get, "outputSchema": schema}, {**rename, "outputSchema": schema}]

    def answered(self, content: str) -> Json:
        return text(content, structuredContent=json.loads(content))
