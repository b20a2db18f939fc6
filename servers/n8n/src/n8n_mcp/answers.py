"""Checks of n8n's responses, because a proxy or another version may return another form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpfactory_runtime import Context, ToolError

__all__ = ["ask_n8n", "members", "rows"]


async def ask_n8n(ctx: Context, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a generated tool, and return the object that it returns.

    Raises:
        ToolError: the call fails, or the response has another form.
    """
    found = await ctx.call(tool, **arguments)
    if not isinstance(found, dict) or not (found.get("id") or isinstance(found.get("data"), list)):
        raise ToolError(
            f"{tool}: expected an object with an id or a list of data, got: {str(found)[:200]}\n"
            "hint: set N8N_BASE_URL to the URL of n8n's public API, which ends with /api/v1"
        )
    return found


def rows(page: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the objects of a page of results."""
    return [one for one in page.get("data") or () if isinstance(one, dict)]


def members(value: Any) -> Mapping[str, Any]:
    """Return a value if it is an object, else {}."""
    return value if isinstance(value, Mapping) else {}
