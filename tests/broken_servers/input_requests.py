"""Servers of the per-request lifecycle whose results ask the client for input."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from tests.broken_servers.healthy import META, Json, RpcError, SampleServer, text

FORM = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
STATE = '{"keeper": false}'


class Asking(SampleServer):
    """Base of the servers below. moon_phase first asks for input if the client supports elicitation."""

    state = STATE

    def per_request(self, method: str, params: Json) -> Json:
        result = super().per_request(method, params)
        if method != "tools/call" or params["name"] != "moon_phase":
            return result
        if self.must_ask(params):
            asked = {"mode": "form", "message": "Look at the moon?", "requestedSchema": FORM}
            question = {"method": "elicitation/create", "params": asked}
            asked = {"inputRequests": {"q": question}, "requestState": self.state}
            return {**result, "resultType": "input_required", **asked}
        return {**result, **self.answered(params.get("requestState", self.state))}

    def must_ask(self, params: Json) -> bool:
        return "elicitation" in params["_meta"][META + "clientCapabilities"] and "inputResponses" not in params

    def answered(self, state: str) -> Json:
        if state != self.state:
            raise RpcError(-32602, "requestState is not what was sent")
        return text("waxing")


class HealthyAsker(Asking):
    """Asks once, and only clients with elicitation."""


class HealthyHalver(Asking):
    """Keeps half of an emoji in its state."""

    own_process = True
    state = "\ud83e"


class HealthyDemanding(Asking):
    """Refuses clients that it cannot ask."""

    code = -32021
    data: ClassVar[Json] = {"requiredCapabilities": {"elicitation": {}}}

    def per_request(self, method: str, params: Json) -> Json:
        told = params["_meta"].get(META + "clientCapabilities")
        if method == "tools/call" and params["name"] == "moon_phase" and told == {}:
            raise RpcError(self.code, "a person must be asked", self.data)
        return super().per_request(method, params)


class Unspecific(HealthyDemanding):
    """Does not report the missing capability."""

    rule = "modern.missing-capability"
    data: ClassVar[Json] = {}


class Overgeneral(HealthyDemanding):
    """Reports a missing capability as invalid params."""

    rule = "modern.missing-capability"
    code = -32602


class Insatiable(Asking):
    """Asks again after any answer."""

    rule = "modern.input-ends"

    def must_ask(self, params: Json) -> bool:
        return "elicitation" in params["_meta"][META + "clientCapabilities"]


class Believer(Asking):
    """Trusts the requestState of a retry."""

    rule = "modern.request-state"

    def answered(self, state: str) -> Json:
        return text("waxing, and keepers know since when" if json.loads(state)["keeper"] else "waxing")


class Presumptuous(Asking):
    """Asks for input without a declared capability, once an earlier request declared it."""

    rule = "modern.input-required"
    able = False

    def must_ask(self, params: Json) -> bool:
        self.able = self.able or "elicitation" in params["_meta"][META + "clientCapabilities"]
        return self.able and "inputResponses" not in params


class Formal(SampleServer):
    """Serves only clients that sent server/discover before."""

    rule = "modern.stateless"
    known: tuple[Any, ...] = ()

    def per_request(self, method: str, params: Json) -> Json:
        client = params["_meta"].get(META + "clientInfo")
        if method == "server/discover":
            self.known = (*self.known, client)
        elif client not in self.known:
            raise RpcError(-32600, "ask server/discover first")
        return super().per_request(method, params)
