"""Asking a person before a workflow that runs is changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from mcpfactory_runtime import Context, ToolError

from .answers import members

__all__ = ["WITHOUT_QUESTIONS", "ask_first"]

WITHOUT_QUESTIONS: Final = "N8N_WITHOUT_QUESTIONS"
_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"go_ahead": {"type": "boolean", "title": "Go ahead", "default": False}},
    "required": ["go_ahead"],
}


async def ask_first(ctx: Context, workflow: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Ask before an active workflow becomes another one.

    Raises:
        ToolError: the person does not agree, or the client cannot ask one.
    """
    if workflow.get("active") and os.environ.get(WITHOUT_QUESTIONS) != "1":
        name = f"active workflow {workflow.get('name')} ({workflow['id']})"
        await _ask(ctx, f"Change the {name}: {_difference(workflow, after)}")


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return which nodes change, as far as names tell them apart."""
    old, new = (
        {node.get("name"): {key: one for key, one in node.items() if one is not None} for node in map(members, nodes)}
        for nodes in (before.get("nodes") or (), after.get("nodes") or ())
    )
    words = {
        "new": [name for name in new if name not in old],
        "changed": [
            name for name in new if name in old and any(old[name].get(key) != one for key, one in new[name].items())
        ],
        "gone": [name for name in old if name not in new],
    }
    said = [f"{', '.join(map(str, names[:10]))} {what}" for what, names in words.items() if names]
    return "; ".join(said) or "the nodes stay as they are"


async def _ask(ctx: Context, what: str) -> None:
    declared = ctx.client_capabilities.get("elicitation")  # {} means forms, as in revisions that know nothing else
    if not isinstance(declared, dict) or (declared and "form" not in declared):
        raise ToolError(
            f"Nothing was changed: a person must agree to this, and this client cannot ask one. ({what})\n"
            f"hint: do it in n8n; a workflow that is deactivated first may be changed; or the server's owner sets {WITHOUT_QUESTIONS}=1"
        )
    answer = await ctx.elicit(f"{what}. Go ahead?", _FORM, key=what)
    if not (answer.accepted and answer.content.get("go_ahead") is True):
        raise ToolError(f"Nothing was changed: the person did not agree. ({what})")
