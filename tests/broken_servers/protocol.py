"""Healthy servers, and servers with faults at startup, in a lifecycle or in a list."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import tempfile
from pathlib import Path

from tests.broken_servers.healthy import VERSION, Json, RpcError, SampleServer, text


class HealthyBase(SampleServer):
    """Has no faults."""


class HealthyElder(SampleServer):
    """Speaks only the handshake revisions, as most servers do."""

    def respond(self, message: Json) -> Json | None:
        (message.get("params") or {}).pop("_meta", None)
        return super().respond(message)


class HealthyVeteran(HealthyElder):
    """Supports only the first revision, in which later members have no meaning and may have any value."""

    def __init__(self, handshakes: list[str], moderns: list[str]) -> None:
        super().__init__(handshakes[:1], moderns)

    def capabilities(self) -> Json:
        return {key: value for key, value in super().capabilities().items() if key != "completions"}

    def completed(self, params: Json) -> Json:
        return self.complete(params["ref"]) if params["ref"]["name"] == "tour" else {"completion": {"values": []}}

    def tools(self) -> list[Json]:
        add, moon = super().tools()
        pair = {"type": "array", "items": [{"type": "number"}], "description": "A tuple, as draft 7 has it."}
        schema = {**add["inputSchema"], "properties": {**add["inputSchema"]["properties"], "more": pair}}
        return [{**add, "inputSchema": schema}, {**moon, "title": {"en": "Moon"}, "annotations": ["sky"]}]

    def prompts(self) -> list[Json]:
        return [{**prompt, "icons": "tour.png"} for prompt in super().prompts()]


class HealthyYoungster(SampleServer):
    """Speaks only the per-request revision."""

    def handshake(self, method: str, params: Json) -> Json:
        if method != "initialize":
            raise RpcError(-32602, "protocolVersion is missing in _meta")
        raise RpcError(-32022, "unsupported protocol version", {"supported": self.moderns})


class HealthyNumbersOnly(SampleServer):
    """Has tools and nothing else."""

    def capabilities(self) -> Json:
        return {"tools": {}}


class HealthyIdless(SampleServer):
    """Omits an unknown request ID, as the newer revisions allow."""

    def malformed(self) -> Json | None:
        return {key: value for key, value in (super().malformed() or {}).items() if key != "id"}


class HealthySorter(SampleServer):
    """Treats requests with an earlier revision as those of a handshake client, like servers on the Go SDK."""

    def respond(self, message: Json) -> Json | None:
        meta = (message.get("params") or {}).get("_meta") or {}
        if str(meta.get(VERSION, "")) < min(self.moderns):
            meta.pop(VERSION, None)
        return super().respond(message)


# --- startup ---


class Stillborn(SampleServer):
    """Ends before it writes a message."""

    own_process = True
    rule = "process.starts"

    def begin(self) -> None:
        sys.exit("the zoo is closed")


class Stranger(SampleServer):
    """Responds, but not to initialize or server/discover."""

    rule = "process.initializes"

    def respond(self, message: Json) -> Json | None:
        return (
            {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}
            if "id" in message
            else None
        )


class Chatterbox(SampleServer):
    """Greets on stdout."""

    own_process = True
    rule = "process.stdout"

    def begin(self) -> None:
        print("Welcome to the zoo!", flush=True)


class Announcer(SampleServer):
    """Prints in a tool that may change something."""

    rule = "process.stdout"
    own_process = True

    def tools(self) -> list[Json]:
        gate = {"name": "open_gate", "description": "Open the gate of the zoo for today."}
        return [*super().tools(), {**gate, "inputSchema": {"type": "object"}}]

    def call(self, name: str, arguments: Json) -> Json:
        if name != "open_gate":
            return super().call(name, arguments)
        os.write(1, b"opening the gate\n")
        return text("open")


class Cacophonist(Chatterbox):
    """Writes to stdout a picture, two messages on a line, a text in Latin-1, and a message of 17 MB."""

    def begin(self) -> None:
        told = b'{"jsonrpc": "2.0", "method": "notifications/zoo", "params": {"song": "%s"}}'
        lines = (
            b"\x89PNG\r\x1a\x00\x00\x00\rIHDR",
            2 * told,
            "Der Bär grüßt.".encode("latin-1"),
            told % (b"o" * 17_000_000),
        )
        sys.stdout.buffer.write(b"\n".join(lines) + b"\n")
        sys.stdout.flush()


class Marker(Chatterbox):
    """Begins its output with a byte order mark."""

    def begin(self) -> None:
        sys.stdout.buffer.write(b"\xef\xbb\xbf")
        sys.stdout.flush()


class Sleeper(SampleServer):
    """Does not end at the end of stdin if it spoke the oldest revision, so tests wait for only one session."""

    own_process = True
    rule = "process.exits-on-eof"
    spoken = ""

    def initialize(self, requested: str) -> Json:
        self.spoken = requested
        return super().initialize(requested)

    def end(self) -> None:
        if self.spoken == self.handshakes[0]:
            signal.pause()


class Deathless(SampleServer):
    """Does not end when it is told to."""

    own_process = True
    rule = "process.exits-on-sigterm"

    def begin(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


# --- the handshake and JSON-RPC ---


class Squeamish(SampleServer):
    """Dies of bytes that are not UTF-8."""

    rule = "legacy.utf-8"

    def feed(self, line: str) -> None:
        line.encode()
        super().feed(line)


class Namer(SampleServer):
    """Puts an ID into the error for an unreadable message."""

    rule = "legacy.invalid-json"

    def malformed(self) -> Json | None:
        return {**(super().malformed() or {}), "id": 0}


class Futurist(SampleServer):
    """Responds to initialize with a revision that does not exist."""

    rule = "legacy.version-negotiation"

    def initialize(self, requested: str) -> Json:
        return {**super().initialize(requested), "protocolVersion": "9"}


class Contrary(SampleServer):
    """Answers a revision with an older one, although it offers the revision to newer clients."""

    rule = "legacy.version-negotiation"

    def initialize(self, requested: str) -> Json:
        oldest, batched, third, newest = self.handshakes
        version = {newest: third, third: oldest, batched: batched}.get(requested, oldest)
        return {**super().initialize(requested), "protocolVersion": version}


class HealthySettled(SampleServer):
    """Speaks only the oldest handshake revision, and offers it to every client."""

    def initialize(self, requested: str) -> Json:
        return {**super().initialize(requested), "protocolVersion": self.handshakes[0]}


class Anonymous(SampleServer):
    """Does not report its name."""

    rule = "legacy.server-info"

    def initialize(self, requested: str) -> Json:
        return {**super().initialize(requested), "serverInfo": {}}


class Unresponsive(SampleServer):
    """Has no ping."""

    rule = "legacy.ping"

    def ping(self) -> Json:
        raise RpcError(-32603, "what?")


class Improviser(SampleServer):
    """Responds to unknown methods with an empty result."""

    rule = "legacy.unknown-method"

    def handshake(self, method: str, params: Json) -> Json:
        try:
            return super().handshake(method, params)
        except RpcError as error:
            if error.body["code"] != -32601:
                raise
            return {}


class Fragile(SampleServer):
    """Ends at the first line that is not JSON."""

    own_process = True
    rule = "legacy.keeps-running"
    tolerated = True  # on stdio

    def malformed(self) -> Json | None:
        self.write(super().malformed() or {})
        sys.exit(1)


class Pretender(SampleServer):
    """Has a result for tools that do not exist."""

    rule = "legacy.unknown-tool"

    def call_tool(self, name: str, arguments: Json) -> Json:
        known = [tool["name"] for tool in self.tools()]
        return super().call_tool(name, arguments) if name in known else text("done")


class Forgiving(SampleServer):
    """Responds to unknown tools with isError and to bad cursors with the first page; each costs one point."""

    rule = "legacy.unknown-tool"

    def call_tool(self, name: str, arguments: Json) -> Json:
        known = [tool["name"] for tool in self.tools()]
        return super().call_tool(name, arguments) if name in known else text("unknown tool", isError=True)


class Careless(SampleServer):
    """Answers a bad cursor with an internal error."""

    rule = "legacy.invalid-cursor"

    def list_tools(self, cursor: str | None) -> Json:
        if cursor is not None and not cursor.isdecimal():
            raise RpcError(-32603, "int() failed")
        return super().list_tools(cursor)


class Translator(SampleServer):
    """Returns every request ID as a string."""

    rule = "legacy.ids"

    def sent(self, message: Json) -> Json:
        return {**message, "id": str(message["id"])} if message.get("id") is not None else message


class Numerologist(SampleServer):
    """Returns a request ID that is a string of digits as a number."""

    rule = "legacy.ids"

    def sent(self, message: Json) -> Json:
        given = message.get("id")
        return {**message, "id": int(given)} if isinstance(given, str) and given.isdecimal() else message


class Verbose(SampleServer):
    """Sends a result and an error in one response."""

    rule = "legacy.response-shape"

    def respond(self, message: Json) -> Json | None:
        answer = super().respond(message)
        if answer and message.get("method") == "resources/templates/list":
            answer["error"] = {"code": -32000, "message": "also this"}
        return answer


# --- per request ---


class Discreet(SampleServer):
    """Responds to server/discover without capabilities."""

    rule = "modern.discover"

    def discover(self) -> Json:
        return {"supportedVersions": self.moderns}


class Untyped(SampleServer):
    """Omits resultType."""

    rule = "modern.result-type"

    def envelope(self, method: str, result: Json) -> Json:
        return {key: value for key, value in super().envelope(method, result).items() if key != "resultType"}


class Timeless(SampleServer):
    """Omits the caching members."""

    rule = "modern.cacheable"

    def envelope(self, method: str, result: Json) -> Json:
        whole = super().envelope(method, result)
        return {key: value for key, value in whole.items() if key not in ("ttlMs", "cacheScope")}


class Lenient(SampleServer):
    """Accepts requests without client capabilities."""

    rule = "modern.metadata"

    def check_metadata(self, meta: Json) -> None:
        super().check_metadata({"io.modelcontextprotocol/clientCapabilities": {}, **meta})


class Assuming(HealthyYoungster):
    """Assumes its newest revision if a request has none."""

    rule = "modern.metadata"

    def handshake(self, method: str, params: Json) -> Json:
        if method != "tools/list":
            return super().handshake(method, params)
        return self.envelope(method, self.method(method, params))


class PoliteYoungster(HealthyYoungster):
    """Responds to notifications."""

    rule = "modern.notifications"

    def respond(self, message: Json) -> Json | None:
        if message.get("method", "").startswith("notifications/mcpfactory"):
            return {"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "no such notification"}}
        return super().respond(message)


class SplittingYoungster(HealthyYoungster):
    """Ends a message at every kind of line separator, even within a text."""

    rule = "modern.unescaped-text"
    own_process = True

    def feed(self, line: str) -> None:
        for part in line.splitlines():
            super().feed(part)


class Agreeable(SampleServer):
    """Accepts any requested revision."""

    rule = "modern.unknown-version"

    def check_metadata(self, meta: Json) -> None:
        if "io.modelcontextprotocol/clientCapabilities" not in meta:
            raise RpcError(-32602, "clientCapabilities is missing")


class Confused(SampleServer):
    """Responds to unknown methods with an empty result in the per-request lifecycle."""

    rule = "modern.unknown-method"

    def per_request(self, method: str, params: Json) -> Json:
        if method.startswith("mcpfactory/"):
            return self.envelope(method, {})
        return super().per_request(method, params)


# --- lists ---


class Endless(SampleServer):
    """Its lists have endless pages."""

    rule = "lists.tools"
    companions = frozenset({"legacy.invalid-cursor"})

    def list_tools(self, cursor: str | None) -> Json:
        return {"tools": self.tools(), "nextCursor": "again"}


class Boaster(SampleServer):
    """Declares prompts and has none."""

    rule = "lists.prompts"

    def method(self, method: str, params: Json) -> Json:
        if method == "prompts/list":
            raise RpcError(-32601, "no such method")
        return super().method(method, params)


class NamelessResource(SampleServer):
    """A resource without a name."""

    rule = "content.schema"

    def resources(self) -> list[Json]:
        return [{"uri": "zoo://plan"}]


class Mislabeler(SampleServer):
    """Declares a wrong MIME type for its second resource only."""

    rule = "content.mime-type"

    def resources(self) -> list[Json]:
        return [*super().resources(), {"uri": "zoo://map", "name": "map"}]

    def read(self, uri: str) -> Json:
        blob = {"blob": "JVBERi0xLjQ=", "mimeType": "image/png"}
        return {"contents": [{"uri": uri, **blob}]} if uri == "zoo://map" else super().read(uri)


class Nullifier(SampleServer):
    """Sends null for the cursor after the last page."""

    rule = "content.schema"

    def method(self, method: str, params: Json) -> Json:
        found = super().method(method, params)
        return {**found, "nextCursor": None} if method == "resources/list" else found


class Rememberer(HealthyYoungster):
    """Lists another tool after a call."""

    rule = "modern.list-after-calls"
    called_before = False

    def call(self, name: str, arguments: Json) -> Json:
        self.called_before = True
        return super().call(name, arguments)

    def tools(self) -> list[Json]:
        more = {"name": "close_gate", "description": "Close the gate of the zoo.", "inputSchema": {"type": "object"}}
        return [*super().tools(), *([more] if self.called_before else [])]


class Prompter(Rememberer):
    """Lists another prompt after a call."""

    def tools(self) -> list[Json]:
        return super().tools()[:2]

    def prompts(self) -> list[Json]:
        return [*super().prompts(), *([{"name": "leave"}] if self.called_before else [])]


class ShortSighted(SampleServer):
    """Ends at a line of more than 64 KiB."""

    own_process = True
    rule = "process.large-message"

    def feed(self, line: str) -> None:
        if len(line) > 64 * 1024:
            sys.exit("the line is too long")
        super().feed(line)


class Modest(SampleServer):
    """Lists tools without declaring them."""

    rule = "lists.declared"

    def capabilities(self) -> Json:
        return {"resources": {}, "prompts": {}}


class Repeater(SampleServer):
    """Lists a prompt twice."""

    rule = "lists.unique"

    def prompts(self) -> list[Json]:
        return super().prompts() * 2


class Promiser(SampleServer):
    """Lists a resource that cannot be read."""

    rule = "lists.resource-readable"

    def read(self, uri: str) -> Json:
        raise RpcError(-32602, "no such resource", {"uri": uri})


class Splitter(SampleServer):
    """Ends a message at every kind of line separator, even within a text."""

    rule = "legacy.unescaped-text"

    def feed(self, line: str) -> None:
        for part in line.splitlines():
            super().feed(part)


class Hermit(SampleServer):
    """Runs only once at a time for each client."""

    rule = "process.second-process"
    own_process = True

    def begin(self) -> None:
        file = Path(tempfile.gettempdir(), f"mcpfactory-hermit-{os.getppid()}")
        lock = os.open(file, os.O_CREAT | os.O_RDWR)  # until the process ends
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit("it runs already")
