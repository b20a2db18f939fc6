"""Pages of a Relay connection: `pageInfo` with `hasNextPage` and `endCursor`, and `nodes` or `edges`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Page", "PageError", "read_page"]

_DEEP: Final = 100  # maximum levels to search


class PageError(ValueError):
    """Raised unless a response has exactly one connection; the message is for a model."""


@dataclass(frozen=True, slots=True)
class Page:
    """Items of one page. `following` is the cursor of the next page, or None."""

    items: list[Any]
    following: str | int | None


def read_page(data: dict[str, Any]) -> Page:
    """Return the page in the data of a response.

    Raises:
        PageError: the data does not have exactly one connection, or the cursor is missing.
    """
    found = list(_connections(data, 0))
    if len(found) != 1:
        wish = "ask for pageInfo { hasNextPage endCursor } in one connection, next to its nodes or edges { node { … } }"
        raise PageError(f"The response has {len(found)} connections with pageInfo: {wish}.")
    (one,) = found
    items = one.get("nodes")
    if not isinstance(items, list):
        edges = one.get("edges")
        items = [edge.get("node", edge) if isinstance(edge, dict) else edge for edge in edges or ()]
    info = one["pageInfo"]
    more, cursor = info.get("hasNextPage") is True, info.get("endCursor")
    if more and (isinstance(cursor, bool) or not isinstance(cursor, str | int)):
        raise PageError("The API reports another page without a valid cursor: ask for pageInfo { hasNextPage endCursor }.")
    return Page(items, cursor if more else None)


def _connections(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """Yield the outermost connections. Connections within a node are not paged."""
    if isinstance(value, dict) and depth < _DEEP:
        if isinstance(value.get("pageInfo"), dict):
            yield value
        else:
            for one in value.values():
                yield from _connections(one, depth + 1)
    elif isinstance(value, list) and depth < _DEEP:
        for one in value:
            yield from _connections(one, depth + 1)
