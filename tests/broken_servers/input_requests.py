"""Servers of the per-request lifecycle whose results ask the client for input."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from tests.broken_servers.healthy import META, Json, RpcError, SampleServer, text
from tests.broken_servers.protocol import HealthyYoungster

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
    """Refuses clients without elicitation, as the specification requires."""

    code = -32021
    needed: ClassVar[Any] = {"elicitation": {"form": {}}}

    def must_ask(self, params: Json) -> bool:
        if "elicitation" not in params["_meta"][META + "clientCapabilities"]:
            raise RpcError(self.code, "this tool asks a person", {"requiredCapabilities": self.needed})
        return super().must_ask(params)


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


class Demanding(HealthyDemanding):
    """Lists the missing capabilities of a client in a list, not in an object."""

    rule = "modern.error-data"
    needed: ClassVar[Any] = ["elicitation"]


class Oblivious(SampleServer):
    """Does not repeat the unsupported revision of a request."""

    rule = "modern.error-data"

    def check_metadata(self, meta: Json) -> None:
        try:
            super().check_metadata(meta)
        except RpcError as error:
            error.body.get("data", {}).pop("requested", None)
            raise


class Misjudging(HealthyYoungster):
    """Reports an unknown prompt as an unsupported revision, of a revision that it supports."""

    rule = "modern.error-codes"
    follows = frozenset({"features.unknown-prompt"})

    def get_prompt(self, name: str, arguments: Json) -> Json:
        if name != "tour":
            raise RpcError(-32022, "no such prompt", {"supported": self.moderns, "requested": self.moderns[-1]})
        return super().get_prompt(name, arguments)


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


class Unprefixed(SampleServer):
    """Declares an extension whose name has no prefix."""

    rule = "modern.extension-names"

    def discover(self) -> Json:
        result = super().discover()
        return {**result, "capabilities": {**result["capabilities"], "extensions": {"feeding": {}}}}


class HealthyExtended(SampleServer):
    """Declares extensions, experimental features and an unknown capability."""

    def discover(self) -> Json:
        result = super().discover()
        more = {"extensions": {"zoo.example/feeding": {}}, "experimental": {"zoo": {"a": 1}}, "zoo": True}
        return {**result, "capabilities": {**result["capabilities"], **more}}
