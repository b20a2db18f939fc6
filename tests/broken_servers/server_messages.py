"""Servers that send unrequested messages, or respond to messages without responses."""

from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple

from tests.broken_servers.healthy import META, VERSION, Json, RpcError, SampleServer, text
from tests.broken_servers.protocol import HealthyYoungster


class Unasked(NamedTuple):
    """Message sent with each tool call, or with each tool list in the per-request lifecycle."""

    rule: str
    method: str
    params: Any
    modern: bool = False
    id: str | int | None = None
    without: str = ""  # a capability that it does not declare


NEW_TOOLS = "notifications/tools/list_changed"
LOG = "notifications/message"
ASK: Json = {"message": "Who are you?", "requestedSchema": {"type": "object", "properties": {}}}

# One message each; the name describes it.
MESSAGES: dict[str, Unasked] = {
    "Beggar": Unasked("server-messages.undeclared-requests", "roots/list", {}, id="zoo"),
    "Interviewer": Unasked("server-messages.undeclared-requests", "elicitation/create", ASK, id="zoo"),
    "Daydreamer": Unasked(
        "server-messages.undeclared-requests", "sampling/createMessage", {"messages": [], "maxTokens": 10}, id="zoo"
    ),
    "Tooled": Unasked(
        "server-messages.undeclared-requests",
        "sampling/createMessage",
        {"messages": [], "maxTokens": 10, "tools": [{"name": "feed", "inputSchema": {"type": "object"}}]},
        id="zoo",
    ),
    "Caller": Unasked("server-messages.modern-requests", "ping", {}, modern=True, id="zoo"),
    "Listless": Unasked("server-messages.json-rpc", NEW_TOOLS, ["emergency"]),
    "Numbered": Unasked("server-messages.json-rpc", NEW_TOOLS, {}, id=7),
    "Neologist": Unasked("server-messages.known-notifications", "notifications/zoo/fed", {"animal": "Leo"}),
    "Undeclared": Unasked("server-messages.log-declared", LOG, {"level": "info", "data": "fed"}, without="logging"),
    "Tattletale": Unasked(
        "security.credentials-in-texts", LOG, {"level": "emergency", "data": {"db": "postgresql://zoo:Kx9vTq27@db/zoo"}}
    ),
    "Trivial": Unasked("server-messages.schema", LOG, {"level": "trivial", "data": "fed"}),
    "Chatty": Unasked("server-messages.log-level", LOG, {"level": "debug", "data": "fed"}),
    "Logger": Unasked("server-messages.modern-logs", LOG, {"level": "emergency", "data": "fed"}, modern=True),
    "Changeable": Unasked("server-messages.changes-declared", "notifications/prompts/list_changed", {}),
    "Newsreader": Unasked(
        "server-messages.modern-changes", "notifications/resources/updated", {"uri": "zoo://plan"}, modern=True
    ),
    "Broadcaster": Unasked(
        "server-messages.resource-updates", "notifications/resources/updated", {"uri": "zoo://secret-plan"}
    ),
    "Leftover": Unasked("server-messages.resource-updates", "notifications/resources/updated", {"uri": "zoo://plan"}),
    "Canceller": Unasked("server-messages.cancelled", "notifications/cancelled", {"requestId": 1}, modern=True),
}


class Talkative(SampleServer):
    """Base of the servers in the table: sends an unrequested message."""

    unasked: Unasked
    spoken = 0

    def handshake(self, method: str, params: Json) -> Json:
        if method == "tools/call" and not self.unasked.modern:
            self.speak()
        return super().handshake(method, params)

    def per_request(self, method: str, params: Json) -> Json:
        if method == "tools/list" and self.unasked.modern:
            self.speak()
        return super().per_request(method, params)

    def speak(self) -> None:
        self.spoken += 1
        about = {} if self.unasked.id is None else {"id": f"{self.unasked.id}-{self.spoken}"}
        self.write({"jsonrpc": "2.0", **about, "method": self.unasked.method, "params": self.unasked.params})

    def capabilities(self) -> Json:
        more = {"tools": {"listChanged": True}} if self.unasked.method == NEW_TOOLS else {}
        return {key: value for key, value in {**super().capabilities(), **more}.items() if key != self.unasked.without}


def speaking() -> dict[str, type[SampleServer]]:
    """Return the servers of the table."""
    return {name: type(name, (Talkative,), {"rule": one.rule, "unasked": one}) for name, one in MESSAGES.items()}


class Hasty(SampleServer):
    """Sends a request before the client is ready."""

    rule = "server-messages.before-initialized"
    companions = frozenset({"server-messages.undeclared-requests"})

    def initialize(self, requested: str) -> Json:
        self.write({"jsonrpc": "2.0", "id": "zoo-1", "method": "roots/list"})
        return super().initialize(requested)


