"""An animal at a URL: Streamable HTTP with sessions, in a thread of the test."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.zoo.base import VERSION, Animal, Json


class Cage(BaseHTTPRequestHandler):
    """One request. `animal`, `events` (answer as server-sent events) and `moved` (the path that is served) come from the class made by `caged`."""

    animal: Animal
    events = False
    moved = ""
    said: Sequence[str] = ()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.moved and self.path != self.moved:
            self.send_response(307)
            self.send_header("Location", self.moved)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        try:
            message = json.loads(body)
        except ValueError:
            self.answer(400, self.animal.malformed())
            return
        if isinstance(message, list):
            answers = self.animal.batch(message)
            self.answer(400 if isinstance(answers, dict) else 200 if answers else 202, answers)
            return
        if "method" not in message:
            refused = "result" not in message and "error" not in message
            self.answer(400 if refused else 202, self.animal.respond(message) if refused else None)
            return
        params = message.get("params") or {}
        modern = VERSION in params.get("_meta", {})
        if modern and self.headers.get("Mcp-Method") != message["method"]:
            self.answer(
                400, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32020, "message": "Mcp-Method"}}
            )
        elif not modern and message["method"] != "initialize" and self.headers.get("Mcp-Session-Id") != "s1":
            self.answer(400, None)
        else:
            said: list[str] = []
            self.animal.out = said.append
            answer = self.animal.respond(message)
            self.said = said
            self.answer(200 if answer else 202, answer, session=message["method"] == "initialize")

    def do_DELETE(self) -> None:
        self.answer(200, None)

    def answer(self, status: int, message: Json | list[Json] | None, *, session: bool = False) -> None:
        shown = (
            [self.animal.sent(one) for one in message]
            if isinstance(message, list)
            else message and self.animal.sent(message)
        )
        body = b"" if message is None else json.dumps(shown).encode()
        if self.events and body:
            before = b"".join(b"data: %s\n\n" % line.encode() for line in self.said)
            body = b": hello\r\n\r\nevent: message\r\n%sdata: %s\n\n" % (before, body)
        self.send_response(status)
        if body:
            self.send_header("Content-Type", "text/event-stream" if self.events else "application/json; charset=utf-8")
        if session:
            self.send_header("Mcp-Session-Id", "s1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        pass


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The URL of a handler on a free loopback port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join()


def caged(animal: Animal, *, events: bool = False, moved: str = "") -> type[Cage]:
    """The handler of one animal."""
    return type("OneCage", (Cage,), {"animal": animal, "events": events, "moved": moved})
