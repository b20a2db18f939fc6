"""The messages that every workload sends, in both lifecycles, and a bare pipe client to send them with."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY


def initialize() -> list[dict[str, Any]]:
    """The handshake of the newest legacy revision."""
    params = {
        "protocolVersion": LATEST_LEGACY.name,
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    return [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]


def modern_meta() -> dict[str, Any]:
    """What every request of the per-request lifecycle carries."""
    prefix = "io.modelcontextprotocol/"
    info = {"name": "bench", "version": "1"}
    return {
        f"{prefix}protocolVersion": LATEST.name,
        f"{prefix}clientInfo": info,
        f"{prefix}clientCapabilities": {},
    }


def call(number: int, name: str, arguments: Mapping[str, Any], *, modern: bool = False) -> dict[str, Any]:
    """One tool call."""
    params: dict[str, Any] = {"name": name, "arguments": dict(arguments)}
    if modern:
        params["_meta"] = modern_meta()
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


class Pipe:
    """A stdio server as a process, spoken to with blocking reads and writes: the cheapest client there is."""

    def __init__(
        self, command: Sequence[str], cwd: str | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=cwd,
            env={**os.environ, **(environ or {})},
        )  # fmt: skip
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def send(self, *messages: dict[str, Any]) -> None:
        """Writes the messages at once."""
        self.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        self.stdin.flush()

    def answer(self, number: int | str) -> dict[str, Any]:
        """Reads until the answer to this request."""
        while line := self.stdout.readline():
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == number and "method" not in message:
                return message
        raise RuntimeError(f"the server ended with exit {self.process.wait()} before it answered request {number}")

    def handshake(self) -> None:
        """Initializes the session."""
        first, then = initialize()
        self.send(first)
        self.answer(0)
        self.send(then)

    def resident(self) -> int:
        """Resident memory in KiB, of the process and its children."""
        return resident(self.process.pid)

    def close(self) -> None:
        """Ends the server by closing its stdin, harder if it does not listen."""
        self.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def resident(pid: int) -> int:
    """Resident memory in KiB of a process and its children."""
    return sum(_resident(one) for one in _tree(pid))


def _tree(pid: int) -> list[int]:
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [pid, *(below for child in children for below in _tree(child))]


def _resident(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
