"""Asking a person before money is spent or something is lost.

A client that can ask its user is asked by a question (elicitation). One that cannot gets the sentence that needs consent, and must
repeat it in the argument `confirm`: a model cannot know it before, since amounts and names in it are those of now.
"""

from __future__ import annotations

from typing import Any, Final

from mcpfactory_runtime import Context, McpError, ToolError

__all__ = ["consent"]

_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"go_ahead": {"type": "boolean", "title": "Go ahead", "default": False}},
    "required": ["go_ahead"],
}


def _can_ask(ctx: Context) -> bool:
    """Return whether the client shows forms; `{}` means that it does, as in revisions that know nothing else."""
    declared = ctx.client_capabilities.get("elicitation")
    return isinstance(declared, dict) and (not declared or "form" in declared)


async def consent(ctx: Context, what: str, confirm: str) -> None:
    """Return when a person agrees.

    Args:
        ctx: of the call.
        what: what will happen, as one sentence with names and amounts.
        confirm: what the caller gave as `confirm`; counts only where nobody can be asked.

    Raises:
        ToolError: the person does not agree, or has not been asked.
    """
    if _can_ask(ctx):
        try:
            answer = await ctx.elicit(f"{what} Go ahead?", _FORM, key=what)
            agreed = answer.accepted and answer.content.get("go_ahead") is True
        except McpError:  # an answer that does not fit the form is no yes
            agreed = False
        if not agreed:
            raise ToolError(f"Nothing was changed: the person did not agree. ({what})")
    elif confirm.split() != what.split():
        raise ToolError(
            f"Nothing was changed yet; a person must agree to this first: {what}\n"
            f'hint: ask the person; when they agree, call again with the same arguments and confirm="{what}"'
        )
