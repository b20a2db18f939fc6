"""References that lead nowhere as they are written, and where they were meant to lead. Pure: only texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

__all__ = ["candidates"]

_GROUP: Final = "schemas|parameters|responses|requestBodies|headers|securitySchemes|examples|pathItems"
_TARGET: Final = re.compile(
    rf"#?/?((?:components/(?:{_GROUP})|definitions|parameters|responses|securityDefinitions)/.+)"
)
_BARE: Final = re.compile(r"#?/?[\w.-]+(?<!\.json)(?<!\.yaml)(?<!\.yml)")
_OLD: Final = {"definitions": "schemas", "parameters": "parameters", "responses": "responses"}


def candidates(reference: str, data: Any) -> Iterator[list[str]]:
    """Where a reference that leads nowhere may have been meant to lead, as tokens of a pointer from the top."""
    text = reference.strip()
    old = isinstance(data, dict) and "swagger" in data
    if _BARE.fullmatch(text) and text != "#":
        name = text.lstrip("#/")
        yield ["definitions", name] if old else ["components", "schemas", name]
    match = _TARGET.fullmatch(text)
    if match is None:
        return
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in unquote(match[1]).split("/")]
    yield tokens
    if tokens[0] == "components" and len(tokens) > 2:
        group = next((key for key, value in _OLD.items() if value == tokens[1]), tokens[1])
        yield [group, *tokens[2:]]
    elif tokens[0] in _OLD:
        yield ["components", _OLD[tokens[0]], *tokens[1:]]
