"""A document as the files that it consists of: which they are, their hash, and what they say of themselves."""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Mapping
from typing import Any

import yaml

from benchmarks.apis.table import Document

__all__ = ["METHODS", "described", "digest", "parsed", "parts_of"]

METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"})


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


def described(main: str, parts: Mapping[str, bytes]) -> tuple[str, int]:
    """The version that a document says, and how many operations its paths have, those in other files among them."""
    data = parsed(parts[main])
    paths = _elsewhere(data.get("paths") or {}, main, parts)
    items = [_elsewhere(item, main, parts) for item in paths.values() if isinstance(item, dict)]
    return str(data.get("openapi") or data["swagger"]), sum(len(METHODS & item.keys()) for item in items)


def _elsewhere(node: dict[str, Any], main: str, parts: Mapping[str, bytes]) -> dict[str, Any]:
    """What stands in another file, where the node leads there."""
    file, _, pointer = str(node.get("$ref", "")).partition("#")
    place = posixpath.normpath(posixpath.join(posixpath.dirname(main), file))
    if not file or place not in parts:
        return node
    found = parsed(parts[place])
    for key in pointer.split("/")[1:]:
        found = found[key.replace("~1", "/").replace("~0", "~")]
    return found if isinstance(found, dict) else {}


def parsed(content: bytes) -> Any:
    """The data of a JSON or YAML file.

    Raises:
        ValueError: it is neither.
    """
    if content.lstrip().startswith(b"{"):
        return json.loads(content)
    try:
        return yaml.load(content, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
