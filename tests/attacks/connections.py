"""Attacks on the HTTP endpoint: partial requests, surplus bytes, web pages, sessions of others, open addresses."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from mcpfactory_runtime import Server
from mcpfactory_runtime.revisions import LATEST_LEGACY
from mcpfactory_runtime.transports.http import serve
from tests.attacks.http_target import Answer, HarmError, exchange, post, serving
from tests.timeouts import TIMEOUT

_HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": LATEST_LEGACY.name, "capabilities": {}, "clientInfo": {"name": "n", "version": "1"}},
}  # fmt: skip
_HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 500\r\n"


def _half_sent(sent: bytes) -> str:
    with patch.object(serve, "_READ_TIME", 0.05), serving(Server("s")) as port:
        try:
            heard = exchange(port, sent, seconds=TIMEOUT)
        except ConnectionResetError:
            return "the connection was ended"
        except TimeoutError:
            raise HarmError("the connection stays open") from None
        return f"the connection was ended: {heard[:20]!r}"


def _surplus(more: bytes) -> str:
    body = b'{"jsonrpc":"2.0","id":1,"method":"initialize"}'
    head = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    with serving(Server("s")) as port:
        heard = exchange(port, b"POST /mcp HTTP/1.1\r\n" + head + body + more)
    if heard.count(b"HTTP/1.1 ") != 1 or b"Invalid HTTP" in heard:
        raise HarmError(f"answers: {heard!r}")
    return f"one answer: {heard[:30]!r}"


def _refused(answer: Answer, status: int) -> str:
    if answer.status != status:
        raise HarmError(f"status {answer.status}")
    return f"status {answer.status}: {answer.body.strip()[:80]}"


def _page(headers: dict[str, str], status: int) -> str:
    with serving(Server("s")) as port:
        return _refused(post(port, _HELLO, headers), status)


def _sessions(_: Path) -> str:
    with serving(Server("s"), max_sessions=20) as port:
        mine = {"Mcp-Session-Id": post(port, _HELLO).headers["mcp-session-id"]}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        for _turn in range(5):
            post(port, ping, mine)
        for _turn in range(60):
            post(port, _HELLO)
        return _refused(post(port, ping, mine), 200)


def _open(_: Path) -> str:
    code = "from mcpfactory_runtime import Server; Server('s').run(['--http', '--host', '0.0.0.0', '--port', '0'])"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        if "serving" in said:
            raise HarmError(said)
        return process.stderr.read().strip().partition("\n")[0] or said
    finally:
        process.kill()
        process.communicate()


def _stopped(_: Path) -> str:
    listener = serve.listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    listener.close()
    code = (
        "import mcpfactory_runtime.transports.http.serve as serve; serve._READ_TIME = 3600.0\n"  # nothing else ends it
        f"from mcpfactory_runtime import Server; Server('s').run(['--http', '--port', '{port}'])"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        process.stderr.readline()
        with socket.create_connection(("127.0.0.1", port)) as half:
            half.sendall(_HEAD + b"\r\n{")
            post(port, _HELLO)
            process.terminate()
            try:
                process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                raise HarmError("it waits for a request that does not come") from None
        return "ended at once"
    finally:
        process.kill()
        process.communicate()


_ORIGINS = ("http://localhost.evil.example", "http://localhost:80@evil.example", "http://localhost:1, http://evil.example", "null", "http://127.0.0.1.evil.example:80")  # fmt: skip
ROWS = {
    "half a head": ("ended", lambda _: _half_sent(_HEAD)),
    "half a body": ("ended", lambda _: _half_sent(_HEAD + b"\r\n{")),
    "nothing at all": ("ended", lambda _: _half_sent(b"")),
    "a second request behind the body": (
        "one answer", lambda _: _surplus(b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    ),
    "rubbish behind the body": ("one answer", lambda _: _surplus(b"\x00\x01rubbish\r\n\r\n")),
    "a form of a web page": ("refused", lambda _: _page({"Content-Type": "text/plain"}, 415)),
    "a page that names no type": ("refused", lambda _: _page({"Content-Type": ""}, 415)),
    "a type that only begins well": ("refused", lambda _: _page({"Content-Type": "application/json-evil"}, 415)),
    **{
        f"a page of {origin}": ("refused", lambda _, origin=origin: _page({"Origin": origin}, 403))
        for origin in _ORIGINS
    },
    "60 sessions where 20 may be": ("a session in use lives on", _sessions),
    "every address of the machine, nobody named": ("refused", _open),
    "half a body while the process ends": ("ends in time", _stopped),
}  # fmt: skip
