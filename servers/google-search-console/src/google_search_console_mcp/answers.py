"""Checks of Google's responses, so that missing data is an error instead of zero."""

from __future__ import annotations

from typing import Any, Final

from mcpfactory_runtime import Context, ToolError

__all__ = ["MEMBERS", "ask_google", "listed", "members"]

MEMBERS: Final = {  # by tool: a valid response has at least one of these
    "query_search_analytics": ("rows", "responseAggregationType"),
    "inspect_url": ("inspectionResult",),
    "list_sitemaps": ("sitemap",),
}


async def ask_google(ctx: Context, tool: str, *, may_be_empty: bool = False, **arguments: Any) -> dict[str, Any]:
    """Call a generated tool, and return the object that it returns.

    Args:
        ctx: context of the call.
        tool: name of the tool, a key of `MEMBERS`.
        may_be_empty: accept an empty object, which means no results.
        arguments: arguments of the tool.

    Raises:
        ToolError: the call fails, or the response has another form.
    """
    found = await ctx.call(tool, **arguments)
    if isinstance(found, dict) and (may_be_empty and not found or any(name in found for name in MEMBERS[tool])):
        return found
    wanted = " or ".join(MEMBERS[tool])
    raise ToolError(
        f"{tool}: expected an object with {wanted}, got: {str(found)[:200]}\n"
        "hint: try again; if it persists, check GOOGLE_SEARCH_CONSOLE_BASE_URL, or a proxy in front of it"
    )


def members(value: Any) -> dict[str, Any]:
    """Return a value if it is an object, else {}."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list, or [] if the value is not a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
