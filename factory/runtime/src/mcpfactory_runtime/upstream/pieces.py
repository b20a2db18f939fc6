"""An argument that stands for several of the API's: its pieces."""

from __future__ import annotations

import json
from typing import Any

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.unset import Unset

__all__ = ["piece"]


def piece(text: str | Unset, separator: str, index: int, count: int, kind: str) -> Any:
    """One of the `count` pieces of a text, as the JSON type `kind`; UNSET when the text is.

    Raises:
        ToolError: the text has another number of pieces, or the piece is no value of that type.
    """
    if isinstance(text, Unset):
        return text
    pieces = [one.strip() for one in text.split(separator)]
    if len(pieces) != count:
        raise ToolError(f"{text!r} has {len(pieces)} parts; {count} are needed, with {separator!r} between them.")
    if kind not in {"integer", "number", "boolean"}:
        return pieces[index]
    try:
        value = json.loads(pieces[index])
    except ValueError:
        value = None
    fits = {"integer": type(value) is int, "number": type(value) in (int, float), "boolean": type(value) is bool}
    if not fits[kind]:
        raise ToolError(f"The part {pieces[index]!r} of {text!r} has to be of type {kind}.")
    return value
