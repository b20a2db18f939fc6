"""Arguments of generated tools: one that was not given, which is not null, and one text that stands for several."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any, Final, Literal

from mcpfactory_runtime.server.errors import ToolError

__all__ = ["UNSET", "Unset", "piece"]


class Unset(Enum):
    """The type of UNSET, for annotations: `limit: int | Unset = UNSET`.

    An enumeration with one member, because type checkers narrow those by `is`, and copies stay the same object.
    """

    UNSET = "UNSET"

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""The argument was not given: it is left out of the request."""


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
