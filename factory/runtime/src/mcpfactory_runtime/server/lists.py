"""Pages of the four lists. A cursor names the last item of a page, so it stays good while the list changes elsewhere."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Final

from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, McpError
from mcpfactory_runtime.protocol.jsonrpc import encode
from mcpfactory_runtime.types import Json

_FEW: Final = 2_000  # items that are on one page unmeasured
_LARGEST: Final = 8 * 1024 * 1024  # bytes of a page of more: half of what clients commonly read as one message


def page(items: Mapping[str, Json], params: Json, size: int | None) -> tuple[list[Json], str | None]:
    """Return the items after the cursor in `params`, at most `size`, and the cursor of the next page.

    Without a size, all items are on one page, as long as clients accept a message of that length.

    Raises:
        McpError: INVALID_PARAMS for a cursor that this list never returned (server/utilities/pagination).
    """
    keys = list(items)
    start = 0
    last = read_cursor(params)
    if last is not None:
        if last not in items:
            raise unknown_cursor()
        start = keys.index(last) + 1
    if size is None and len(keys) > _FEW:
        size = _readable([items[key] for key in keys[start:]])
    end = len(keys) if size is None else start + size
    chosen = keys[start:end]
    following = cursor_of(chosen[-1]) if end < len(keys) else None
    return [items[key] for key in chosen], following


def _readable(items: Sequence[Json]) -> int:
    """Return the number of items that fit into one message; at least one."""
    used = 0
    for count, item in enumerate(items):
        used += len(encode(item))
        if used > _LARGEST:
            return max(1, count)
    return len(items)


def cursor_of(last: str) -> str:
    """Return the cursor of the page after the item `last`."""
    return urlsafe_b64encode(last.encode()).decode()


def read_cursor(params: Json) -> str | None:
    """Return the item that the cursor in `params` names; None without a cursor.

    Raises:
        McpError: INVALID_PARAMS for what cannot be a cursor of ours.
    """
    if "cursor" not in params:
        return None
    cursor = params["cursor"]
    if not isinstance(cursor, str):
        raise McpError(INVALID_PARAMS, "Invalid params: cursor must be a string")
    try:
        return urlsafe_b64decode(cursor.encode()).decode()
    except ValueError:
        raise unknown_cursor() from None


def unknown_cursor() -> McpError:
    """Return the error for a cursor that a list never gave."""
    return McpError(INVALID_PARAMS, "Invalid params: unknown cursor. hint: start again without one")
