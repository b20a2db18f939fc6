"""Results that are too large for a model's context: shortened, and saying so."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from mcpfactory_runtime.server.audience import READ_BY_CODE
from mcpfactory_runtime.server.middleware.protocol import Middleware, NextTool, ToolRequest
from mcpfactory_runtime.upstream.cutting import Cut, compact, shorten

__all__ = ["ResponseLimit"]

Json = dict[str, Any]

_NAMED: Final = 5  # of the cuts, in the sentence that tells of them


class ResponseLimit(Middleware):
    """Shortens results beyond a number of characters: lists lose items from their end, long texts their end, and a sentence says so.

    Images and the like that do not fit are left out. A result with an output schema would no longer fit that: it becomes a failure that
    asks for less. What another tool reads (`Context.call`) stays whole.

    Args:
        characters: the most that a result may have.
        tools: names; default: all tools.
    """

    def __init__(self, characters: int = 100_000, *, tools: Iterable[str] = ()) -> None:
        if characters < 1:
            raise ValueError(f"a limit of {characters} characters lets nothing through\nhint: 100_000, say")
        self._room = characters
        self._tools = frozenset(tools)

    async def on_tool(self, call: ToolRequest, call_next: NextTool) -> Json:
        """Shorten what is too large."""
        result = await call_next(call)
        if READ_BY_CODE.get() or (self._tools and call.name not in self._tools):
            return result
        size = sum(map(_size, result.get("content", ())))
        if size <= self._room:
            return result
        if result.get("structuredContent") is not None:
            if "outputSchema" in call.tool:
                return _failure(f"The answer has {size:,} characters; at most {self._room:,} are given. Ask for less.")
            value, cuts = shorten(result["structuredContent"], self._room)
            return {**result, "structuredContent": value, "content": [_text(compact(value)), _told(cuts)]}
        return {**result, "content": self._content(result["content"])}

    def _content(self, blocks: list[Json]) -> list[Json]:
        """Return as much of the content as there is room for, in its order, and what was left out."""
        left, found, cuts, gone = self._room, [], [], 0
        for block in blocks:
            size = _size(block)
            if size <= left:
                found.append(block)
                left -= size
            elif block.get("type") == "text" and left > 0:
                text, cut = _shortened(block["text"], left)
                found.append({**block, "text": text})
                cuts += cut
                left = 0
            else:
                gone += 1
        cuts += [Cut("", len(blocks) - gone, len(blocks), "parts")] if gone else []
        return [*found, _told(cuts)]


def _shortened(text: str, room: int) -> tuple[str, list[Cut]]:
    """Return a text with less of it: as JSON, where it is some."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return f"{text[: max(room - 1, 0)]}…", [Cut("", max(room - 1, 0), len(text), "characters")]
    value, cuts = shorten(value, room)
    return compact(value), cuts


def _size(block: Json) -> int:
    """Return the characters of what a block holds."""
    resource = block.get("resource") or {}
    return sum(len(one.get(name, "")) for one in (block, resource) for name in ("text", "data", "blob"))


def _told(cuts: list[Cut]) -> Json:
    return _text(f"(shortened: {'; '.join(map(str, cuts[:_NAMED])) or 'parts'}. Ask for less to see the rest.)")


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _failure(text: str) -> Json:
    return {"content": [_text(text)], "isError": True}
