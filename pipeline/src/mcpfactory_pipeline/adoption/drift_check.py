"""Drift checks of adopted servers: newer versions, replaced files, and changed offers at a URL."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from mcpfactory_codegen.servers.config import AdoptedSettings
from mcpfactory_pipeline.adoption import npm, pypi, remote_offers
from mcpfactory_pipeline.adoption.candidate import KINDS
from mcpfactory_pipeline.adoption.sources import LOCKS
from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.base.hashing import hash_named_texts
from mcpfactory_pipeline.build.programs import ToolRejectedInputError
from mcpfactory_pipeline.workspace.adopted import STOPPING, Drift, read_known_drift, replacement_hash, write_known_drift
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer


def check_adopted_drift(server: WorkspaceServer) -> list[Drift]:
    """Return the differences (`version`, `replaced` or `offers`) from the adopted version.

    If a source does not respond, a `version` difference with `unanswered` is returned.
    """
    adopted = server.adopted
    check = _CHECKS.get(adopted.kind) if adopted else None
    if adopted is None or check is None:
        return []
    with tempfile.TemporaryDirectory(prefix="mcpfactory-watch-") as work:
        try:
            return list(check(server, adopted, Path(work)))
        except (PipelineError, ToolRejectedInputError, OSError) as error:
            message, means = f"the current version is unknown: {error}", "drift from the adopted version is unknown"
            return [Drift("version", message, means, f"mcpfactory inbox --refresh {server.name}", unanswered=True)]


def record_known_drift(server: WorkspaceServer, seen: Sequence[Drift]) -> None:
    """Record the differences that stop a server (`known_drift`). If a source did not respond, keep the old record."""
    if server.adopted is not None and not any(one.unanswered for one in seen):
        write_known_drift(server.folder, server.adopted, [one for one in seen if one.kind in STOPPING])


def _offers(server: WorkspaceServer, adopted: AdoptedSettings, _work: Path) -> Iterator[Drift]:
    url = adopted.url
    changed, offer = asyncio.run(_offered_otherwise(url, (server.folder / LOCKS["url"]).read_bytes()))
    if changed:
        message = f"{url} offers something else than was adopted: {changed}"
        means = "callers get tools that nobody reviewed: a description can tell a model what to do"
        yield Drift("offers", message, means, f"mcpfactory adopt {url} --name {server.name}", offer=offer)


async def compare_with_adopted(
    adopted: AdoptedSettings, folder: Path, offers: Path
) -> tuple[tuple[str, ...] | None, str]:
    """Return the differences from the adopted version, and the hash of the current offer.

    A server at a URL is queried. Current offers are compared with the file `offers`. For a package, the recorded
    differences are returned.
    """
    if adopted.kind not in _CHECKS:
        return None, ""
    if adopted.kind != "url":
        known = read_known_drift(folder, adopted)
        return tuple(one.message for one in known), replacement_hash(known)
    changed, offer = await _offered_otherwise(adopted.url, await asyncio.to_thread(offers.read_bytes))
    return ((f"it offers something else than was adopted: {changed}",), offer) if changed else ((), "")


async def _offered_otherwise(url: str, offers: bytes) -> tuple[str, str]:
    before, now = remote_offers.parse_offers(offers), await remote_offers.fetch_offers(url)
    return remote_offers.summarize_offer_changes(
        remote_offers.describe_offer_changes(before, now)
    ), remote_offers.hash_offers(now)


def _wheel(server: WorkspaceServer, adopted: AdoptedSettings, work: Path) -> Iterator[Drift]:
    try:
        pypi.find_wheel(f"{adopted.package}=={adopted.version}", work, wanted=adopted.hash)
    except ToolRejectedInputError as error:
        files = error.hashes if isinstance(error, pypi.WheelHashMismatchError) else ()
        yield _replaced(server, adopted, str(error), hash_named_texts(dict.fromkeys(files, "wheel")))
    yield from _newer(server, adopted, f"pypi:{adopted.package}==", work)


def _tarball(server: WorkspaceServer, adopted: AdoptedSettings, work: Path) -> Iterator[Drift]:
    there, gone, wanted = "", "", f"{adopted.package}@{adopted.version}"
    try:
        there = str(json.loads(npm.run_npm("view", wanted, "dist.integrity", "--json", cwd=work, log=False) or '""'))
    except ToolRejectedInputError as error:
        gone = str(error)
    if there != adopted.hash:
        has = f"the registry has {there or gone or 'nothing'} for {adopted.package} {adopted.version}"
        yield _replaced(server, adopted, f"{has}, and {adopted.hash} was adopted", hash_named_texts({"tarball": there}))
    yield from _newer(server, adopted, f"npm:{adopted.package}@", work)


def _replaced(server: WorkspaceServer, adopted: AdoptedSettings, message: str, offer: str) -> Drift:
    means = "channels stay unchanged; a machine without the adopted files cannot download them"
    again = f"mcpfactory adopt {adopted.again} --name {server.name}"
    return Drift("replaced", message, means, again, offer=offer)


def _newer(server: WorkspaceServer, adopted: AdoptedSettings, form: str, work: Path) -> Iterator[Drift]:
    ask = KINDS[adopted.kind].newest
    newest = ask(adopted.package, work) if ask else ""
    if newest and newest != adopted.version:
        message = f"{adopted.package} has {newest}, and {adopted.version} was adopted"
        means = "callers keep the checked version until the newer one is adopted and promoted"
        yield Drift("version", message, means, f"mcpfactory adopt {form}{newest} --name {server.name}")


_CHECKS: Final[Mapping[str, Callable[[WorkspaceServer, AdoptedSettings, Path], Iterator[Drift]]]] = {
    "pypi": _wheel,
    "npm": _tarball,
    "url": _offers,
}
