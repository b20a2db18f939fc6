"""Runner of the attacks by documents: create a server, start, list and call it, and watch its surroundings."""

from __future__ import annotations

import asyncio
import importlib
import os
import socket
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_codegen.servers.generation import CreateError
from mcpfactory_runtime.testing import connect
from tests.attacks.hostile_documents import Attack
from tests.timeouts import TIMEOUT

SECONDS = TIMEOUT
"""Seconds; timeout of one attack. Limited work takes seconds, unlimited work takes hours."""
_PACKAGE = "victim_mcp"


@dataclass
class Outcome:
    """Outcome of an attack. `harm` must be empty."""

    refused: str = ""
    tools: int = 0
    left_out: int = 0
    problems: dict[str, int] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)
    harm: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        """Return the outcome in one line."""
        if self.harm:
            return "HARM: " + "; ".join(self.harm)
        if self.refused:
            return f"refused: {self.refused}"
        told = ", ".join(f"{code} {count}" for code, count in sorted(self.problems.items())) or "nothing to tell"
        calls = f"; {len(self.answers)} calls refused: {self.answers[0]}" if self.answers else ""
        return f"made: {self.tools} tools, {self.left_out} left out ({told}){calls}"


class _Listener:
    """Listener that counts connections."""

    def __init__(self) -> None:
        self.heard = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                peer, _ = self._socket.accept()
                self.heard += 1
                peer.close()

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


def attempt(attack: Attack, folder: Path) -> Outcome:
    """Try one attack in its own folder."""
    outcome = Outcome()
    listener = _Listener()
    canary = folder / "canary"
    source = folder / "given" / "openapi"
    source.parent.mkdir(parents=True)
    source.write_bytes(_armed(attack.document(), canary, listener.port))
    began = time.perf_counter()
    try:
        _made(attack, source, folder / "workspace" / "servers", outcome)
    finally:
        listener.close()
    outcome.seconds = time.perf_counter() - began
    outcome.harm += [
        f"the canary is there: {path}" for path in (canary, Path("CANARY"), Path("/CANARY")) if path.exists()
    ]
    outcome.harm += [f"{listener.heard} connections to a forbidden address"] if listener.heard else []
    outcome.harm += [f"written outside: {path}" for path in _outside(folder)]
    outcome.harm += [f"it took {outcome.seconds:.0f} seconds"] if outcome.seconds > SECONDS else []
    outcome.harm += ["it was accepted"] if attack.refused and not outcome.refused else []
    outcome.harm += [f"{outcome.tools} tools"] if outcome.tools > attack.most else []
    return outcome


def _armed(document: bytes, canary: Path, port: int) -> bytes:
    return document.replace(b"CANARY", str(canary).encode()).replace(b"PORT", str(port).encode())


def _outside(folder: Path) -> list[str]:
    """Return the files outside the folders of the document and of the server; links count as outside."""
    allowed = {folder / "given" / "openapi"}
    server = folder / "workspace" / "servers" / "victim"
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_symlink() or (path.is_file() and path not in allowed and not path.is_relative_to(server))
    ]


def _made(attack: Attack, source: Path, servers: Path, outcome: Outcome) -> None:
    try:
        created = create_server(servers, source=source, name="victim")
    except CreateError as error:
        outcome.refused = str(error).replace(str(source), "the document")[:160]
        if servers.exists() and list(servers.iterdir()):
            outcome.harm.append("a refused document left something behind")
        return
    outcome.tools, outcome.left_out = created.tools, len(created.skipped)
    for problem in created.problems:
        outcome.problems[problem.code] = outcome.problems.get(problem.code, 0) + 1
    with _importable(created.path / "src"):
        asyncio.run(_used(attack, outcome))


@contextmanager
def _importable(path: Path) -> Iterator[None]:
    before = dict(os.environ)
    sys.path.insert(0, str(path))
    for name in ("MCPFACTORY_BASE_URL", "MCPFACTORY_ALLOW_PRIVATE"):
        os.environ.pop(name, None)
    try:
        yield
    finally:
        sys.path.remove(str(path))
        os.environ.clear()
        os.environ.update(before)
        for name in [name for name in sys.modules if name.split(".")[0] == _PACKAGE]:
            del sys.modules[name]


async def _used(attack: Attack, outcome: Outcome) -> None:
    server = importlib.import_module(f"{_PACKAGE}.server").server
    for module in (Path(str(sys.modules[_PACKAGE].__file__)).parent / "_generated" / "tools").glob("*.py"):
        importlib.import_module(f"{_PACKAGE}._generated.tools.{module.stem}")
    async with connect(server) as client:
        listed = await client.list_tools()
        if len(listed) != outcome.tools:
            outcome.harm.append(f"{len(listed)} tools listed, {outcome.tools} made")
        _look(listed, outcome)
        for tool, arguments in attack.calls:
            result = await client.call_tool(tool, arguments)
            if not result.get("isError"):
                outcome.harm.append(f"{tool} was called with {str(arguments)[:80]}")
            outcome.answers.append(result["content"][0]["text"].split("\n")[0][:140])


def _look(listed: list[dict[str, Any]], outcome: Outcome) -> None:
    """Record harm if a text for models contains characters that people cannot see. Values of the API are ignored."""
    for tool in listed:
        for text in _prose(tool):
            hidden = {char for char in text if unicodedata.category(char) in {"Cc", "Cf", "Cs"} and char not in "\n\t"}
            if hidden:
                outcome.harm.append(f"hidden characters in {tool['name']}: {sorted(map(ascii, hidden))}")


def _prose(node: Any) -> Iterator[str]:
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, list):
            stack += one
        elif isinstance(one, dict):
            yield from (one[key] for key in ("name", "title", "description") if isinstance(one.get(key), str))
            stack += one.values()
