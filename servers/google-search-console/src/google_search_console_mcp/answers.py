"""What Google answers, in the form that it has to have: nothing that is missing counts as zero."""

from __future__ import annotations

from typing import Any, Final

from mcpfactory_runtime import Context, ToolError

__all__ = ["MEMBERS", "ask_google", "listed", "members"]

MEMBERS: Final = {  # of each tool's answer: at least one of them is there
    "query_search_analytics": ("rows", "responseAggregationType"),
    "inspect_url": ("inspectionResult",),
    "list_sitemaps": ("sitemap",),
}


async def ask_google(ctx: Context, tool: str, *, may_be_empty: bool = False, **arguments: Any) -> dict[str, Any]:
    """Return the answer of a generated tool, which is an object with its members.

    Args:
        ctx: of the call.
        tool: which one; a row of `MEMBERS`.
        may_be_empty: Google says "nothing" by an empty object.
        arguments: of the tool.

    Raises:
        ToolError: it is something else, or the tool refuses.
    """
    found = await ctx.call(tool, **arguments)
    if isinstance(found, dict) and (may_be_empty and not found or any(name in found for name in MEMBERS[tool])):
        return found
    wanted = " or ".join(MEMBERS[tool])
    raise ToolError(
        f"{tool} was answered with no object that has {wanted}: {str(found)[:200]}\n"
        "hint: ask again; when it stays, GOOGLE_SEARCH_CONSOLE_BASE_URL is not Google's, or something stands before it"
    )


def members(value: Any) -> dict[str, Any]:
    """Return an object; an empty one for everything else."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; none for everything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
