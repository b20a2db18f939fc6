"""Workloads over HTTP, sent by wrk (a C program that is far from being the bottleneck; the bare floor shows it)."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bench.messages import call, initialize, modern_meta

REQUEST = """
wrk.method = "POST"
wrk.body = [==[{body}]==]
{headers}
{more}
"""
DONE = """
done = function(summary, latency, requests)
  io.write(string.format("RATE %f\\nERRORS %d\\n", summary.requests / summary.duration * 1e6, summary.errors.status + summary.errors.timeout))
end
"""
JSON_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@dataclass(frozen=True)
class Served:
    """A server that runs: where, and as which process."""

    url: str
    pid: int


@contextlib.contextmanager
def serving(command: Sequence[str]) -> Iterator[Served]:
    """The server on a free loopback port, once it accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with subprocess.Popen(
        [*command, "--http", "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            for _ in range(200):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.1):
                    break
                time.sleep(0.05)
            yield Served(f"http://127.0.0.1:{port}/mcp", process.pid)
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def calls_per_second(url: str, connections: int, *, modern: bool, seconds: int = 3, tool: str = "add") -> float:
    """Return tool calls per second with so many connections; 0 if the server does not speak this lifecycle.

    wrk checks the status only, as reading bodies would cost it more than the answer costs the server; one answer is checked
    before and one after.
    """
    headers, message = dict(JSON_HEADERS), call(1, tool, {"a": 1, "b": 2}, modern=modern)
    if modern:
        version = modern_meta()["io.modelcontextprotocol/protocolVersion"]
        headers |= {"MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    elif session := _session(url):
        headers["Mcp-Session-Id"] = session
    if not _works(url, message, headers):
        return 0.0
    with tempfile.TemporaryDirectory() as folder:
        lines = "\n".join(f'wrk.headers["{name}"] = "{value}"' for name, value in headers.items())
        path = Path(folder, "call.lua")
        path.write_text(REQUEST.format(body=json.dumps(message), headers=lines, more=DONE))
        command = [_wrk(), "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(path), url]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if not _works(url, message, headers):
        raise RuntimeError("the server no longer answers rightly")
    if errors := int(re.findall(r"ERRORS (\d+)", printed)[0]):
        raise RuntimeError(f"{errors} calls failed: {printed}")
    return float(re.findall(r"RATE ([\d.]+)", printed)[0])


def _post(url: str, message: object, headers: dict[str, str]) -> tuple[dict[str, str], bytes]:
    request = urllib.request.Request(url, json.dumps(message).encode(), headers, method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return {name.lower(): value for name, value in answer.headers.items()}, answer.read()


def _session(url: str) -> str:
    """Shakes hands and gives the session's id; "" for servers without sessions."""
    try:
        first, then = initialize()
        session = _post(url, first, JSON_HEADERS)[0].get("mcp-session-id", "")
        _post(url, then, JSON_HEADERS | ({"Mcp-Session-Id": session} if session else {}))
    except urllib.error.HTTPError:
        return ""
    return session


def _works(url: str, message: object, headers: dict[str, str]) -> bool:
    try:
        return b'"3"' in _post(url, message, headers)[1]
    except urllib.error.HTTPError:
        return False


def _wrk() -> str:
    """The path of wrk; Debian's package is installed where it is missing and that is allowed."""
    if not shutil.which("wrk"):
        subprocess.run(
            "apt-get update -qq && apt-get install -y -qq wrk", shell=True, check=False, stdout=subprocess.DEVNULL
        )
    if found := shutil.which("wrk"):
        return found
    raise SystemExit("error: wrk is not installed\nhint: install your system's package wrk, or leave out the part http")
