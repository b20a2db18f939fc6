"""A tool list with words that belong to other tools: what passes with it as well, passes whatever the list says. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["DAMAGES", "reword"]

DAMAGES: Final[Mapping[str, str]] = {
    "shuffled": "each tool has the title and description of another one, and its arguments have none",
    "renamed": "each tool has the name of another one",
    "swapped": "each tool has all of these of another one: only the names of its arguments are its own",
}

_TEXTS: Final = ("title", "description")
_NAMED: Final = ("properties", "$defs", "definitions", "patternProperties")  # whose members have names of their own


def reword(tools: Sequence[Mapping[str, Any]], words: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the list in other words, and which tool of it each shown name stands for where that is another.

    Tools trade with the one that is half a list away, so that none keeps its own, and neighbours, which are often alike, do not trade.

    Args:
        tools: as the server lists them.
        words: `own` leaves them, the others are those of `DAMAGES`.
    """
    if words == "own":
        return [dict(tool) for tool in tools], {}
    half = len(tools) // 2
    givers = [tools[(number + half) % len(tools)] for number in range(len(tools))]
    pairs = list(zip(tools, givers, strict=True))
    shown = [dict(tool) if words == "renamed" else _with_texts(tool, giver) for tool, giver in pairs]
    if words == "shuffled":
        return shown, {}
    named = [{**tool, "name": giver["name"]} for tool, (_, giver) in zip(shown, pairs, strict=True)]
    return named, {str(giver["name"]): str(tool["name"]) for tool, giver in pairs}


def _with_texts(tool: Mapping[str, Any], giver: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in tool.items() if key not in _TEXTS}
    own["inputSchema"] = _without_texts(tool["inputSchema"])
    return own | {key: giver[key] for key in _TEXTS if key in giver}


def _without_texts(schema: Any) -> Any:
    """Return a schema without what it says in words; names of arguments, also such as `title`, stay."""
    if isinstance(schema, list):
        return [_without_texts(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: {name: _without_texts(one) for name, one in value.items()}
        if key in _NAMED and isinstance(value, Mapping)
        else _without_texts(value)
        for key, value in schema.items()
        if key not in {*_TEXTS, "examples"}
    }
