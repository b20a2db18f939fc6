"""Servers that ask for consent before a change, and servers with evaluation cases."""

from __future__ import annotations

import json
import sys
from typing import Any, ClassVar

from tests.broken_servers.healthy import Json, SampleServer, text
from tests.broken_servers.tool_calls import HealthyMessenger

_FORM = {"type": "object", "properties": {"agreed": {"type": "boolean", "default": False}}, "required": ["agreed"]}


class HealthyCareful(HealthyMessenger):
    """Asks a person before it renames an animal, and does nothing without consent."""

    can_ask = False
    questions = 0

    def handshake(self, method: str, params: Json) -> Json:
        if method == "initialize":
            self.can_ask = "elicitation" in params.get("capabilities", {})
        return super().handshake(method, params)

    def call(self, name: str, arguments: Json) -> Json:
        return super().call(name, arguments) if name == "get_animal" else self.renamed(name, arguments)

    def renamed(self, name: str, arguments: Json) -> Json:
        if not self.agrees():
            return text("A person has to agree to another name, and nobody did.", isError=True)
        return super().call(name, arguments)

    def agrees(self) -> bool:
        if not self.can_ask:
            return False
        self.questions += 1
        asked = {"message": "Give the animal another name?", "requestedSchema": _FORM}
        request = {"jsonrpc": "2.0", "id": f"ask-{self.questions}", "method": "elicitation/create", "params": asked}
        print(json.dumps(request), flush=True)
        result = json.loads(sys.stdin.readline())["result"]
        return bool(result["action"] == "accept" and result["content"]["agreed"])


class Overhasty(HealthyCareful):
    """Asks after it made the change."""

    rule = "tool-calls.consent"

    def renamed(self, name: str, arguments: Json) -> Json:
        done = HealthyMessenger.call(self, name, arguments)
        return done if self.agrees() else text("Nobody agreed.", isError=True)


class HealthyQuizzed(SampleServer):
    """Answers as its evaluation cases expect."""

    own_process = True
    evaluations: ClassVar[tuple[Json, ...]] = (
        {
            "name": "two-and-three",
            "question": "What is two and three?",
            "right": [[{"tool": "add", "arguments": {"a": 2, "b": 3}, "says": ['{"sum": 5}']}]],
        },
    )


class Misinformed(HealthyQuizzed):
    """Returns sums that are too large by one."""

    rule = "tool-calls.evaluation-cases"

    def call(self, name: str, arguments: Json) -> Json:
        more: dict[str, Any] = {**arguments, "a": arguments["a"] + 1} if name == "add" else arguments
        return super().call(name, more)
