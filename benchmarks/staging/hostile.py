"""Whether a document has anything to call at all, counted without the factory: else no server can be made of it."""

from __future__ import annotations

from pathlib import Path

from benchmarks.apis.parts import METHODS, parsed

__all__ = ["hostility"]


def hostility(file: Path) -> str:
    """Why no server can be made of a document: it has no operation. "" when it has, or when another file may have it."""
    try:
        data = parsed(file.read_bytes())
    except ValueError:  # whatever it is, that it is hostile is not known
        return ""
    if not isinstance(data, dict):
        return ""
    paths = data.get("paths")
    found = [paths, *paths.values()] if isinstance(paths, dict) else []
    if any("$ref" in one or one.keys() & METHODS for one in found if isinstance(one, dict)):
        return ""
    return "no operation, webhooks only" if data.get("webhooks") else "no operation"
