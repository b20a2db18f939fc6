"""Servers of clients, started once to hear what they offer. Each is a stranger's: it is kept apart, and gets no secret unless a person says so.

A command runs in a sandbox with a home of its own, reads its own files and the system's, and has a canary where its configuration has a
secret, in a variable or an argument, or refers to one. A URL is asked without the headers that hold or refer to one; what stands in the
address itself goes along.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.audit.accepted import OfferedTools
from mcpfactory_pipeline.audit.failures import NotThereError, failure
from mcpfactory_pipeline.audit.handed import Handed, hand
from mcpfactory_pipeline.audit.inventory import ConfiguredServer
from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.isolation.levels import NONE, find_level
from mcpfactory_pipeline.isolation.orphans import adopt_orphans, descendants, end_descendants
from mcpfactory_pipeline.isolation.sandbox import make_sandbox
from mcpfactory_runtime.client import Client

__all__ = ["StartRequest", "start_servers"]

_MOST: Final = 5_000  # tools that are kept of one server
_AT_ONCE: Final = 2


@dataclass(frozen=True, slots=True)
class StartRequest:
    """How servers are started: seconds for each, the level of isolation, and whether they get what their configuration gives them."""

    timeout: float = 60.0
    isolation: str = "auto"
    with_secrets: bool = False


async def start_servers(
    servers: Sequence[ConfiguredServer], request: StartRequest, environ: Mapping[str, str]
) -> list[OfferedTools]:
    """Return what each says; no process that was started runs after it."""
    ours = descendants(os.getpid())
    adopt_orphans()
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(server: ConfiguredServer) -> OfferedTools:
        async with turns:
            return await _listing(server, request, environ)

    try:
        return list(await asyncio.gather(*map(one, servers)))
    finally:
        await asyncio.to_thread(end_descendants, ours)


async def _listing(server: ConfiguredServer, request: StartRequest, environ: Mapping[str, str]) -> OfferedTools:
    handed = hand(server, environ, with_secrets=request.with_secrets)
    try:
        async with asyncio.timeout(request.timeout):
            if server.address:
                return await _ask(_remote(server, request, handed), handed)
            with tempfile.TemporaryDirectory(prefix="mcpfactory-audit-", ignore_cleanup_errors=True) as work:
                return await _ask(_local(server, request, handed, Path(work)), handed)
    except Exception as error:  # noqa: BLE001 - whatever a stranger's server does is a row of the report
        apart = not server.address and _is_apart(request.isolation)
        problem, hint = failure(error, handed, url=bool(server.address), apart=apart, seconds=request.timeout)
        return OfferedTools(problem=problem, hint=hint)


def _is_apart(isolation: str) -> bool:
    with suppress(StageError):
        return find_level(isolation) is not NONE
    return False


def _remote(server: ConfiguredServer, request: StartRequest, handed: Handed) -> Client:
    return Client.connect_http(server.address, handed.headers(server), timeout=request.timeout)


def _local(server: ConfiguredServer, request: StartRequest, handed: Handed, work: Path) -> Client:
    folder = (
        Path(server.folder).expanduser()
        if server.folder
        else server.file.path.parent
        if server.scope == "project"
        else None
    )
    sandbox = make_sandbox({"isolation": request.isolation}, work, readable=tuple(_readable(server, folder)))
    sandbox.folder.mkdir(exist_ok=True)
    command = sandbox.command([_found(server.words[0]), *map(handed.word, server.words[1:])])
    return Client.connect_stdio(
        command,
        env={**sandbox.environ, **handed.variables(server)},
        cwd=folder if folder is not None and folder.is_dir() else sandbox.folder,
        inherit=False,
        timeout=request.timeout,
    )


def _found(word: str) -> str:
    if re.search(r"[/\\]", word):
        return str(Path(word).expanduser())
    found = shutil.which(word)
    if found is None:
        raise NotThereError(f"there is no program {word}", hint="install it, or remove the entry")
    return found


def _readable(server: ConfiguredServer, folder: Path | None) -> Iterator[Path]:
    """Yield what a server has to read: its program, its script, and the folder that it is started in."""
    for word in (server.words[0], *server.origin.scripts):
        place = shutil.which(word) if not re.search(r"[/\\]", word) else str(Path(word).expanduser())
        if place is None:
            continue
        path = Path(place) if Path(place).is_absolute() or folder is None else folder / place
        with suppress(OSError):
            yield from _around(path)
    if folder is not None and folder.is_dir():
        yield folder


def _around(path: Path) -> Iterator[Path]:
    """Yield the folder of a program, and what belongs to it: its environment, its package."""
    if not path.exists():
        return
    yield path.parent
    inner = path.resolve()
    yield inner.parent
    if (path.parent.parent / "pyvenv.cfg").is_file():
        yield path.parent.parent
    if (
        inner.parent.name == "bin" and inner.parent.parent.parent.name == "node_modules"
    ):  # npx is a part of the package npm
        yield inner.parent.parent


async def _ask(client: Client, handed: Handed) -> OfferedTools:
    async with client:
        tools: list[Any] = await client.list_tools(keep_invalid=True) if "tools" in client.capabilities else []
        kept = [tool for tool in tools[:_MOST] if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
        said = [kept, str(client.instructions or ""), str(client.server_info.get("version") or "")]
        (kept, instructions, version), leaked = handed.masked(said)
        return OfferedTools(tuple(kept), instructions, version, leaked=leaked)
