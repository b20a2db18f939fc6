"""The tools of an API as vectors of a sentence model: computed once, kept in a file, compared with a question.

What was computed is kept in `mcpfactory/search` of the user's cache folder (XDG_CACHE_HOME, else
~/.cache), under a name that changes with the model's files and with what is said of any tool.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np

from mcpfactory_runtime.server.generated.search_encoder import Encoder, Vectors
from mcpfactory_runtime.server.generated.search_index import IndexedTool
from mcpfactory_runtime.server.generated.search_model import read_model

__all__ = ["ToolVectors", "cache_folder", "tool_text"]

_DESCRIPTION: Final = 300  # characters
_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_FORMAT: Final = "2"  # changes with what a tool is told as, and with how vectors are computed
_VARIABLE: Final = re.compile(r"\{[^{}]*\}|/v\d+(?=/|$)")


class ToolVectors:
    """Finds tools that are near to a question in meaning, by their numbers."""

    def __init__(self, model: Path, entries: Sequence[IndexedTool], cache: Path) -> None:
        """Compute or load the vectors of all entries.

        Raises:
            ModelError: the model cannot be used.
            OSError: its weights cannot be read.
        """
        texts = [tool_text(entry) for entry in entries]
        self._encoder = Encoder(read_model(model))
        file = cache / f"{_digest(model, texts)}.npy"
        kept = _kept(file, (len(texts), self._encoder.width))
        if kept is None:
            kept = self._encoder.encode(texts)
            _keep(file, kept)
        self._vectors = kept

    def nearest(self, question: str, limit: int, within: Collection[int] | None = None) -> list[int]:
        """Return the numbers of the nearest entries, nearest first; `within` narrows which may be found."""
        nearness = self._vectors @ self._encoder.encode([question])[0]
        order = [int(number) for number in np.argsort(-nearness, kind="stable")]
        if within is not None:
            chosen = frozenset(within)
            order = [number for number in order if number in chosen]
        return order[:limit]


def tool_text(entry: IndexedTool) -> str:
    """Return what a model reads of a tool: its name and path in words, its title and the beginning of its description."""
    path = _words(_VARIABLE.sub("", entry.path))
    return f"{_words(entry.name)}. {entry.title}. {path}. {entry.description[:_DESCRIPTION]}"


def _words(name: str) -> str:
    return " ".join(_PARTS.findall(name)).lower()


def cache_folder() -> Path:
    """Return where vectors are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mcpfactory" / "search"


def _digest(model: Path, texts: Sequence[str]) -> str:
    digest = hashlib.sha256(f"{_FORMAT}\0".encode())
    for name in ("config.json", "tokenizer.json", "model.safetensors", "1_Pooling/config.json"):
        try:
            facts = (model / name).stat()
        except FileNotFoundError:  # pooling is not always said
            continue
        digest.update(f"{(model / name).resolve()}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode())
    for text in texts:
        digest.update(text.encode(errors="replace") + b"\0")
    return digest.hexdigest()[:32]


def _kept(file: Path, shape: tuple[int, int]) -> Vectors | None:
    """Return the vectors of a file; None where it has none of this shape, whatever else it has."""
    try:
        vectors = np.load(file, mmap_mode="r", allow_pickle=False)  # mapped: its header cannot ask for memory
    except (OSError, ValueError, EOFError):
        return None
    whole = isinstance(vectors, np.ndarray) and vectors.shape == shape and vectors.dtype == np.float16
    return vectors.astype(np.float32) if whole else None


def _keep(file: Path, vectors: Vectors) -> None:
    """Write vectors whole or not at all; a folder that cannot be written costs the next start some time."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # A name of its own: processes of two containers that share the folder have the same number.
        descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                np.save(stream, vectors.astype(np.float16))
            Path(name).replace(file)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError:
        return
