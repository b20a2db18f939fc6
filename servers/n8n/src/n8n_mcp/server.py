"""The MCP server n8n. Edit this file; `_generated` is overwritten when the API document changes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from mcpfactory_runtime import Server, ToolError, ToolRequest

from . import __version__, consent, tools

HERE: Final = Path(__file__).parent
PAGE: Final = "ui://n8n/workflow"
_PLAN: Final = re.compile(r"\blicen[cs]e|\bplan\b|feat:", re.IGNORECASE)

server = Server(
    "n8n",
    version=__version__,
    title="n8n",
    instructions=(
        "Workflows of one n8n instance. Start with explain_failures if something fails, otherwise with list_workflows and summarize_workflow. "
        "Change single nodes with change_node; update_workflow replaces a whole workflow. A new workflow is inactive."
    ),
)
server.mount_manifest(HERE / "_generated")
server.before("activate_workflow")(consent.ask_again)


@server.tool_middleware
async def of_the_plan(call: ToolRequest, call_next: Any) -> dict[str, Any]:
    """Replace the hint of errors about missing plan features. n8n returns 403 for them, but other credentials do not help."""
    try:
        found: dict[str, Any] = await call_next(call)
    except ToolError as error:
        said = str(error)
        if "403" not in said or not _PLAN.search(said):
            raise
        words = said.partition("\nhint: ")[0]
        raise ToolError(
            f"{words}\nhint: the plan of this n8n instance does not include it; other credentials do not help."
        ) from None
    return found


server.app(
    PAGE, path=HERE / "workflow.html", title="Workflow", description="A workflow as a graph, with its latest executions"
)

_READS: Final = {"readOnlyHint": True, "openWorldHint": True}
_CHANGES: Final = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}
_SHOWN: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "name": {"type": "string"},
        "active": {"type": "boolean"},
        "triggers": {"type": "array", "items": {"type": "string"}},
        "nodes": {"type": "array", "items": {"type": "object"}},
        "executions": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["id", "name", "active", "triggers", "nodes", "executions"],
}

server.tool(annotations=_READS)(tools.summarize_workflow)
server.tool(annotations=_READS, app=PAGE, output_schema=_SHOWN)(tools.show_workflow)
server.tool(annotations=_READS)(tools.explain_failures)
server.tool(annotations=_CHANGES)(tools.change_node)


@server.prompt(title="What went wrong?")
def what_went_wrong(workflow: str = "") -> str:
    """Ask for recent failures and how to fix them.

    Args:
        workflow: name or ID of the workflow; empty for all.
    """
    which = f" of the workflow {workflow}" if workflow else ""
    return (
        f"Find out what failed lately{which} in n8n and why. Group by cause with time and frequency, and propose a change to a node for each "
        "cause. Change nothing before I agree, and retry nothing that would do something twice."
    )


def main() -> None:
    """Serve MCP on stdin and stdout, or over HTTP with --http."""
    server.run()
