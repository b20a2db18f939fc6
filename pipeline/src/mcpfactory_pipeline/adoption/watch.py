"""Whether an adopted server is still what was adopted: a newer version, a file that was replaced, or another offer at its URL."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.adoption import npm, pypi, remote
from mcpfactory_pipeline.adoption.kinds import KINDS
from mcpfactory_pipeline.adoption.sources import LOCKS
from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.build.programs import ProgramRefusedError
from mcpfactory_pipeline.workspace.adopted import Adopted
from mcpfactory_pipeline.workspace.known_drift import read_known_drift
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

__all__ = ["Watched", "drift_words", "watch"]


@dataclass(frozen=True, slots=True)
class Watched:
    """One difference: `kind` is `version`, `replaced` or `offers`; `command` is what to type next. `unknown`: nobody could look."""

    kind: str
    message: str
    means: str
    command: str
    unknown: bool = False


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
        except (PipelineError, ProgramRefusedError) as error:
            means = "whether it is still what was adopted is not known"
            return [
                Watched(
                    "version",
                    f"it cannot be looked at: {error}",
                    means,
                    f"mcpfactory inbox --refresh {server.name}",
                    unknown=True,
                )
            ]


def _offers(server: WorkspaceServer, work: Path) -> Iterator[Watched]:
    del work
    assert server.adopted is not None  # the caller looked
    url = server.adopted.url
    if changed := asyncio.run(_offered_otherwise(url, (server.folder / LOCKS["url"]).read_bytes())):
        message = f"{url} offers something else than was adopted: {changed}"
        means = "callers get tools that nobody looked at: a description can tell a model what to do"
        yield Watched("offers", message, means, f"mcpfactory adopt {url} --name {server.name}")


async def drift_words(adopted: Adopted, folder: Path, offers: Path) -> tuple[str, ...] | None:
    """Return how a server is no longer what was adopted; None where nobody can tell: its kind is not watched.

    A server at a URL is asked, and compared with what was written down in the file `offers`; of a package it is what was
    found when its index or registry was asked last.

    Raises:
        ServerError: it does not answer.
        ProgramRefusedError: what was written down cannot be read.
    """
    if adopted.kind not in _LOOKS:
        return None
    if adopted.kind != "url":
        return tuple(one.message for one in read_known_drift(folder, adopted))
    changed = await _offered_otherwise(adopted.url, await asyncio.to_thread(offers.read_bytes))
    return (f"it offers something else than was adopted: {changed}",) if changed else ()


async def _offered_otherwise(url: str, offers: bytes) -> str:
    """Return in words how what a URL offers now differs from what was written down; "" where it does not."""
    return remote.shorten(remote.changed_offers(remote.read_offers(offers), await remote.ask_offers(url)))


def _wheel(server: WorkspaceServer, work: Path) -> Iterator[Watched]:
    assert server.adopted is not None  # the caller looked
    adopted = server.adopted
    try:
        pypi.find_wheel(f"{adopted.package}=={adopted.version}", work, wanted=adopted.hash)
    except ProgramRefusedError as error:
        yield _replaced(server, str(error))
    yield from _newer(server, f"pypi:{adopted.package}==", work)


def _tarball(server: WorkspaceServer, work: Path) -> Iterator[Watched]:
    assert server.adopted is not None  # the caller looked
    adopted = server.adopted
    try:
        there = json.loads(
            npm.run_npm("view", f"{adopted.package}@{adopted.version}", "dist.integrity", "--json", cwd=work, log=False)
            or '""'
        )
    except ProgramRefusedError as error:
        there = str(error)
    if there != adopted.hash:
        yield _replaced(
            server,
            f"the registry has {there or 'nothing'} for {adopted.package} {adopted.version}, and {adopted.hash} was adopted",
        )
    yield from _newer(server, f"npm:{adopted.package}@", work)


def _replaced(server: WorkspaceServer, message: str) -> Watched:
    means = "what is in channels stays as it is; a machine that has not its files cannot get them again"
    command = f"mcpfactory adopt {server.adopted.again} --name {server.name}" if server.adopted else ""
    return Watched("replaced", message, means, command)


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
