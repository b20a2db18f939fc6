"""A healthy MCP server in plain Python; each broken server differs from it in one thing.

It speaks every revision on stdio and shares no code with the project, so that the two cannot share a mistake. Only the
standard library is used, and it starts in milliseconds.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

Json = dict[str, Any]

META = "io.modelcontextprotocol/"
VERSION = META + "protocolVersion"
KINDS = {
    "number": (int, float),
    "integer": (int,),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
    "boolean": (bool,),
}
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class RpcError(Exception):
    """JSON-RPC error response."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.body: Json = {"code": code, "message": message} | ({} if data is None else {"data": data})


def text(words: str, **more: Any) -> Json:
    """Return a tool result with one text block."""
    return {"content": [{"type": "text", "text": words}], **more}


def violations(schema: Json, value: Any, at: str = "the value") -> Iterator[str]:
    """Yield where a value violates a schema, in the keywords that these servers use."""
    kinds = KINDS.get(schema.get("type", "") if isinstance(schema.get("type"), str) else "", ())
    size = len(value) if isinstance(value, str | list) else 0
    unit = "Length" if isinstance(value, str) else "Items"
    if (
        (kinds and type(value) not in kinds)
        or ("enum" in schema and value not in schema["enum"])
        or ("pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value))
        or (isinstance(value, str | list) and not schema.get(f"min{unit}", 0) <= size <= schema.get(f"max{unit}", size))
    ):
        yield at
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for one in value:
            yield from violations(schema["items"], one, at)
    elif isinstance(value, dict):
        declared = schema.get("properties", {})
        yield from (key for key in schema.get("required", ()) if key not in value)
        yield from (key for key in value if key not in declared and schema.get("additionalProperties") is False)
        for key in declared.keys() & value.keys():
            yield from violations(declared[key], value[key], key)


class SampleServer:
    """The healthy server. `handshakes` and `moderns` are revisions from the command line."""

    rule: ClassVar[str] = ""  # the rule that must report the server; "" for healthy ones
    companions: ClassVar[frozenset[str]] = (
        frozenset()
    )  # further rules that must report it, if the fault always breaks them too
    follows: ClassVar[frozenset[str]] = frozenset()  # rules whose findings appear only without the finding of `rule`
    tolerated: ClassVar[bool] = False  # the finding has a lower level than its rule, and fails no gate
    evaluations: ClassVar[tuple[Json, ...]] = ()  # evaluation cases, without a model of an API
    with_cases: ClassVar[bool] = False  # validated with cases.json, against a stub of the API
    limits: ClassVar[Mapping[str, float]] = {}  # cost limits of the policy
    drift: ClassVar[tuple[str, ...] | None] = None  # differences from the adopted server
    haste: ClassVar[int] = 1  # factor by which the clock of its start is too fast
    own_process: ClassVar[bool] = False  # needs one: it prints, ends, sleeps, or reads its environment
    at_url: ClassVar[bool] = False  # it is served over HTTP
    credentials: ClassVar[str] = ""  # required Authorization header over HTTP
    amiss: ClassVar[frozenset[str]] = frozenset()  # faults of the HTTP handler
    listening = False  # True while a client has an event stream open over HTTP
    page = 1
    level = "debug"  # log level that the client requested

    def __init__(self, handshakes: list[str], moderns: list[str]) -> None:
        self.handshakes = handshakes
        self.moderns = moderns
        self.agreed = ""  # the handshake revision of the session
        self.out: Callable[[str], None] = lambda line: print(line, flush=True)

    # --- tools, resources and prompts ---

    def capabilities(self) -> Json:
        return {"tools": {}, "resources": {"subscribe": True}, "prompts": {}, "completions": {}, "logging": {}}

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
                "annotations": {"readOnlyHint": True},
            },
        ]

    def accept(self, name: str, arguments: Json) -> Json | None:
        """Return an error result for invalid arguments; None if they are valid."""
        schema = next(tool for tool in self.tools() if tool["name"] == name)["inputSchema"]
        wrong = next(violations(schema, arguments), "")
        return text(f"{wrong} is missing or does not match the schema", isError=True) if wrong else None

    def call(self, name: str, arguments: Json) -> Json:
        if name == "add":
            total = arguments["a"] + arguments["b"]
            return text(json.dumps({"sum": total}), structuredContent={"sum": total})
        return text("waxing")

    def resources(self) -> list[Json]:
        return [{"uri": "zoo://plan", "name": "plan", "mimeType": "text/plain"}]

    def read(self, uri: str) -> Json:
        return {"contents": [{"uri": uri, "text": "Lions to the left."}]}

    def read_resource(self, uri: Any, *, modern: bool) -> Json:
        if not isinstance(uri, str):
            raise RpcError(-32602, "uri must be a text")
        if uri not in [resource["uri"] for resource in self.resources()]:
            raise RpcError(-32602 if modern else -32002, "no such resource", {"uri": uri})
        return self.read(uri)

    def prompts(self) -> list[Json]:
        who = {"name": "who", "description": "Who comes along.", "required": True}
        return [{"name": "tour", "description": "Plan a walk through the zoo.", "arguments": [who]}]

    def fill(self, name: str, arguments: Json) -> Json:
        words = {"type": "text", "text": f"Plan a walk for {arguments['who']}."}
        return {"messages": [{"role": "user", "content": words}]}

    def get_prompt(self, name: str, arguments: Json) -> Json:
        self.check_prompt(name)
        if "who" not in arguments:
            raise RpcError(-32602, "who comes along?")
        return self.fill(name, arguments)

    def check_prompt(self, name: str) -> None:
        if name not in [prompt["name"] for prompt in self.prompts()]:
            raise RpcError(-32602, "no such prompt")

    def completed(self, params: Json) -> Json:
        if "completions" not in self.capabilities():
            raise self.unknown_method()
        if "argument" not in params:
            raise RpcError(-32602, "argument is missing")
        return self.complete(params["ref"])

    def complete(self, ref: Json) -> Json:
        self.check_prompt(ref.get("name", ""))
        return {"completion": {"values": ["Ada", "Grace"], "total": 2, "hasMore": False}}

    def set_level(self, level: str) -> Json:
        if level not in LEVELS:
            raise RpcError(-32602, "no such level")
        self.level = level
        return {}

    def subscribe(self, uri: str) -> Json:
        return {}

    def unsubscribe(self, uri: str) -> Json:
        return {}

    def repeated(self, params: Json) -> list[tuple[str, str]]:
        """Return (header, value) for the arguments of a call that headers repeat over HTTP."""
        schemas = [tool["inputSchema"] for tool in self.tools() if tool["name"] == params.get("name")]
        marked = [(key, one) for schema in schemas for key, one in schema.get("properties", {}).items()]
        given = params.get("arguments") or {}
        return [
            (f"Mcp-Param-{one['x-mcp-header']}", str(given[key]))
            for key, one in marked
            if "x-mcp-header" in one and given.get(key) is not None
        ]

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
        return self.accept(name, arguments) or self.call(name, arguments)

    def called(self, name: str, arguments: Json, token: Any) -> Json:
        self.progress(token)
        return self.call_tool(name, arguments)

    def progress(self, token: Any) -> None:
        if token is not None:
            for done in (1, 2):
                self.report(token, done)

    def report(self, token: Any, done: float) -> None:
        self.tell("notifications/progress", progressToken=token, progress=done, total=2)

    def tell(self, method: str, **params: Any) -> None:
        self.write({"jsonrpc": "2.0", "method": method, "params": params})

    def method(self, method: str, params: Json) -> Json:
        meta = params.get("_meta", {})
        answers: dict[str, Callable[[], Json]] = {
            "tools/list": lambda: self.list_tools(params.get("cursor")),
            "tools/call": lambda: self.called(params["name"], params.get("arguments", {}), meta.get("progressToken")),
            "resources/list": lambda: {"resources": self.resources()},
            "resources/templates/list": lambda: {"resourceTemplates": []},
            "resources/read": lambda: self.read_resource(params["uri"], modern=VERSION in meta),
            "prompts/list": lambda: {"prompts": self.prompts()},
            "prompts/get": lambda: self.get_prompt(params["name"], params.get("arguments", {})),
            "completion/complete": lambda: self.completed(params),
        }
        if method not in answers:
            raise self.unknown_method()
        return answers[method]()

    def unknown_method(self) -> RpcError:
        return RpcError(-32601, "no such method")

    def handshake(self, method: str, params: Json) -> Json:
        if method == "initialize":
            if "protocolVersion" not in params:
                raise RpcError(-32602, "protocolVersion is missing")
            result = self.initialize(params["protocolVersion"])
            self.agreed = str(result.get("protocolVersion"))
            return result
        answers: dict[str, Callable[[], Json]] = {
            "ping": self.ping,
            "logging/setLevel": lambda: self.set_level(params["level"]),
            "resources/subscribe": lambda: self.subscribe(params["uri"]),
            "resources/unsubscribe": lambda: self.unsubscribe(params["uri"]),
        }
        return answers[method]() if method in answers else self.method(method, params)

    def per_request(self, method: str, params: Json) -> Json:
        self.check_metadata(params["_meta"])
        result = self.discover() if method == "server/discover" else self.method(method, params)
        return self.envelope(method, result)

    def listen(self, about: Any, wanted: Any) -> Json | None:
        """Open a stream of notifications; return None, or a response if the stream is not opened."""
        if not isinstance(wanted, dict):
            raise RpcError(-32602, "notifications must be an object")
        self.acknowledge(about, {key: wanted[key] for key in wanted if key == "resourceSubscriptions"})
        return None

    def acknowledge(self, about: Any, honoured: Json) -> None:
        self.on_stream(about, "notifications/subscriptions/acknowledged", notifications=honoured)

    def on_stream(self, about: Any, method: str, **params: Any) -> None:
        self.tell(method, _meta={META + "subscriptionId": about}, **params)

    def check_metadata(self, meta: Json) -> None:
        if META + "clientCapabilities" not in meta:
            raise RpcError(-32602, "clientCapabilities is missing")
        if meta[VERSION] not in self.moderns:
            raise RpcError(
                -32022, "unsupported protocol version", {"supported": self.moderns, "requested": meta[VERSION]}
            )

    def envelope(self, method: str, result: Json) -> Json:
        cacheable = method.endswith("/list") or method in ("server/discover", "resources/read")
        named = {META + "serverInfo": {"name": "zoo", "version": "1"}}
        return {**result, "resultType": "complete", "_meta": named} | (
            {"ttlMs": 0, "cacheScope": "private"} if cacheable else {}
        )

    # --- the wire ---

    def respond(self, message: Json) -> Json | None:
        if "id" not in message or "result" in message or "error" in message:
            return None
        refusal = self.refusal(message)
        if refusal is not None:
            return {"jsonrpc": "2.0", "id": message["id"], "error": refusal.body}
        params = message.get("params") or {}
        modern = VERSION in params.get("_meta", {})
        try:
            if modern and message["method"] == "subscriptions/listen":
                self.check_metadata(params["_meta"])
                return self.listen(message["id"], params.get("notifications"))
            result = (self.per_request if modern else self.handshake)(message["method"], params)
        except RpcError as error:
            return {"jsonrpc": "2.0", "id": message["id"], "error": error.body}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def refusal(self, message: Json) -> RpcError | None:
        """Return the error of a malformed message."""
        if message.get("jsonrpc") != "2.0" or "method" not in message:
            return RpcError(-32600, "no JSON-RPC")
        return None if isinstance(message.get("params", {}), dict) else RpcError(-32602, "params must be an object")

    def batch(self, messages: list[Json]) -> list[Json] | Json | None:
        """Return the responses to a batch, which one revision permits."""
        if not messages or any(message.get("method") == "initialize" for message in messages):
            return {
                "jsonrpc": "2.0",
                "id": None,
                "error": {"code": -32600, "message": "empty, or initialize in a batch"},
            }
        return [answer for message in messages if (answer := self.respond(message)) is not None] or None

    def malformed(self) -> Json | None:
        return {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no JSON"}}

    def sent(self, message: Json) -> Json:
        """Return the message as sent."""
        return message

    def write(self, message: Json) -> None:
        self.out(json.dumps(self.sent(message)))

    def begin(self) -> None:
        """Run before the first line is read."""

    def end(self) -> None:
        """Run after the last line is read."""

    def run(self) -> None:
        self.begin()
        sys.stdin.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]  # it is a text file
        for line in sys.stdin:
            self.feed(line)
        self.end()

    def feed_all(self, lines: list[str]) -> None:
        """Process lines that were written at once."""
        for line in lines:
            self.feed(line)

    def feed(self, line: str) -> None:
        """Process one line, and write the response."""
        try:
            message = json.loads(line)
        except ValueError:
            answer: Any = self.malformed()
        else:
            answer = self.batch(message) if isinstance(message, list) else self.respond(message)
        if isinstance(answer, list):
            self.out(json.dumps([self.sent(one) for one in answer]))
        elif answer is not None:
            self.write(answer)
