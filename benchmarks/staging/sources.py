"""Which documents are sent: those of the list, or files from elsewhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.apis import path, select
from benchmarks.staging.arrival import Source

__all__ = ["from_files", "from_folder", "from_list"]

ENDINGS = (".json", ".yaml", ".yml")
_SAYS = re.compile(
    rb"""^\s*[{]?\s*["']?(openapi|swagger)["']?\s*:|["'](openapi|swagger)["']\s*:\s*["']""", re.MULTILINE
)


def from_list(names: str, which: str) -> Iterator[Source]:
    """Documents of `benchmarks/apis/documents.tsv`, fetched when they are not here.

    Args:
        names: separated by commas; "" for all.
        which: the set to take, when no names are given: `tuning`, `apart` or `all`.

    Raises:
        DocumentError: there is no such name, or it cannot be had.
    """
    for one in select(names):
        if names or which in {"all", one.set}:
            yield Source(one.name, path(one), one.kind, one.operations, one.sha256)


def from_files(files: Iterable[Path]) -> Iterator[Source]:
    """Documents from elsewhere, by their file names.

    Raises:
        OSError: a file cannot be read.
    """
    seen: dict[str, int] = {}
    for file in files:
        content = file.read_bytes()
        name = re.sub(r"[^a-z0-9]+", "-", file.stem.lower()).strip("-")[:40] or "api"
        name = name if name[0].isalpha() else f"api-{name}"
        seen[name] = seen.get(name, 0) + 1
        unique = name if seen[name] == 1 else f"{name}-{seen[name]}"
        yield Source(unique, file.resolve(), "file", 0, hashlib.sha256(content).hexdigest())


def from_folder(folder: Path) -> Iterator[Source]:
    """The documents of a folder, and below: files that say a version of OpenAPI or Swagger."""
    found = sorted(one for one in folder.rglob("*") if one.suffix in ENDINGS and one.is_file())
    yield from from_files(one for one in found if _SAYS.search(one.read_bytes()))