class Pinger(SampleServer):
    """Pings the client before each call, always with the same ID."""

    rule = "server-messages.request-ids"

    def called(self, name: str, arguments: Json, token: Any) -> Json:
        if self.agreed:
            self.write({"jsonrpc": "2.0", "id": "alive", "method": "ping"})
        return super().called(name, arguments, token)


class Nullity(SampleServer):
    """Sends a request with the ID null."""

    rule = "server-messages.json-rpc"

    def initialize(self, requested: str) -> Json:
        self.write({"jsonrpc": "2.0", "id": None, "method": "ping"})
        return super().initialize(requested)


class WrongToken(SampleServer):
    """Reports progress with a token of its own."""

    rule = "server-messages.progress-token"

    def report(self, token: Any, done: float) -> None:
        super().report(f"zoo-{token}", done)


class Stringer(SampleServer):
    """Reports progress with the text of a number as token."""

    rule = "server-messages.progress-token"

    def report(self, token: Any, done: float) -> None:
        super().report(str(token), done)


class Recorder(SampleServer):
    """Logs for every request after one that asked for logs."""

    rule = "server-messages.modern-logs"
    logs = False

    def per_request(self, method: str, params: Json) -> Json:
        self.logs = self.logs or META + "logLevel" in params["_meta"]
        if self.logs:
            self.tell("notifications/message", level="info", data="fed")
        return super().per_request(method, params)


class HealthyDiarist(SampleServer):
    """Logs each call at the level that the request asks for, before the result."""

    level_sent = ""

    def per_request(self, method: str, params: Json) -> Json:
        asked = params["_meta"].get(META + "logLevel")
        if asked and method == "tools/call":
            self.tell("notifications/message", level=self.level_sent or asked, data="fed")
        return super().per_request(method, params)


class Overlogger(HealthyDiarist):
    """Logs calls below the level that the request asks for."""

    rule = "server-messages.modern-logs"
    tolerated = True
    level_sent = "info"


class Afterthinker(SampleServer):
    """Logs calls after their results."""

    rule = "server-messages.modern-logs"

    def feed(self, line: str) -> None:
        super().feed(line)
        if '"tools/call"' in line and META + "logLevel" in line:
            self.tell("notifications/message", level="emergency", data="fed")


class Straggler(SampleServer):
    """Reports progress after the result."""

    rule = "server-messages.progress-token"
    owed: Any = None

    def progress(self, token: Any) -> None:
        self.owed = token

    def feed(self, line: str) -> None:
        super().feed(line)
        if self.owed is not None:
            self.report(self.owed, 2)
            self.owed = None


class HealthyStopper(SampleServer):
    """Looks at the moon in a thread, and sends nothing for a canceled look."""

    own_process = True

    def begin(self) -> None:
        self.canceled: list[Any] = []
        self.running: list[threading.Thread] = []

    def end(self) -> None:
        for thread in self.running:
            thread.join()

    def respond(self, message: Json) -> Json | None:
        params = message.get("params") if isinstance(message.get("params"), dict) else None
        if message.get("method") == "notifications/cancelled":
            self.canceled.append((params or {}).get("requestId"))
        if message.get("method") != "tools/call" or (params or {}).get("name") != "moon_phase":
            return super().respond(message)
        self.running.append(threading.Thread(target=self.look, args=(message,)))
        self.running[-1].start()
        return None

    def look(self, message: Json) -> None:
        time.sleep(0.5)
        answer = super().respond(message)
        if answer is not None and not self.is_canceled(message["id"]):
            self.write(answer)

    def is_canceled(self, about: Any) -> bool:
        return about in self.canceled

    def progress(self, token: Any) -> None:
        """Report nothing, because two threads would write at the same time."""


class Unstoppable(HealthyStopper):
    """Answers canceled calls in the per-request lifecycle."""

    rule = "server-messages.after-cancellation"

    def is_canceled(self, about: Any) -> bool:
        return False


class Backslider(SampleServer):
    """Its progress goes back."""

    rule = "server-messages.progress-increases"

    def report(self, token: Any, done: float) -> None:
        super().report(token, 3 - done)


class Stagnant(SampleServer):
    """Its progress stays where it is."""

    rule = "server-messages.progress-increases"

    def report(self, token: Any, done: float) -> None:
        super().report(token, 1)


# --- messages with and without responses ---


class Polite(SampleServer):
    """Responds to unknown notifications."""

    rule = "legacy.notifications"

    def respond(self, message: Json) -> Json | None:
        if message.get("method", "").startswith("notifications/mcpfactory"):
            return {"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "no such notification"}}
        return super().respond(message)

    def batch(self, messages: list[Json]) -> list[Json] | Json | None:
        return super().batch([message for message in messages if "id" in message])


class Courteous(Polite):
    """Responds to notifications without a handler, with an error without an ID."""

    own_process = True
    companions = frozenset({"legacy.batch"})

    def respond(self, message: Json) -> Json | None:
        if message.get("method", "").startswith(("notifications/initialized", "notifications/mcpfactory")):
            return {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "no such notification"}}
        return super().respond(message)


