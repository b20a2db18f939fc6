"""Consent of the user before an active workflow is changed, or a changed workflow is activated."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from mcpfactory_runtime import Context, ToolCall

from .answers import members

__all__ = ["WITHOUT_QUESTIONS", "ask_again", "ask_first"]

WITHOUT_QUESTIONS: Final = "N8N_WITHOUT_QUESTIONS"
_KEPT: Final = 1000  # maximum workflows with remembered changes, to bound memory
_changed_while_off: dict[str, str] = {}
"""Workflow ID to name and changes that were made without consent, while the workflow was inactive."""


async def ask_first(ctx: Context, workflow: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Ask before an active workflow is changed.

    Raises:
        ToolError: the user does not agree, or the client cannot ask.
    """
    if os.environ.get(WITHOUT_QUESTIONS) == "1":
        return
    name, change = f"{workflow.get('name')} ({workflow['id']})", _difference(workflow, after)
    if workflow.get("active"):
        await _ask(ctx, f"Change the active workflow {name}: {change}", after)
        return
    before = _changed_while_off.pop(workflow["id"], "")
    _changed_while_off[workflow["id"]] = f"{before}; {change}" if before else f"{name}: {change}"
    if len(_changed_while_off) > _KEPT:
        del _changed_while_off[next(iter(_changed_while_off))]


async def ask_again(call: ToolCall) -> None:
    """Ask before activating a workflow that was changed here while it was inactive, without consent.

    Raises:
        ToolError: the user does not agree, or the client cannot ask.
    """
    id = call.arguments["id"]
    if (change := _changed_while_off.get(id)) and os.environ.get(WITHOUT_QUESTIONS) != "1":
        await _ask(call.context, f"Activate the workflow {change}", id)
        _changed_while_off.pop(id, None)


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Describe the changed nodes, which are matched by name."""
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


async def _ask(ctx: Context, what: str, *bound_to: Any) -> None:
    await ctx.consent(
        what,
        *bound_to,
        otherwise="Nothing was changed",
        hint=f"do it in n8n; or the operator sets {WITHOUT_QUESTIONS}=1",
    )
