"""What n8n answers, in the form that it has to have: a proxy in front of it, or a version, may answer something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpfactory_runtime import Context, ToolError

__all__ = ["ask_n8n", "members", "rows"]


async def ask_n8n(ctx: Context, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the answer of a generated tool, which is an object.

    Raises:
        ToolError: it is something else, or the tool refuses.
    """
    found = await ctx.call(tool, **arguments)
    if not isinstance(found, dict) or not (found.get("id") or isinstance(found.get("data"), list)):
        raise ToolError(
            f"{tool} was answered with no object that has an id or a list of data: {str(found)[:200]}\n"
            "hint: N8N_BASE_URL has to be the address of n8n's public API, which ends with /api/v1"
        )
    return found


def rows(page: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the objects of a page."""
    return [one for one in page.get("data") or () if isinstance(one, dict)]


def members(value: Any) -> Mapping[str, Any]:
    """Return an object; an empty one for everything else."""
    return value if isinstance(value, Mapping) else {}