class Zeroless(SampleServer):
    """Takes a request with the ID 0 for a notification."""

    rule = "legacy.ping"

    def respond(self, message: Json) -> Json | None:
        return super().respond(message) if message.get("id", 1) != 0 else None


class Grudging(SampleServer):
    """Responds to late cancellations."""

    rule = "legacy.late-cancellation"

    def respond(self, message: Json) -> Json | None:
        if message.get("method") == "notifications/cancelled":
            return {"jsonrpc": "2.0", "id": "late", "error": {"code": -32602, "message": "no such request"}}
        return super().respond(message)


class Garrulous(SampleServer):
    """Responds to responses."""

    rule = "legacy.responses"

    def respond(self, message: Json) -> Json | None:
        if "result" in message:
            return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32600, "message": "what?"}}
        return super().respond(message)


class Undemanding(SampleServer):
    """Accepts any object as a request."""

    rule = "legacy.not-json-rpc"

    def respond(self, message: Json) -> Json | None:
        if "method" not in message and "result" not in message and "error" not in message:
            return {"jsonrpc": "2.0", "id": message["id"], "result": {}}
        return super().respond(message)


class Undiscerning(SampleServer):
    """Accepts a list as params."""

    rule = "legacy.params"

    def respond(self, message: Json) -> Json | None:
        if isinstance(message.get("params"), list):
            return {"jsonrpc": "2.0", "id": message["id"], "result": text("done")}
        return super().respond(message)


class Sensitive(SampleServer):
    """Dies of a list as params."""

    rule = "legacy.keeps-running"
    tolerated = True  # on stdio
    follows = frozenset({"legacy.params"})

    def respond(self, message: Json) -> Json | None:
        if isinstance(message.get("params"), list):
            raise TypeError("list indices must be integers")
        return super().respond(message)


class Loner(SampleServer):
    """Agrees to the revision with batches, but does not accept batches."""

    rule = "legacy.batch"
    tolerated = True

    def batch(self, messages: list[Json]) -> list[Json] | Json | None:
        return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "one at a time"}}


class Sleepyhead(SampleServer):
    """Does not respond to a ping before initialize."""

    rule = "legacy.early-ping"

    def handshake(self, method: str, params: Json) -> Json:
        if method == "ping" and not self.agreed:
            raise RpcError(-32600, "greet me first")
        return super().handshake(method, params)


# --- the per-request lifecycle ---


class Typist(SampleServer):
    """Sends an invented resultType."""

    rule = "modern.result-type-values"

    def envelope(self, method: str, result: Json) -> Json:
        return {**super().envelope(method, result), "resultType": "done"}


class Incognito(SampleServer):
    """Omits its name in results."""

    rule = "modern.server-info"

    def envelope(self, method: str, result: Json) -> Json:
        return {key: value for key, value in super().envelope(method, result).items() if key != "_meta"}


class Moody(HealthyYoungster):
    """Each page of a list is for others; it speaks the per-request lifecycle only."""

    rule = "modern.cache-pages"

    def per_request(self, method: str, params: Json) -> Json:
        result = super().per_request(method, params)
        return {**result, "cacheScope": "public"} if method == "tools/list" and "cursor" not in params else result


# --- healthy, though odd ---


class HealthyNarrator(SampleServer):
    """Sends many messages, all of them valid."""

    pings = 0

    def capabilities(self) -> Json:
        return {**super().capabilities(), "tools": {"listChanged": True}, "prompts": {"listChanged": True}}

    def called(self, name: str, arguments: Json, token: Any) -> Json:
        if not self.agreed or token is None:
            return super().called(name, arguments, token)
        self.tell("notifications/message", level="emergency", logger="zoo", data={"fed": "Leo"})
        self.tell("notifications/tools/list_changed")
        self.tell("notifications/progress", progressToken=token, progress=0.5, message="half")
        self.tell("notifications/progress", progressToken=token, progress=0.75)
        self.pings += 1
        self.write({"jsonrpc": "2.0", "id": f"zoo-{self.pings}", "method": "ping"})
        return self.call_tool(name, arguments)


class HealthyRecorder(SampleServer):
    """Logs each call at the level info, unless the client set another level."""

    own_process = True
    level = "info"

    def tools(self) -> list[Json]:
        gate = {"name": "open_gate", "description": "Open the gate of the zoo for today."}
        return [*super().tools(), {**gate, "inputSchema": {"type": "object"}}]

    def called(self, name: str, arguments: Json, token: Any) -> Json:
        if self.agreed and self.level == "info":
            self.tell(LOG, level="info", data="called")
        return text("open") if name == "open_gate" else super().called(name, arguments, token)


