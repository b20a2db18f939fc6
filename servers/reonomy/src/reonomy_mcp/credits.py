"""Property credits: details of many properties are asked for only when a person agrees."""

from __future__ import annotations

import os
from typing import Any, Final

from mcpfactory_runtime import Context, ToolError

__all__ = ["ASK_ABOVE", "details"]

ASK_ABOVE: Final = "REONOMY_ASK_ABOVE"
_ASK_ABOVE: Final = 50  # properties whose details are read without a question
_AT_ONCE: Final = 250
_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"go_ahead": {"type": "boolean", "title": "Go ahead", "default": False}},
    "required": ["go_ahead"],
}


async def details(ctx: Context, ids: list[str], types: list[str], confirm: str) -> list[dict[str, Any]]:
    """Return details of properties; a person is asked first when these are many.

    Args:
        ctx: of the call.
        ids: of the properties.
        types: what is wanted.
        confirm: what the caller gave as `confirm`; counts only where nobody can be asked.

    Raises:
        ToolError: the person does not agree, or has not been asked.
    """
    ids = list(dict.fromkeys(ids))
    if len(ids) > _limit():
        await _consent(ctx, f"Read details of {len(ids)} properties, each of which is billed", confirm)
    found: list[dict[str, Any]] = []
    for first in range(0, len(ids), _AT_ONCE):
        part = ids[first : first + _AT_ONCE]
        rows = await ctx.call("get_many_properties", property_ids=part, detail_type=types)
        found += rows["result"] if isinstance(rows, dict) else rows
        await ctx.report_progress(len(found), len(ids), f"{len(found)} of {len(ids)} properties")
    return found


async def _consent(ctx: Context, what: str, confirm: str) -> None:
    declared = ctx.client_capabilities.get("elicitation")
    if isinstance(declared, dict) and (not declared or "form" in declared):
        answer = await ctx.elicit(f"{what}. Go ahead?", _FORM, key=what)
        if not (answer.accepted and answer.content.get("go_ahead") is True):
            raise ToolError(f"Nothing was read: the person did not agree. ({what})")
    elif confirm != what:
        raise ToolError(
            f"Nothing was read yet; a person must agree to this first: {what}\n"
            f'hint: ask for fewer, or ask the person; when they agree, call again with confirm="{what}"'
        )


def _limit() -> int:
    given = os.environ.get(ASK_ABOVE, "")
    return int(given) if given.isdigit() else _ASK_ABOVE
