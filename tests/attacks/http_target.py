"""A server on a loopback port, and functions that send it unchanged bytes."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvicorn

from mcpfactory_runtime import Server
from mcpfactory_runtime.revisions import LATEST
from mcpfactory_runtime.transports.http.app import HttpApp
from mcpfactory_runtime.transports.http.serve import listen, make_uvicorn_config
from tests.timeouts import TIMEOUT, wait_until


class HarmError(AssertionError):
    """Error for an attack that succeeded."""


class Answer(NamedTuple):
    """An HTTP response: its status, headers in lower case, and body."""

    status: int
    headers: dict[str, str]
    body: str

    @property
    def message(self) -> dict[str, Any]:
        """The JSON-RPC message of the body, which may be an event stream."""
        text = self.body.partition("data: {")[2] if self.body.startswith(("event:", "data:", "id:", ":")) else self.body
        text = text if text.startswith("{") else "{" + text
        return json.JSONDecoder().raw_decode(text)[0]  # type: ignore[no-any-return]


@contextmanager
def serving(server: Server, **options: Any) -> Iterator[int]:
    """Run the server in a thread; yield its port."""
    listener = listen("127.0.0.1", 0)
    web = uvicorn.Server(make_uvicorn_config(HttpApp(server, **options)))
    thread = threading.Thread(target=web.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        wait_until(lambda: web.started)
        yield listener.getsockname()[1]
    finally:
        web.should_exit = True
        thread.join(TIMEOUT)


def exchange(port: int, sent: bytes, *, seconds: float = TIMEOUT) -> bytes:
    """Send bytes; return the response until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(sent)
        heard = b""
        while more := connection.recv(65536):
            heard += more
    return heard


def post(port: int, message: Any, headers: dict[str, str] | None = None, host: str = "127.0.0.1") -> Answer:
    """Send one message to the endpoint; return the response."""
    body = json.dumps(message).encode()
    lines = {
        "Host": f"{host}:{port}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Connection": "close",
        "Content-Length": str(len(body)),
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    heard = exchange(port, f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
    first, _, text = heard.partition(b"\r\n\r\n")
    status, *rest = first.decode("latin-1").split("\r\n")
    found = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
    return Answer(int(status.split()[1]), found, _unchunked(text, found).decode())


def _unchunked(body: bytes, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return body
    found = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        found, body = found + body[:length], body[length + 2 :]
    return found


def modern(port: int, method: str, params: dict[str, Any], headers: dict[str, str] | None = None) -> Answer:
    """Send a request of the newest revision, from a client that declares elicitation."""
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": LATEST.name, f"{prefix}clientCapabilities": {"elicitation": {}}, f"{prefix}clientInfo": {"name": "robot", "version": "1"}}  # fmt: skip
    lines = {"MCP-Protocol-Version": LATEST.name, "Mcp-Method": method, "Mcp-Name": str(params.get("name", ""))}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta, **params}}
    return post(port, message, {**lines, **(headers or {})})
