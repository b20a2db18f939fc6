"""Pages of the four lists. A cursor names the last item of a page, so it stays good while the list changes elsewhere."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, McpError

__all__ = ["page"]

Json = dict[str, Any]


def page(items: Mapping[str, Json], params: Json, size: int | None) -> tuple[list[Json], str | None]:
    """The items after the cursor in `params`, at most `size`, and the cursor of the next page.

    Raises:
        McpError: INVALID_PARAMS for a cursor that this list never gave (server/utilities/pagination).
    """
    keys = list(items)
    start = 0
    if "cursor" in params:
        last = _read(params["cursor"])
        if last is None or last not in items:
            raise McpError(INVALID_PARAMS, "Invalid params: unknown cursor. hint: start again without one")
        start = keys.index(last) + 1
    end = len(keys) if size is None else start + size
    chosen = keys[start:end]
    following = urlsafe_b64encode(chosen[-1].encode()).decode() if end < len(keys) else None
    return [items[key] for key in chosen], following


def _read(cursor: object) -> str | None:
    if not isinstance(cursor, str):
        raise McpError(INVALID_PARAMS, "Invalid params: cursor must be a string")
    try:
        return urlsafe_b64decode(cursor.encode()).decode()
    except ValueError:
        return None
