"""Documents of the list as files: fetched at first use, checked by their hash, kept."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.apis.packages import PackageError, files
from benchmarks.apis.parts import digest, parts_of
from benchmarks.apis.table import DOCUMENTS, Document
from benchmarks.bench.peers import home

__all__ = ["Document", "DocumentError", "path", "select"]


class DocumentError(Exception):
    """A document cannot be had: which, why, and what to do."""


def select(names: Iterable[str] | str) -> list[Document]:
    """Documents by their names; all when there are none.

    Args:
        names: of the list, or as text, separated by commas.

    Raises:
        DocumentError: the list has no such name.
    """
    wanted = [name for name in (names.split(",") if isinstance(names, str) else names) if name]
    if unknown := [name for name in wanted if name not in DOCUMENTS]:
        raise DocumentError(f"no document is called {', '.join(unknown)}\nhint: there are {', '.join(DOCUMENTS)}")
    return [DOCUMENTS[name] for name in wanted or DOCUMENTS]


def path(document: Document | str) -> Path:
    """The file of a document, which is fetched when it is not here yet; of one in several files the main one, beside the others.

    Other documents of the same package come with it: a package is fetched once.

    Raises:
        DocumentError: it cannot be fetched, or is another than the list says.
    """
    one = select([document])[0] if isinstance(document, str) else document
    folder = home() / "documents"
    if not (folder / one.file).exists():
        _fetch(one, folder)
    return folder / one.file


def _fetch(wanted: Document, folder: Path) -> None:
    source = _source(wanted)
    beside = [one for one in DOCUMENTS.values() if _source(one) == source and not (folder / one.file).exists()]
    missing = {wanted, *beside}
    try:
        contents = files(*source, {one.wanted for one in missing})
    except PackageError as error:
        raise DocumentError(f"document {wanted.name}: {error}") from None
    for one in missing:
        _keep(one, parts_of(one, contents), folder)


def _source(one: Document) -> tuple[str, str, str]:
    return one.registry, one.package, one.version


def _keep(one: Document, parts: dict[str, bytes], folder: Path) -> None:
    """Keep a document under its name; it is there as a whole or not at all."""
    found = digest(parts)
    if found != one.sha256:
        raise DocumentError(
            f"document {one.name}: {one.path} of {one.package} {one.version} has the SHA-256 {found}, and the list says {one.sha256}\n"
            "hint: published packages do not change: ask where this one comes from before its row is corrected"
        )
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".new-", dir=folder) as aside:
        for name, content in parts.items():
            file = Path(aside, one.kept_as, name) if one.folder else Path(aside, one.kept_as)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        if not (folder / one.kept_as).exists():  # another process may have been quicker
            Path(aside, one.kept_as).rename(folder / one.kept_as)
