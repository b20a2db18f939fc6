"""Pages of a connection, as Relay has them: `pageInfo` with `hasNextPage` and `endCursor`, and `nodes` or `edges`. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Page", "PageError", "read_page"]

_DEEP: Final = 100


class PageError(ValueError):
    """The answer has not one connection; the message is for a model."""


@dataclass(frozen=True, slots=True)
class Page:
    """The items of one page. `following` is the cursor of the next; null at the end."""

    items: list[Any]
    following: str | int | None


def read_page(data: dict[str, Any]) -> Page:
    """Return the page that is in an answer.

    Raises:
        PageError: there is none, or more than one.
    """
    found = list(_connections(data, 0))
    if len(found) != 1:
        wish = "ask for pageInfo { hasNextPage endCursor } in one connection, beside its nodes or edges { node { … } }"
        raise PageError(f"The answer has {len(found)} connections with pageInfo: {wish}.")
    (one,) = found
    items = one.get("nodes")
    if not isinstance(items, list):
        edges = one.get("edges")
        items = [edge.get("node", edge) if isinstance(edge, dict) else edge for edge in edges or ()]
    info = one["pageInfo"]
    more, cursor = info.get("hasNextPage") is True, info.get("endCursor")
    if more and (isinstance(cursor, bool) or not isinstance(cursor, str | int)):
        raise PageError("The API says that there is another page, and not where it begins: ask for pageInfo { hasNextPage endCursor }.")
    return Page(items, cursor if more else None)


def _connections(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """Yield the outermost connections: those within a node are the query's own affair."""
    if isinstance(value, dict) and depth < _DEEP:
        if isinstance(value.get("pageInfo"), dict):
            yield value
        else:
            for one in value.values():
                yield from _connections(one, depth + 1)
    elif isinstance(value, list) and depth < _DEEP:
        for one in value:
            yield from _connections(one, depth + 1)
