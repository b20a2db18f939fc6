"""HTTP servers for tests: a handler base class, and a thread that serves the handler on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Any


class LoopbackHandler(BaseHTTPRequestHandler):
    """Handler that answers in one call and prints nothing. Methods that a test does not define return 501."""

    def do_GET(self) -> None:
        self.get()

    def do_HEAD(self) -> None:
        self.get()

    def do_POST(self) -> None:
        self.post()

    def do_PUT(self) -> None:
        self.put()

    def do_DELETE(self) -> None:
        self.delete()

    def get(self) -> None:
        """Answer the request."""
        self.answer(501)

    post = put = delete = get

    def body(self) -> bytes:
        """Read the body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int = 200, content: Any = b"", kind: str = "application/json", **headers: str) -> None:
        """Send a response: bytes unchanged, anything else as JSON; `Set_Cookie="x"` is a header."""
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
            if value:
                self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def running(server: HTTPServer) -> Iterator[str]:
    """Run a server in a thread until the block ends; yield its address."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def serving(handler: type[BaseHTTPRequestHandler], **members: Any) -> AbstractContextManager[str]:
    """Serve a handler class with these members on a free port; yield the address."""
    return running(ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), members)))
