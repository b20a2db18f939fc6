"""The MCP server n8n. This file is yours; `_generated` is rewritten whenever the API document changes."""

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
        "Workflows of one n8n instance. Begin with explain_failures when something does not work, and with list_workflows and summarize_workflow to "
        "know what there is. Change single nodes with change_node; update_workflow replaces a workflow as a whole. A new workflow is not active."
    ),
)
server.mount_manifest(HERE / "_generated")
server.before("activate_workflow")(consent.ask_again)


@server.tool_middleware
async def of_the_plan(call: ToolRequest, call_next: Any) -> dict[str, Any]:
    """Say of what the plan does not have that no other credentials help: n8n answers 403 to that as well."""
    try:
        found: dict[str, Any] = await call_next(call)
    except ToolError as error:
        said = str(error)
        if "403" not in said or not _PLAN.search(said):
            raise
        words = said.partition("\nhint: ")[0]
        raise ToolError(
            f"{words}\nhint: the plan of this n8n does not have it; other credentials change nothing."
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
    """Ask what failed lately and what to do about it.

    Args:
        workflow: its name or id; empty for all.
    """
    which = f" of the workflow {workflow}" if workflow else ""
    return (
        f"Find out what failed lately{which} in n8n and why. Group by cause, say since when and how often, and propose for each cause what to "
        "change in which node. Change nothing before I agree, and retry nothing that would do something twice."
    )


def main() -> None:
    """Speak MCP on stdin and stdout, or with --http on a port."""
    server.run()
