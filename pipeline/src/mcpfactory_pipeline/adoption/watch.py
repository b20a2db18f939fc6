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
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

__all__ = ["Watched", "watch"]


@dataclass(frozen=True, slots=True)
class Watched:
    """One difference: `kind` is `version`, `replaced` or `offers`; `command` is what to type next."""

    kind: str
    message: str
    means: str
    command: str


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
                    "version", f"it cannot be looked at: {error}", means, f"mcpfactory inbox --refresh {server.name}"
                )
            ]


def _offers(server: WorkspaceServer, work: Path) -> Iterator[Watched]:
    del work
    assert server.adopted is not None  # the caller looked
    url = server.adopted.url
    before = remote.read_offers((server.folder / LOCKS["url"]).read_bytes())
    if changes := remote.changed_offers(before, asyncio.run(remote.ask_offers(url))):
        message = f"{url} offers something else than was adopted: {remote.shorten(changes)}"
        means = "callers get tools that nobody looked at: a description can tell a model what to do"
        yield Watched("offers", message, means, f"mcpfactory adopt {url} --name {server.name}")


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
    return Watched("replaced", message, means, f"mcpfactory pipeline history {server.name}")


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
