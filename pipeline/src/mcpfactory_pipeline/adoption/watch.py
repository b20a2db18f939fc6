"""Whether an adopted server is still what was adopted: a newer version, a file that was replaced, or another offer at its URL."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.adoption import npm, pypi, remote
from mcpfactory_pipeline.adoption.kinds import KINDS
from mcpfactory_pipeline.adoption.sources import LOCKS
from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.base.hashing import hash_record
from mcpfactory_pipeline.build.programs import ProgramRefusedError
from mcpfactory_pipeline.workspace.adopted import Adopted
from mcpfactory_pipeline.workspace.known_drift import (
    STOPPING,
    KnownDrift,
    offered_now,
    read_known_drift,
    write_known_drift,
)
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

__all__ = ["Watched", "look_now", "note_seen", "watch"]


@dataclass(frozen=True, slots=True)
class Watched:
    """One difference: `kind` is `version`, `replaced` or `offers`; `command` is what to type next. `unanswered`: nobody could look.

    `offer` is the hash of what is there instead, for those that stop a server.
    """

    kind: str
    message: str
    means: str
    command: str
    offer: str = ""
    unanswered: bool = False


def watch(server: WorkspaceServer) -> list[Watched]:
    """Return how what was adopted differs from what is there now; an index, a registry or the server itself is asked.

    What does not answer is told, too: then nobody knows.
    """
    adopted = server.adopted
    look = _LOOKS.get(adopted.kind) if adopted else None
    if look is None:
        return []
    with tempfile.TemporaryDirectory(prefix="mcpfactory-watch-") as work:
        try:
            return list(look(server, Path(work)))
        except (PipelineError, ProgramRefusedError, OSError) as error:
            means = "whether it is still what was adopted is not known"
            return [
                Watched(
                    "version",
                    f"it cannot be looked at: {error}",
                    means,
                    f"mcpfactory inbox --refresh {server.name}",
                    unanswered=True,
                )
            ]


def note_seen(server: WorkspaceServer, seen: Sequence[Watched]) -> None:
    """Write down what stops a server (`known_drift`) of what was seen of it; where nobody answered, what was known stays.

    Raises:
        OSError: it cannot be written.
    """
    if server.adopted is not None and not any(one.unanswered for one in seen):
        known = [one for one in seen if one.kind in STOPPING]
        facts = [KnownDrift(one.kind, one.message, one.means, one.command, one.offer) for one in known]
        write_known_drift(server.folder, server.adopted, facts)


def _offers(server: WorkspaceServer, work: Path) -> Iterator[Watched]:
    del work
    assert server.adopted is not None  # the caller looked
    url = server.adopted.url
    changed, offer = asyncio.run(_offered_otherwise(url, (server.folder / LOCKS["url"]).read_bytes()))
    if changed:
        message = f"{url} offers something else than was adopted: {changed}"
        means = "callers get tools that nobody looked at: a description can tell a model what to do"
        yield Watched("offers", message, means, f"mcpfactory adopt {url} --name {server.name}", offer)


async def look_now(adopted: Adopted, folder: Path, offers: Path) -> tuple[tuple[str, ...] | None, str]:
    """Return how a server is no longer what was adopted, and the hash of what is there instead; None where nobody can tell: its kind is not watched.

    A server at a URL is asked, and compared with what was written down in the file `offers`; of a package it is what was
    found when its index or registry was asked last.

    Raises:
        ServerError: it does not answer.
        ProgramRefusedError: what was written down cannot be read.
    """
    if adopted.kind not in _LOOKS:
        return None, ""
    if adopted.kind != "url":
        known = read_known_drift(folder, adopted)
        return tuple(one.message for one in known), offered_now(known)
    changed, offer = await _offered_otherwise(adopted.url, await asyncio.to_thread(offers.read_bytes))
    return ((f"it offers something else than was adopted: {changed}",), offer) if changed else ((), "")


async def _offered_otherwise(url: str, offers: bytes) -> tuple[str, str]:
    """Return in words how what a URL offers now differs from what was written down ("" where it does not), and the hash of what it offers."""
    before, now = remote.read_offers(offers), await remote.ask_offers(url)
    return remote.shorten(remote.changed_offers(before, now)), remote.hash_offers(now)


def _wheel(server: WorkspaceServer, work: Path) -> Iterator[Watched]:
    assert server.adopted is not None  # the caller looked
    adopted = server.adopted
    try:
        pypi.find_wheel(f"{adopted.package}=={adopted.version}", work, wanted=adopted.hash)
    except ProgramRefusedError as error:
        files = error.hashes if isinstance(error, pypi.OtherFilesError) else ()
        yield _replaced(server, str(error), hash_record(dict.fromkeys(files, "wheel")))
    yield from _newer(server, f"pypi:{adopted.package}==", work)


def _tarball(server: WorkspaceServer, work: Path) -> Iterator[Watched]:
    assert server.adopted is not None  # the caller looked
    adopted = server.adopted
    gone = ""
    try:
        there = json.loads(
            npm.run_npm("view", f"{adopted.package}@{adopted.version}", "dist.integrity", "--json", cwd=work, log=False)
            or '""'
        )
    except ProgramRefusedError as error:
        there, gone = None, str(error)
    if there != adopted.hash:
        yield _replaced(
            server,
            f"the registry has {there or gone or 'nothing'} for {adopted.package} {adopted.version}, and {adopted.hash} was adopted",
            hash_record({"tarball": str(there or "")}),
        )
    yield from _newer(server, f"npm:{adopted.package}@", work)


def _replaced(server: WorkspaceServer, message: str, offer: str) -> Watched:
    means = "what is in channels stays as it is; a machine that has not its files cannot get them again"
    command = f"mcpfactory adopt {server.adopted.again} --name {server.name}" if server.adopted else ""
    return Watched("replaced", message, means, command, offer)


def _newer(server: WorkspaceServer, form: str, work: Path) -> Iterator[Watched]:
    assert server.adopted is not None  # the caller looked
    ask = KINDS[server.adopted.kind].newest
    newest = ask(server.adopted, work) if ask else ""
    if newest and newest != server.adopted.version:
        message = f"{server.adopted.package} has {newest}, and {server.adopted.version} was adopted"
        means = "callers stay with what was checked until the newer one is adopted and promoted"
        yield Watched("version", message, means, f"mcpfactory adopt {form}{newest} --name {server.name}")


_LOOKS: Final[Mapping[str, Callable[[WorkspaceServer, Path], Iterator[Watched]]]] = {
    "pypi": _wheel,
    "npm": _tarball,
    "url": _offers,
}
