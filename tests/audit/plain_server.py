"""A server without any package, for audits that start it: its tools stand in a file, and so do its instructions, with its variables or arguments in them, or both backwards. `python plain_server.py FILE [--http]`."""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any


def filled(value: Any) -> Any:
    """The same with variables and arguments in the place of `$ENV` and `$ARGV`, and backwards with `-`, in which nobody knows them again."""
    if isinstance(value, dict):
        return {filled(name): filled(one) for name, one in value.items()}
    if isinstance(value, list):
        return [filled(one) for one in value]
    if not isinstance(value, str):
        return value
    environ, words = json.dumps(dict(os.environ)), json.dumps(sys.argv[2:])
    for mark, text in (("$-ENV", environ[::-1]), ("$-ARGV", words[::-1]), ("$ENV", environ), ("$ARGV", words)):
        value = value.replace(mark, text)
    for name in os.environ:
        value = value.replace(f"${{{name}}}", os.environ[name])
    return value


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    """The answer to a message; None to a notification."""
    known = filled(json.loads(Path(sys.argv[1]).read_text()))
    method = message.get("method")
    if "id" not in message:
        return None
    result: dict[str, Any] | None = None
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        result = {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "plain", "version": "1.2"},
        }
        result["instructions"] = known.get("instructions", "")
    if method == "tools/list":
        result = {"tools": known["tools"]}
    if result is None:
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


class Handler(BaseHTTPRequestHandler):
    """The same over HTTP; with `login` in the file, only for who has a header; with `status` only that, and a page."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = json.loads(Path(sys.argv[1]).read_text())
        if status := known.get("status"):
            self.send_response(status)
            self.send_header("Location", "http://other.test/mcp")
            self.send_header("Content-Length", str(len(known["page"])))
            self.end_headers()
            self.wfile.write(known["page"].encode())
            return
        refused = known.get("login") and self.headers.get("Authorization") != known["login"]
        found = None if refused else answer(body)
        text = json.dumps(found).encode() if found else b""
        self.send_response(401 if refused else 200 if found else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Nothing."""


if __name__ == "__main__":
    if "--http" in sys.argv:
        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            print(server.server_port, flush=True)
            server.serve_forever()
    for line in sys.stdin:
        if found := answer(json.loads(line)):
            print(json.dumps(found), flush=True)
