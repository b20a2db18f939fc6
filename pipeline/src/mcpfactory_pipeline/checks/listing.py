"""Asking for a list page by page, to its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from mcpfactory_pipeline.checks.evidence import Listing
from mcpfactory_pipeline.checks.exchange import Json, WireExchange

__all__ = ["LISTS", "list_pages"]

LISTS: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""The methods that list something, with the member of the result that holds it."""

_MAX_PAGES: Final = 100


async def list_pages(method: str, ask: Callable[[Json], Awaitable[WireExchange]]) -> Listing:
    """Return what a method of `LISTS` lists, and why that is not all of it. `ask` sends it with parameters (MCP, pagination)."""
    items: list[Any] = []
    exchanges: list[WireExchange] = []
    cursors: set[str] = set()
    params: Json = {}
    problem = ""
    while True:
        exchange = await ask(params)
        exchanges.append(exchange)
        page = (exchange.result or {}).get(LISTS[method])
        if not isinstance(page, list):
            problem = exchange.problem or f"{method} was not answered with a list of {LISTS[method]}"
            break
        if page not in [(earlier.result or {}).get(LISTS[method]) for earlier in exchanges[:-1]]:
            items += page  # a server that ignores the cursor sends the same page for ever
        cursor = (exchange.result or {}).get("nextCursor")
        if cursor is None:
            break
        if not isinstance(cursor, str) or cursor in cursors or len(exchanges) >= _MAX_PAGES:
            problem = f"the pages do not end: nextCursor {cursor!r} after {len(exchanges)} pages"
            break
        cursors.add(cursor)
        params = {"cursor": cursor}
    return Listing(method, tuple(items), tuple(exchanges), problem)
