"""Tools that combine several calls of the API."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final

from mcpfactory_runtime import Context, Text, ToolError, ToolResult
from pydantic import Field

from .answers import ask_n8n, rows
from .consent import ask_first
from .failures import Failure, failures
from .outline import WorkflowOutline, changed, outline

__all__ = ["change_node", "explain_failures", "show_workflow", "summarize_workflow"]

WorkflowId = Annotated[str, Field(min_length=1, max_length=100, examples=["1000"])]

_PAGE: Final = 50  # executions with data per request


@dataclass(frozen=True, slots=True)
class Failures:
    """Recent failures; `looked_at` is the number of failed executions read, `note` the reason why there may be more."""

    looked_at: int
    failures: list[Failure]
    note: str = ""


async def summarize_workflow(id: WorkflowId, ctx: Context) -> WorkflowOutline:
    """Summarize what a workflow does: what starts it, its nodes and what comes after each, credentials, unconnected nodes.

    Args:
        id: ID of the workflow; list_workflows finds it by name.
    """
    return outline(await ask_n8n(ctx, "get_workflow", id=id, excludePinnedData=True))


async def show_workflow(id: WorkflowId, ctx: Context) -> ToolResult:
    """Show a workflow as a picture with its latest executions, or as text if the host shows no pages.

    Args:
        id: ID of the workflow.
    """
    found = outline(await ask_n8n(ctx, "get_workflow", id=id, excludePinnedData=True))
    runs = rows(await ask_n8n(ctx, "list_executions", workflowId=id, limit=10))
    lines = [f"{found.name} ({'active' if found.active else 'not active'})"]
    lines += [f"{node.name} [{node.type}] → {', '.join(node.next) or 'end'}" for node in found.nodes]
    lines += [f"execution {run.get('id', '')}: {run.get('status', '')} {run.get('startedAt', '')}" for run in runs]
    executions = [
        {"id": str(run.get("id", "")), "status": run.get("status", ""), "started": run.get("startedAt", "")}
        for run in runs
    ]
    return ToolResult([Text("\n".join(lines))], structured={**asdict(found), "executions": executions})


async def explain_failures(
    ctx: Context,
    workflowId: Annotated[str, Field(max_length=100)] = "",
    most: Annotated[int, Field(ge=1, le=500)] = 100,
) -> Failures:
    """Explain what failed lately and why: by workflow and node, with the error message, how often and when last.

    Args:
        workflowId: only failures of this workflow; empty for all.
        most: maximum number of failed executions to read, the latest first.
    """
    chosen: dict[str, Any] = {"workflowId": workflowId} if workflowId else {}
    read: dict[str, dict[str, Any]] = {}
    cursors: list[str] = []
    note = ""
    while len(read) < most:
        size = min(_PAGE, most - len(read))
        cursor = {"cursor": cursors[-1]} if cursors else {}
        page = await ask_n8n(ctx, "list_executions", status="error", includeData=True, limit=size, **chosen, **cursor)
        found = {str(one.get("id")): one for one in rows(page)}
        fresh = found.keys() - read.keys()
        read |= found
        await ctx.report_progress(len(read), most, f"{len(read)} executions read")
        following = page.get("nextCursor")
        if not following:
            break
        if not fresh or following in cursors:
            note = "n8n returned a page without new executions, so reading stopped: there may be more failures."
            break
        cursors.append(following)
    latest = list(read.values())[:most]
    names = await _names(ctx, {str(one.get("workflowId")) for one in latest})
    return Failures(len(latest), failures(latest, names), note)


async def change_node(
    id: WorkflowId,
    node: Annotated[str, Field(min_length=1, max_length=200, examples=["Shop"])],
    ctx: Context,
    parameters: dict[str, Any] | None = None,
    disabled: bool | None = None,
    expectUpdated: str = "",
) -> WorkflowOutline:
    """Change one node of a workflow and keep the rest: parameters are merged, null removes one.

    Args:
        id: ID of the workflow.
        node: name of the node.
        parameters: parameters to change; others are kept.
        disabled: switch the node off (true) or on (false).
        expectUpdated: `updated` of the summary; if the workflow has changed since, nothing is changed.
    """
    if parameters is None and disabled is None:
        raise ToolError("Nothing would change: give parameters or disabled.")
    before = await ask_n8n(ctx, "get_workflow", id=id)
    if expectUpdated and before.get("updatedAt") != expectUpdated:
        raise ToolError(
            f"The workflow was changed on {before.get('updatedAt')}. Read it again with summarize_workflow."
        )
    try:
        body = changed(before, node, parameters, disabled=disabled)
    except KeyError as error:
        raise ToolError(str(error.args[0])) from None
    now = await ask_n8n(ctx, "get_workflow", id=id)
    if (now.get("versionId"), now.get("updatedAt")) != (before.get("versionId"), before.get("updatedAt")):
        raise ToolError("The workflow is being changed by somebody else. Read it again with summarize_workflow.")
    await ask_first(ctx, before, body)
    return outline({**before, **await ask_n8n(ctx, "update_workflow", id=id, **body)})


async def _names(ctx: Context, wanted: set[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for one in sorted(wanted):
        try:
            names[one] = (await ask_n8n(ctx, "get_workflow", id=one)).get("name", "")
        except ToolError as error:
            names[one] = "(deleted)" if "404" in str(error) else ""
    return names
