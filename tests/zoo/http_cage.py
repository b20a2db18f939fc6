"""An animal at a URL: Streamable HTTP with sessions, in a thread of the test."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.zoo.base import VERSION, Animal, Json


class Cage(BaseHTTPRequestHandler):
    """One request. `animal`, `events` (answer as server-sent events) and `moved` (the path that is served) come from the class made by `caged`."""

    animal: Animal
    events = False
    moved = ""

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
        params = message.get("params") or {}
        modern = VERSION in params.get("_meta", {})
        if modern and self.headers.get("Mcp-Method") != message["method"]:
            self.answer(
                400, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32020, "message": "Mcp-Method"}}
            )
        elif not modern and message["method"] != "initialize" and self.headers.get("Mcp-Session-Id") != "s1":
            self.answer(400, None)
        else:
            answer = self.animal.respond(message)
            self.answer(200 if answer else 202, answer, session=message["method"] == "initialize")

    def do_DELETE(self) -> None:
        self.answer(200, None)

    def answer(self, status: int, message: Json | None, *, session: bool = False) -> None:
        body = b"" if message is None else json.dumps(self.animal.sent(message)).encode()
        if self.events and body:
            note = json.dumps(
                {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
            )
            body = b": hello\r\n\r\nevent: message\r\ndata: %s\r\n\r\ndata: %s\n\n" % (note.encode(), body)
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
