"""The blocking server as a process over HTTP, and gates (named pipes) that block its handlers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from mcpfactory_runtime.revisions import LATEST
from tests.runtime.transports import blocking_server
from tests.runtime.transports.conftest import hello, modern, request
from tests.timeouts import TIMEOUT, wait_until

GATED = [sys.executable, str(Path(blocking_server.__file__))]


class Web:
    """A running server: its process, its URL, and requests to it."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log
        wait_until(lambda: "http://" in self.told or process.poll() is not None)
        assert process.poll() is None, self.told
        self.url = next(word for word in self.told.split() if word.startswith("http://"))
        self.root = self.url.removesuffix("/mcp")
        self.port = urlsplit(self.url).port
        self.http = httpx.Client(base_url=self.root, timeout=TIMEOUT, trust_env=False, verify=False)

    @property
    def told(self) -> str:
        """Return the stderr of the process."""
        return self._log.read_text("utf-8")

    def begin(self, http: httpx.Client | None = None, **capabilities: Any) -> dict[str, str]:
        """Complete the handshake; return the headers of the session."""
        answer = (http or self.http).post("/mcp", json=hello(**capabilities))
        assert answer.status_code == 200, answer.text
        headers = {"mcp-session-id": answer.headers["mcp-session-id"]}
        (http or self.http).post(
            "/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers
        )
        return headers

    def call(
        self,
        tool: str,
        arguments: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        number: int = 1,
    ) -> Any:
        """Call a tool in a session (by its headers), or without one in the newest revision; return the response."""
        http = httpx.Client(base_url=self.root, timeout=TIMEOUT, trust_env=False, verify=False)
        with http:
            return http.post("/mcp", **calling(tool, arguments or {}, headers, number))


def calling(
    tool: str, arguments: dict[str, Any], headers: dict[str, str] | None = None, number: int = 1
) -> dict[str, Any]:
    """Return the keyword arguments of the POST of a tool call."""
    params = {"name": tool, "arguments": arguments}
    if headers is not None:
        return {"json": request("tools/call", params, number), "headers": headers}
    own = {"mcp-protocol-version": LATEST.name, "mcp-method": "tools/call", "mcp-name": tool}
    return {"json": modern("tools/call", params, number), "headers": own}


@contextmanager
def serving(folder: Path, *arguments: str, command: list[str] | None = None, **environ: str) -> Iterator[Web]:
    """Run the blocking server (or another `command`) over HTTP; kill it at the end."""
    log = folder / f"stderr-{len(list(folder.glob('stderr-*')))}"
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [*(command or GATED), "--http", "--port", "0", *arguments], stderr=stderr, env={**os.environ, **environ}
        ) as process,
    ):
        try:
            web = Web(process, log)
            with web.http:
                yield web
        finally:
            process.kill()


def most_memory(pid: int) -> int:
    """Return the peak memory of a process in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


class Gate:
    """Named pipe that blocks a handler; `wait` returns when the handler has reached it."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = str(path)
        self._end = -1

    def wait(self) -> None:
        self._end = os.open(self.path, os.O_WRONLY)

    def open(self, answer: str) -> None:
        """Let the handler continue with this answer."""
        os.write(self._end, answer.encode())
        os.close(self._end)
