"""A healthy MCP server in plain Python, from which the animals of the zoo differ in one thing each.

It speaks every revision on stdio and shares no code with the project, so that the two cannot share a mistake. Only the
standard library is used, and it starts in milliseconds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

Json = dict[str, Any]

META = "io.modelcontextprotocol/"
VERSION = META + "protocolVersion"


class RpcError(Exception):
    """A JSON-RPC error answer."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.body: Json = {"code": code, "message": message} | ({} if data is None else {"data": data})


def text(words: str, **more: Any) -> Json:
    """A tool result with one text block."""
    return {"content": [{"type": "text", "text": words}], **more}


class Animal:
    """The healthy server. `handshakes` and `moderns` come from the command line, for no revision is named here."""

    rule: ClassVar[str] = ""  # the rule that must catch it; "" for healthy ones
    companions: ClassVar[frozenset[str]] = (
        frozenset()
    )  # rules that must speak as well, where a fault cannot be had alone
    with_cases: ClassVar[bool] = False  # judged with cases.json, against the stub upstream
    limits: ClassVar[Mapping[str, float]] = {}  # what policy allows it to cost
    haste: ClassVar[int] = 1  # its starts are measured by a clock that goes so many times too fast
    page = 1

    def __init__(self, handshakes: list[str], moderns: list[str]) -> None:
        self.handshakes = handshakes
        self.moderns = moderns

    # --- what it offers ---

    def capabilities(self) -> Json:
        return {"tools": {}, "resources": {}, "prompts": {}}

    def tools(self) -> list[Json]:
        number = {"type": "number", "description": "One summand.", "examples": [2]}
        return [
            {
                "name": "add",
                "description": "Return the sum of two numbers, exact for integers of any size.",
                "inputSchema": {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]},
                "outputSchema": {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]},
                "annotations": {"readOnlyHint": True},
            },
            {
                "name": "moon_phase",
                "description": "Tell whether the moon is waxing or waning tonight, as seen from the zoo.",
                "inputSchema": {"type": "object"},
            },
        ]

    def call(self, name: str, arguments: Json) -> Json:
        if name == "add":
            total = arguments["a"] + arguments["b"]
            return text(json.dumps({"sum": total}), structuredContent={"sum": total})
        return text("waxing")

    def resources(self) -> list[Json]:
        return [{"uri": "zoo://plan", "name": "plan", "mimeType": "text/plain"}]

    def read(self, uri: str) -> Json:
        return {"contents": [{"uri": uri, "text": "Lions to the left."}]}

    def prompts(self) -> list[Json]:
        return [{"name": "tour", "description": "Plan a walk through the zoo."}]

    # --- the protocol ---

    def initialize(self, requested: str) -> Json:
        version = requested if requested in self.handshakes else self.handshakes[-1]
        return {
            "protocolVersion": version,
            "capabilities": self.capabilities(),
            "serverInfo": {"name": "zoo", "version": "1"},
        }

    def discover(self) -> Json:
        return {"supportedVersions": self.moderns + self.handshakes, "capabilities": self.capabilities()}

    def ping(self) -> Json:
        return {}

    def list_tools(self, cursor: str | None) -> Json:
        start = int(cursor) if cursor and cursor.isdecimal() else 0
        if cursor is not None and not cursor.isdecimal():
            raise RpcError(-32602, "no such cursor")
        rest = {"nextCursor": str(start + self.page)} if start + self.page < len(self.tools()) else {}
        return {"tools": self.tools()[start : start + self.page], **rest}

    def call_tool(self, name: str, arguments: Json) -> Json:
        if name not in [tool["name"] for tool in self.tools()]:
            raise RpcError(-32602, "no such tool")
        return self.call(name, arguments)

    def method(self, method: str, params: Json) -> Json:
        answers: dict[str, Callable[[], Json]] = {
            "tools/list": lambda: self.list_tools(params.get("cursor")),
            "tools/call": lambda: self.call_tool(params["name"], params.get("arguments", {})),
            "resources/list": lambda: {"resources": self.resources()},
            "resources/templates/list": lambda: {"resourceTemplates": []},
            "resources/read": lambda: self.read(params["uri"]),
            "prompts/list": lambda: {"prompts": self.prompts()},
        }
        if method not in answers:
            raise self.unknown_method()
        return answers[method]()

    def unknown_method(self) -> RpcError:
        return RpcError(-32601, "no such method")

    def handshake(self, method: str, params: Json) -> Json:
        if method == "initialize":
            return self.initialize(params["protocolVersion"])
        return self.ping() if method == "ping" else self.method(method, params)

    def per_request(self, method: str, params: Json) -> Json:
        self.check_metadata(params["_meta"])
        result = self.discover() if method == "server/discover" else self.method(method, params)
        return self.envelope(method, result)

    def check_metadata(self, meta: Json) -> None:
        if META + "clientCapabilities" not in meta:
            raise RpcError(-32602, "clientCapabilities is missing")
        if meta[VERSION] not in self.moderns:
            raise RpcError(
                -32022, "unsupported protocol version", {"supported": self.moderns, "requested": meta[VERSION]}
            )

    def envelope(self, method: str, result: Json) -> Json:
        cacheable = method.endswith("/list") or method in ("server/discover", "resources/read")
        return {**result, "resultType": "complete"} | ({"ttlMs": 0, "cacheScope": "private"} if cacheable else {})

    # --- the wire ---

    def respond(self, message: Json) -> Json | None:
        if "id" not in message:
            return None
        params = message.get("params") or {}
        modern = VERSION in params.get("_meta", {})
        try:
            result = (self.per_request if modern else self.handshake)(message["method"], params)
        except RpcError as error:
            return {"jsonrpc": "2.0", "id": message["id"], "error": error.body}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def malformed(self) -> Json | None:
        return {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no JSON"}}

    def sent(self, message: Json) -> Json:
        """The message as it goes out."""
        return message

    def write(self, message: Json) -> None:
        print(json.dumps(self.sent(message)), flush=True)

    def begin(self) -> None:
        """What happens before the first line is read."""

    def end(self) -> None:
        """What happens after the last line was read."""

    def run(self) -> None:
        self.begin()
        for line in sys.stdin:
            try:
                message = json.loads(line)
            except ValueError:
                answer = self.malformed()
            else:
                answer = self.respond(message)
            if answer is not None:
                self.write(answer)
        self.end()
