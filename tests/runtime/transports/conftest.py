"""Raw messages to the sample server, as lines and HTTP requests."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from mcpfactory_runtime.protocol.connection import META_CAPABILITIES, META_VERSION
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY
from tests.runtime.interaction import sample
from tests.timeouts import TIMEOUT

SAMPLE = [sys.executable, str(Path(sample.__file__))]


def request(method: str, params: dict[str, Any] | None = None, id: Any = 1) -> dict[str, Any]:  # noqa: A002 - as on the wire
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def modern(method: str, params: dict[str, Any] | None = None, id: Any = 1, **meta: Any) -> dict[str, Any]:  # noqa: A002 - as on the wire
    envelope = {META_VERSION: LATEST.name, META_CAPABILITIES: {}, **meta}
    return request(method, {**(params or {}), "_meta": envelope}, id)


def hello(version: str = LATEST_LEGACY.name, **capabilities: Any) -> dict[str, Any]:
    info = {"name": "raw", "version": "0"}
    return request("initialize", {"protocolVersion": version, "capabilities": capabilities, "clientInfo": info}, 0)


class Process:
    """The sample server on stdio; every line that comes back must be one JSON message."""

    def __init__(self, command: list[str]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)

    def say(self, *messages: Any) -> None:
        """Send messages as lines, and bytes unchanged."""
        for message in messages:
            self.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self.stdin.flush()

    def hear(self) -> Any:
        line = self.stdout.readline()
        assert line, self.errors()
        return json.loads(line)

    def ask(self, *messages: Any) -> Any:
        """Send, and return the next message that is not a notification."""
        self.say(*messages)
        answer = self.hear()
        while isinstance(answer, dict) and "method" in answer and "id" not in answer:
            answer = self.hear()
        return answer

    def end(self) -> int:
        """Close stdin; return the exit status."""
        self.stdin.close()
        return self.process.wait(TIMEOUT)

    def errors(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    @property
    def stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout


@pytest.fixture
def process() -> Iterator[Process]:
    server = Process(SAMPLE)
    with server.process:
        yield server
        server.process.kill()
