"""The MCP server closebot. Edit this file; `_generated` is overwritten when the API document changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from mcpfactory_runtime import Server, ToolError, ToolRequest

from . import __version__, bots, consent, conversations, figures
from .secrets import hidden_text, without_secrets

server = Server(
    "closebot",
    version=__version__,
    title="CloseBot",
    instructions=(
        "Bots of a CloseBot agency that talk with leads for its customers. A source is a customer's connected sub-account. Start with bots_overview; "
        "find_unanswered lists unanswered leads, read_conversation returns messages. Try a bot with try_bot before publish_draft: a published bot "
        "talks with real people at once."
    ),
)
server.mount_manifest(Path(__file__).parent / "_generated")

_READS: Final = {"readOnlyHint": True, "openWorldHint": True}
_CHANGES: Final = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True, "openWorldHint": True}
_TRIES: Final = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": True}
_EXPLAINED: Final = {
    "420": "The wallet is empty, so bots do not answer. get_balance shows it; refill it at app.closebot.com, Billing.",
    "410": "The account, bot or source no longer exists. bots_overview and list_sources list the existing ones.",
}

server.after()(without_secrets)
server.before()(figures.check_times)
server.before("attach_source", "publish_bot", "update_bot")(consent.asked)

server.tool(annotations=_READS)(bots.bots_overview)
server.tool(annotations=_CHANGES)(bots.switch_bot)
server.tool(annotations=_TRIES)(bots.try_bot)
server.tool(annotations=_CHANGES)(consent.publish_draft)
server.tool(annotations=_CHANGES)(consent.delete_for_good)
server.tool(annotations=_READS)(conversations.read_conversation)
server.tool(annotations=_READS)(conversations.find_unanswered)
server.tool(annotations=_READS)(figures.compare_periods)


@server.tool_middleware
async def explained(call: ToolRequest, call_next: Any) -> dict[str, Any]:
    """Add hints for CloseBot's statuses to errors, and hide credentials in them."""
    try:
        result: dict[str, Any] = await call_next(call)
    except ToolError as error:
        said = hidden_text(str(error))  # `after` hooks do not run on errors
        hint = next((words for status, words in _EXPLAINED.items() if f" {status}" in said), "")
        if hint and hint not in said:
            said = f"{said}\nhint: {hint}"
        raise ToolError(said) from None
    return result


@server.prompt(title="Report for a customer")
def customer_report(source: str, days: int = 30) -> str:
    """Ask for a report on the bots of one customer.

    Args:
        source: name or ID of the customer's source.
        days: number of days to cover.
    """
    return (
        f"Write a short report for the customer {source} about the last {days} days: compare_periods against the days before, what find_unanswered "
        "shows, and two conversations that are worth reading, one that led to a booking and one that did not. Say what you would change. Change nothing."
    )


def main() -> None:
    """Serve MCP on stdin and stdout, or over HTTP with --http."""
    server.run()
