"""Results that are kept, so that a run that was broken off is continued: by document and by the version of the code."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

from benchmarks.peers import home
from benchmarks.staging.arrival import Arrival, Source

__all__ = ["code_digest", "keep", "kept"]

ROOT = Path(__file__).resolve().parents[2]
CODE = ("factory", "pipeline/src", "templates")


@cache
def code_digest() -> str:
    """A hash of the sources that a result depends on."""
    total = hashlib.sha256()
    for folder in CODE:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                total.update(f"{file.relative_to(ROOT)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def kept(source: Source) -> Arrival | None:
    """What became of this document with this code, if it was sent before."""
    try:
        return Arrival.from_json(json.loads(_file(source).read_text("utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def keep(source: Source, arrival: Arrival) -> None:
    """Keep what became of a document."""
    file = _file(source)
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_suffix(".new")
    aside.write_text(json.dumps(arrival.as_json()), encoding="utf-8")
    aside.replace(file)


def _file(source: Source) -> Path:
    return home() / "staging" / code_digest()[:16] / f"{source.name}-{source.digest[:16]}.json"
