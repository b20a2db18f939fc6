"""Servers of clients, started once to hear what they offer. Each is a stranger's: it is kept apart, and gets no secret unless a person says so.

A command runs in a sandbox with a home of its own, reads its own files and the system's, and has a canary where its configuration has a
secret, in a variable or an argument, or refers to one. A URL is asked without the headers that hold or refer to one; what stands in the
address itself goes along.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from mcpfactory_pipeline.audit.accepted import OfferedTools
from mcpfactory_pipeline.audit.inventory import ConfiguredServer
from mcpfactory_pipeline.audit.mentions import is_reference
from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.isolation.orphans import adopt_orphans, descendants, end_descendants
from mcpfactory_pipeline.isolation.sandbox import Sandbox, make_sandbox
from mcpfactory_runtime.client import Client, ConnectionLostError, HttpError, ProtocolError
from mcpfactory_runtime.errors import McpfactoryError

__all__ = ["StartRequest", "start_servers"]

_MOST: Final = 5_000  # tools that are kept of one server
_AT_ONCE: Final = 2
_REFERENCE: Final = re.compile(
    r"\$\{(?:env:)?([A-Za-z_]\w*)(?::?-[^}]*)?\}|\{env:([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)|%([A-Za-z_]\w*)%"
)
_WORDS: Final = 300  # characters of what a server says that are told


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
    hidden = {} if request.with_secrets else _canaries(server)
    try:
        async with asyncio.timeout(request.timeout):
            if server.address:
                return await _ask(_remote(server, request, environ), hidden)
            with tempfile.TemporaryDirectory(prefix="mcpfactory-audit-", ignore_cleanup_errors=True) as work:
                return await _ask(_local(server, request, environ, hidden, Path(work)), hidden)
    except TimeoutError:
        return OfferedTools(problem=f"it did not list its tools within {request.timeout:g} seconds")
    except HttpError as error:
        return OfferedTools(problem=_refusal(error))
    except (ConnectionLostError, ProtocolError, McpfactoryError, OSError, ValueError) as error:
        return OfferedTools(problem=f"it could not be asked: {_told(error)}")
    except Exception as error:  # noqa: BLE001 - whatever a stranger's server does is a row of the report
        return OfferedTools(problem=f"it could not be asked: {type(error).__name__}")


def _refusal(error: HttpError) -> str:
    status = getattr(error, "status", 0)
    if status in {401, 403}:
        return f"it wants a login (HTTP {status}), and was not looked at"
    return f"it could not be asked: {_told(error)}"


def _told(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text[:_WORDS] or type(error).__name__


def _canaries(server: ConfiguredServer) -> dict[str, str]:
    """Return what stands in for each secret of a command: a value that no server can know."""
    named = {one.name for one in server.secrets if one.place in {"environment", "arguments"}} | set(server.passed)
    return {name: f"canary-{secrets.token_hex(12)}" for name in sorted(named)}


def _remote(server: ConfiguredServer, request: StartRequest, environ: Mapping[str, str]) -> Client:
    closed = {one.name for one in server.secrets if one.place == "headers"}
    headers = {
        name: _resolved(value, environ)
        for name, value in server.headers.items()
        if request.with_secrets or (name not in closed and not _REFERENCE.search(value) and not is_reference(value))
    }
    return Client.connect_http(server.address, headers, timeout=request.timeout)


def _local(
    server: ConfiguredServer, request: StartRequest, environ: Mapping[str, str], hidden: Mapping[str, str], work: Path
) -> Client:
    folder = (
        Path(server.folder).expanduser()
        if server.folder
        else server.file.path.parent
        if server.scope == "project"
        else None
    )
    sandbox = make_sandbox({"isolation": request.isolation}, work, readable=tuple(_readable(server, folder)))
    sandbox.folder.mkdir(exist_ok=True)
    command = sandbox.command([_found(server.words[0]), *_arguments(server, hidden)])
    return Client.connect_stdio(
        command,
        env=_environment(server, sandbox, request, environ, hidden),
        cwd=folder if folder is not None and folder.is_dir() else sandbox.folder,
        inherit=False,
        timeout=request.timeout,
    )


def _found(word: str) -> str:
    if re.search(r"[/\\]", word):
        return str(Path(word).expanduser())
    found = shutil.which(word)
    if found is None:
        raise PipelineError(f"there is no program {word}", hint="install it, or remove the entry")
    return found


def _arguments(server: ConfiguredServer, hidden: Mapping[str, str]) -> list[str]:
    """Return the words behind the program, with what stands in for each secret in them."""
    words = list(server.words[1:])
    for one in sorted(server.secrets, key=lambda one: len(one.value), reverse=True):
        if one.name in hidden:
            forms = "|".join(map(re.escape, dict.fromkeys((one.value, quote(one.value, safe="")))))
            whole = re.compile(rf"(?<!\w)(?:{forms})(?!\w)")  # a password of one letter stands in many words
            words = [whole.sub(hidden[one.name], word) for word in words]
    return words


def _environment(
    server: ConfiguredServer,
    sandbox: Sandbox,
    request: StartRequest,
    environ: Mapping[str, str],
    hidden: Mapping[str, str],
) -> dict[str, str]:
    given = {name: hidden.get(name) or _resolved(value, environ) for name, value in server.environ.items()}
    passed = {name: hidden.get(name, "") for name in server.passed}
    if request.with_secrets:
        passed = {name: environ[name] for name in server.passed if name in environ}
    return {**sandbox.environ, **passed, **given}


def _resolved(value: str, environ: Mapping[str, str]) -> str:
    return _REFERENCE.sub(lambda found: environ.get(next(filter(None, found.groups())), ""), value)


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


async def _ask(client: Client, hidden: Mapping[str, str]) -> OfferedTools:
    async with client:
        tools: list[Any] = await client.list_tools(keep_invalid=True) if "tools" in client.capabilities else []
        kept = tuple(tool for tool in tools[:_MOST] if isinstance(tool, dict) and isinstance(tool.get("name"), str))
        said = json.dumps([kept, client.instructions], ensure_ascii=False)
        leaked = tuple(name for name, value in hidden.items() if value in said)
        return OfferedTools(
            kept, str(client.instructions or ""), str(client.server_info.get("version") or ""), leaked=leaked
        )
