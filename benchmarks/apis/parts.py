"""The files that an API document consists of, and their hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from benchmarks.apis.table import Document


def parts_of(one: Document, contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of a document among those of its package, by their place below its folder; one file by its path.

    Raises:
        KeyError: its main file is not among them.
    """
    if not one.folder:
        return {one.path: contents[one.path]}
    parts = {name.removeprefix(one.wanted): text for name, text in contents.items() if name.startswith(one.wanted)}
    return {one.main: parts[one.main], **dict(sorted(parts.items()))}


def digest(parts: Mapping[str, bytes]) -> str:
    """The SHA-256 of a document: of its file, or of the places and hashes of all its files."""
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}
    if len(hashes) == 1:
        return next(iter(hashes.values()))
    return hashlib.sha256("".join(f"{name}\0{hashes[name]}\n" for name in sorted(hashes)).encode()).hexdigest()