class HealthyRefuser(SampleServer):
    """Responds to an unknown revision with an error, as the specification's example does."""

    def initialize(self, requested: str) -> Json:
        if requested not in self.handshakes:
            raise RpcError(-32602, "Unsupported protocol version", {"supported": self.handshakes})
        return super().initialize(requested)


class HealthyVersionless(SampleServer):
    """Has an empty version, which is a valid string."""

    def initialize(self, requested: str) -> Json:
        return {**super().initialize(requested), "serverInfo": {"name": "zoo", "version": ""}}


class Gopher(SampleServer):
    """Treats an unknown per-request revision as a handshake revision, without resultType: one fault, not two."""

    rule = "modern.unknown-version"

    def per_request(self, method: str, params: Json) -> Json:
        return (
            super().per_request(method, params)
            if params["_meta"][VERSION] in self.moderns
            else self.method(method, params)
        )


class Shuffler(SampleServer):
    """Lists its tools in another order each time."""

    rule = "lists.stable"
    page = 10
    asked = 0

    def tools(self) -> list[Json]:
        return super().tools()[:: -1 if self.asked % 2 else 1]

    def list_tools(self, cursor: str | None) -> Json:
        self.asked += 1
        return super().list_tools(cursor)


class HealthyRich(SampleServer):
    """Has every kind of content, and odd but allowed members."""

    def tools(self) -> list[Json]:
        add, moon = super().tools()
        return [
            {**add, "title": "Add", "icons": [{"src": "data:image/gif;base64,R0lGOD"}]},
            {**moon, "_meta": {"zoo.example/x": 1}},
        ]

    def call(self, name: str, arguments: Json) -> Json:
        if name == "add":
            return super().call(name, arguments)
        blocks: list[Json] = [
            {"type": "text", "text": "", "annotations": {"audience": ["user"], "priority": 0.5}},
            {"type": "image", "data": "R0lGODlhAQABAAAAADs=", "mimeType": "image/gif"},
            {"type": "image", "data": "PHN2Zy8+", "mimeType": "image/svg+xml"},
            {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "zoo://plan", "name": "plan", "size": 3},
            {"type": "resource", "resource": {"uri": "zoo://plan", "blob": "", "mimeType": "image/png"}},
            {"type": "resource", "resource": {"uri": "zoo://plan", "text": "Lions.", "_meta": {}}},
        ]
        old = self.agreed in self.handshakes[:2]  # their clients support neither audio nor links
        blocks = [one for one in blocks if not old or one["type"] not in ("audio", "resource_link")]
        return {"content": blocks, "_meta": {"zoo.example/seen": True}}

    def resources(self) -> list[Json]:
        return [{"uri": "zoo://plan", "name": "plan", "size": 0, "icons": [], "annotations": {"priority": 1}}]


class HealthyWildcard(SampleServer):
    """Has a resource for every URI."""

    def read_resource(self, uri: Any, *, modern: bool) -> Json:
        if not isinstance(uri, str):
            raise RpcError(-32602, "uri must be a text")
        return {"contents": [{"uri": uri, "text": f"Nothing is known of {uri}."}]}


class HealthyUnion(SampleServer):
    """Has an argument that is a number or null, with a list as type."""

    def tools(self) -> list[Json]:
        add, moon = super().tools()
        for key in ("a", "b"):
            add["inputSchema"]["properties"][key] = {"type": ["number", "null"], "description": "One summand."}
        return [add, moon]

    def accept(self, name: str, arguments: Json) -> Json | None:
        wrong = name == "add" and not all(isinstance(arguments.get(key), int | float) for key in ("a", "b"))
        return text("a and b must be numbers", isError=True) if wrong else None


class Halfway(SampleServer):
    """Completes nothing, with a list."""

    rule = "features.undeclared-completion"

    def capabilities(self) -> Json:
        return {key: value for key, value in super().capabilities().items() if key != "completions"}

    def completed(self, params: Json) -> Json:
        return {"completion": {"values": []}}


class HealthyTenant(SampleServer):
    """Works in the client's roots if there are any; its tools then fail."""

    able = away = False

    def handshake(self, method: str, params: Json) -> Json:
        self.able = self.able or "roots" in params.get("capabilities", {})
        return super().handshake(method, params)

    def respond(self, message: Json) -> Json | None:
        if message.get("method") == "notifications/initialized" and self.able:
            self.write({"jsonrpc": "2.0", "id": "roots", "method": "roots/list"})
        self.away = self.away or bool((message.get("result") or {}).get("roots"))
        return super().respond(message)

    def call(self, name: str, arguments: Json) -> Json:
        if self.away:
            raise RpcError(-32603, "no moon in this folder")
        return super().call(name, arguments)
