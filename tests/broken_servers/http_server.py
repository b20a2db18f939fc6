"""Streamable HTTP with sessions for a server, in a thread of the test."""

from __future__ import annotations

import base64
import itertools
import json
import threading
import uuid
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler
from io import BufferedIOBase
from typing import Any

from tests.broken_servers.healthy import META, VERSION, Json, RpcError, SampleServer

METADATA = "/.well-known/oauth-protected-resource"
STATUS = {-32601: 404, -32602: 400, -32022: 400, -32020: 400}  # of error responses in the per-request lifecycle


class ServerHandler(BaseHTTPRequestHandler):
    """Handler of one request.

    `handler_of` sets `sample`, `events` (respond with server-sent events) and `moved` (the served path).
    The handler has the faults in `sample.amiss`.
    """

    sample: SampleServer
    events = False
    moved = ""
    pending: dict[object, Json]  # request ID → response
    numbers: Iterator[int]  # unused IDs of events
    streams: list[BufferedIOBase]  # open GET streams
    history: list[bytes]  # messages on event streams
    sessions: dict[str, bool]  # session ID → True while the session is open
    said: Sequence[str] = ()
    agreed = ""  # revision at the start of a session
    listing = False  # True if tools are listed per request
    challenge = 'Bearer realm="zoo", resource_metadata="{place}"'

    def wrong(self, what: str) -> bool:
        return what in self.sample.amiss

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.lacks_credentials():
            return
        if self.moved and self.path != self.moved:
            self.send_response(307)
            self.send_header("Location", self.moved)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        local = self.headers["Host"].startswith("127.0.0.1") or self.wrong("host")
        if not self.serves_origin(self.headers["Origin"]) if "Origin" in self.headers else not local:
            self.answer(403, None)
            return
        try:
            message = json.loads(body)
        except ValueError:
            self.answer(400, self.sample.malformed())
            return
        modern = self.headers.get("MCP-Protocol-Version") in self.sample.moderns
        if (
            modern
            and (isinstance(message, list) or "method" not in message)
            and not self.wrong("modern-no-batches" if isinstance(message, list) else "response")
        ):
            self.answer(400, self.error(None, -32600, "one request at a time"))
        elif isinstance(message, list):
            self.answer_array(message)
        elif "method" not in message:
            refused = "result" not in message and "error" not in message
            answer = self.sample.respond(message)
            self.answer(400 if refused else 400 if self.wrong("notification-status") else 202, answer)
        elif VERSION in (message.get("params") or {}).get("_meta", {}):
            self.answer_modern(message)
        elif modern and "id" in message:
            self.answer(400, self.error(message["id"], -32602, "protocolVersion is missing in _meta"))
        else:
            self.answer_legacy(message)

    def lacks_credentials(self) -> bool:
        """Refuse a request without the right credentials; return True if it was refused."""
        needed, sent = self.sample.credentials, self.headers.get("Authorization", "")
        if self.wrong("token") and sent.startswith("Bearer "):
            return False
        if sent == needed or not needed or (self.wrong("prefix") and sent[:20] == needed[:20]):
            return False
        place = f"http://{self.headers['Host']}{METADATA}"
        self.send_response(401)
        if not self.wrong("challenge"):
            self.send_header("WWW-Authenticate", self.challenge.format(place=place))
        self.send_header("Content-Length", "0")
        self.end_headers()
        return True

    def answer_metadata(self) -> None:
        resource = "https://elsewhere.example" if self.wrong("resource") else f"http://{self.headers['Host']}/mcp"
        servers = [] if self.wrong("issuers") else ["https://login.example"]
        body = json.dumps({"resource": resource, "authorization_servers": servers}).encode()
        self.send_response(404 if self.wrong("metadata") else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def serves_origin(self, origin: str) -> bool:
        host = origin.rpartition("/")[2]
        careless = {
            "origin": True,
            "origin-begins": host.startswith("127.0.0.1"),
            "origin-ends": host.endswith(self.headers["Host"]),
            "origin-null": origin == "null",
            "origin-rebound": host == self.headers["Host"],
        }
        return any(self.wrong(what) and serves for what, serves in careless.items())

    def answer_array(self, messages: list[Json]) -> None:
        later = self.headers.get("MCP-Protocol-Version", "") > "2025-03-26"
        modern = self.headers.get("MCP-Protocol-Version") in self.sample.moderns
        if later and not self.wrong("modern-no-batches" if modern else "no-batches"):
            self.answer(400, self.error(None, -32600, "one at a time"))
            return
        answers = self.sample.batch(messages)
        accepted = 200 if self.wrong("batch-without-requests") else 202
        self.answer(400 if isinstance(answers, dict) else 200 if answers else accepted, answers)

    def answer_legacy(self, message: Json) -> None:
        session, version = self.headers.get("Mcp-Session-Id"), self.headers.get("MCP-Protocol-Version")
        first = message["method"] == "initialize"
        if self.sample.listening and message["method"] == "tools/call":
            self.answer(202, None)
            return
        refusals = {
            "no-session": (not first and session is None, 400),
            "unknown-session": (not first and session is not None and session not in self.sessions, 404),
            "deleted-session": (not first and self.sessions.get(session or "") is False, 404),
            "version-header": (version is not None and version not in self.sample.handshakes, 400),
            "version-missing": (not first and version is None and self.wrong("version-missing"), 400),
        }
        for what, (broken, status) in refusals.items():
            if broken and (what == "version-missing" or not self.wrong(what)):
                self.answer(status, self.error(message.get("id"), -32600, what))
                return
        if first:
            self.agreed = message["params"]["protocolVersion"]
        answer = self.respond(message)
        if answer and message["method"] == "tools/call" and self.wrong("request-ids"):
            self.pending[message["id"]] = answer
            threading.Event().wait(0.05)  # meanwhile, the response to another client replaces this one
            answer = self.pending[message["id"]]
        if answer and message["method"] == "tools/call":
            self.tell_listeners(answer)
        accepted = 400 if self.wrong("notification-status") else 202
        body = {"ok": True} if message["method"] == "notifications/cancelled" and self.wrong("receipt") else answer
        self.answer(200 if body else accepted, body, session=first)

    def answer_modern(self, message: Json) -> None:
        params, method = dict(message["params"]), message["method"]
        self.listing = method == "tools/list"
        expected = {"modern-version": params["_meta"][VERSION], "modern-method": method}
        named = params.get("name", None if self.wrong("tool-names-only") else params.get("uri"))
        expected |= {"modern-name": str(named)} if named is not None and method != "completion/complete" else {}
        headers = {"modern-version": "MCP-Protocol-Version", "modern-method": "Mcp-Method", "modern-name": "Mcp-Name"}
        for header, value in self.sample.repeated(params) if method == "tools/call" else ():
            if self.wrong("unrepeated") and header not in self.headers:
                continue
            expected[header], headers[header] = value, header
        for what, value in expected.items():
            known = "modern-arguments" if what.startswith("Mcp-Param-") else what
            if self.wrong("unnamed") and headers[what] == "Mcp-Name" and "Mcp-Name" not in self.headers:
                continue
            if not self.says(headers[what], value) and not self.wrong(known):
                about = None if self.wrong("modern-error-id") else message.get("id")
                self.answer(400, self.error(about, -32020, headers[what]))
                return
        if "Last-Event-ID" in self.headers and self.wrong("last-event"):
            self.answer(404, None)
            return
        if "id" not in message:
            said = {"jsonrpc": "2.0", "id": None, "result": {}} if self.wrong("modern-notification-status") else None
            self.answer(200 if said else 202, said)
            return
        answer = self.respond(message)
        if answer is None:
            self.keep_open()
            return
        code = (answer or {}).get("error", {}).get("code")
        incomplete = META + "clientCapabilities" not in params["_meta"]
        status = STATUS.get(code, 200) if code in (-32601, -32022) or (code == -32602 and incomplete) else 200
        self.answer(200 if self.wrong("modern-status") else status, answer, session=self.wrong("modern-session"))

    def keep_open(self) -> None:
        """Respond with a stream of the server's messages until the client disconnects."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("X-Accel-Buffering", "no")
        self.end_headers()
        self.wfile.write(b"".join(b"data: %s\n\n" % line.encode() for line in self.said))
        self.wfile.flush()
        self.rfile.read(1)

    def says(self, name: str, value: str) -> bool:
        """Return True if a header has this value, read as the specification requires."""
        headers = dict(self.headers.items()) if self.wrong("modern-header-names") else self.headers  # a dict keeps case
        found = headers.get(name, "")
        found = found if self.wrong("modern-header-whitespace") else found.strip(" \t")
        if self.wrong("one-marker") and found.startswith("=?base64?") and not found.endswith("?="):
            return False
        if found.startswith("=?base64?") and found.endswith("?=") and not self.wrong("modern-header-base64"):
            try:
                found = base64.b64decode(found[9:-2], validate=True).decode()
            except ValueError:
                return False
        return found.lower() == value.lower() if self.wrong("modern-header-values") else found == value

    def respond(self, message: Json) -> Json | None:
        said: list[str] = []
        self.sample.out = said.append
        answer = self.sample.respond(message)
        self.said = said
        return answer

    def begin(self) -> str:
        """Return the id of a new session."""
        kinds = {
            "session-id": f"s {uuid.uuid4()}",
            "session-guess": f"session-of-the-zoo-{len(self.sessions) + 1}",
            "one-session": "session-of-the-zoo",
            "chosen-session": self.headers.get("Mcp-Session-Id") or uuid.uuid4().hex,
        }
        session = next((one for what, one in kinds.items() if self.wrong(what)), uuid.uuid4().hex)
        self.sessions[session] = True
        return session

    @staticmethod
    def error(about: Any, code: int, words: str) -> Json:
        return {"jsonrpc": "2.0", "id": about, "error": RpcError(code, words).body}

    def do_GET(self) -> None:
        if self.sample.credentials and self.path.startswith(METADATA):
            self.answer_metadata()
            return
        if self.lacks_credentials():
            return
        modern = self.headers.get("MCP-Protocol-Version") in self.sample.moderns
        if self.wrong("answer-beside-stream") and not modern:
            self.stream()
            return
        if self.wrong("replayed-messages") and "Last-Event-ID" in self.headers:
            self.send_stream(b"".join(b"id: %d\ndata: %s\n\n" % (next(self.numbers), one) for one in self.history))
            return
        if {"streams", "one-stream", "streamed-answers"} & self.sample.amiss and not modern:
            self.send_stream(b"")
            self.wfile.flush()
            self.streams.append(self.wfile)
            self.rfile.read(1)
            self.streams.remove(self.wfile)
            return
        wrong = self.wrong("modern-get") if modern else self.wrong("get")
        self.answer(200 if wrong else 405, None)

    def send_stream(self, events: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(events)

    def tell_listeners(self, answer: Json) -> None:
        """Send a log message, or the answer to a call, on a GET stream, or on all of them."""
        log = {"level": "emergency", "data": "fed"}
        told = {"jsonrpc": "2.0", "method": "notifications/message", "params": log}
        for file in self.streams[: None if self.wrong("one-stream") else 1]:
            file.write(b"data: %s\n\n" % json.dumps(answer if self.wrong("streamed-answers") else told).encode())
            file.flush()

    def stream(self) -> None:
        """Keep an event stream open until the client closes the connection."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.sample.listening = True
        self.rfile.read(1)
        self.sample.listening = False

    def do_DELETE(self) -> None:
        if self.lacks_credentials():
            return
        named = self.headers.get("Mcp-Session-Id", "")
        for one in [*self.sessions] if self.wrong("other-session") else [named] if named in self.sessions else []:
            self.sessions[one] = False
        self.answer(200, None)

    def answer(self, status: int, message: Json | list[Json] | None, *, session: bool = False) -> None:
        sent = [self.sample.sent(one) for one in message] if isinstance(message, list) else message
        sent = self.sample.sent(sent) if isinstance(sent, dict) else sent
        body = b"" if sent is None else json.dumps(sent).encode()
        calls = self.wrong("plain-calls") and isinstance(sent, dict) and "content" in sent.get("result", ())
        streamed = self.events and bool(body) and not calls and not {"content-type", "json"} & self.sample.amiss
        if streamed:
            before = b"".join(b"data: %s\n\n" % line.encode() for line in self.said)
            body = b": hello\r\n\r\n%sevent: message\r\n%sdata: %s\n\n" % (self.prime(), before, body)
            self.history.append(json.dumps(sent).encode())
        self.send_response(status)
        if body:
            kind = "text/event-stream" if streamed else "application/json; charset=utf-8"
            self.send_header("Content-Type", "text/plain" if self.wrong("content-type") or calls else kind)
            if streamed and not self.wrong("modern-buffering"):
                self.send_header("X-Accel-Buffering", "no")
        if session:
            self.send_header("Mcp-Session-Id", self.begin())
        endless = streamed and self.wrong("stream-ends") and (session or self.listing)
        if not endless:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if endless:
            self.wfile.flush()
            self.rfile.read(1)  # returns when the client disconnects

    def prime(self) -> bytes:
        """Return the first event of a stream, if the revision has one before the response; else nothing."""
        newest = self.agreed == max(self.sample.handshakes)
        if self.wrong("modern-no-event-ids") and self.headers.get("MCP-Protocol-Version") in self.sample.moderns:
            return b"id: 1\r\n"
        modern = self.headers.get("MCP-Protocol-Version") in self.sample.moderns
        if self.wrong("replayed-messages") and self.headers.get("Mcp-Session-Id") and not modern:
            return b"id: %d\r\n" % next(self.numbers)
        if self.wrong("event-ids") and self.headers.get("Mcp-Session-Id") and not modern:
            return b"id: 1\r\n"
        first, second = next(self.numbers), next(self.numbers)
        if self.wrong("priming-event") and self.agreed:
            return b"id: %d\r\n" % first
        primes = self.agreed and (newest or self.wrong("primes"))
        return b"id: %d\r\ndata:\r\n\r\nid: %d\r\n" % (first, second) if primes else b""

    def log_message(self, *_: object) -> None:
        pass


def handler_of(sample: SampleServer, *, events: bool = False, moved: str = "") -> type[ServerHandler]:
    """Return a request handler class for one server."""
    return type(
        "OneServerHandler",
        (ServerHandler,),
        {
            "sample": sample,
            "events": events,
            "moved": moved,
            "sessions": {},
            "pending": {},
            "streams": [],
            "history": [],
            "numbers": itertools.count(),
        },
    )
