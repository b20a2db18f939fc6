"""The MCP server twilio. This file is yours; `_generated` is rewritten whenever the API documents change."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from mcpfactory_runtime import Server, ToolCall, ToolResult

from . import __version__, sending

server = Server(
    "twilio",
    version=__version__,
    title="Twilio",
    instructions=(
        "Texts, calls and codes by Twilio. Sending costs money and cannot be taken back: say what you will send and to whom before you do. Take "
        "send_to_many for several people, find_failed_messages when something did not arrive, check_delivery to know whether it did. Numbers are in "
        "E.164 form: +15558675310."
    ),
)
server.mount_manifest(Path(__file__).parent / "_generated")

ACCOUNT: Final = "TWILIO_ACCOUNT_SID"
_OWN: Final = "own"
_OF_ACCOUNT: Final = (
    *("list_messages", "send_message", "get_message", "redact_or_cancel_message", "delete_message"),
    *(
        "list_calls",
        "make_call",
        "get_call",
        "end_call",
        "list_numbers",
        "search_available_numbers",
        "list_usage",
        "get_balance",
    ),
)
_TOKEN: Final = re.compile(r',\s*"auth_token":\s*"[^"]*"|"auth_token":\s*"[^"]*",\s*')
_READS: Final = {"readOnlyHint": True, "openWorldHint": True}
_SENDS: Final = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}

server.tool(annotations=_SENDS)(sending.send_to_many)
server.tool(annotations=_READS)(sending.find_failed_messages)
server.tool(annotations=_READS)(sending.check_delivery)


@server.before(*_OF_ACCOUNT)
def with_account(call: ToolCall) -> None:
    """Put the sid of the server's own account where none is named: TWILIO_ACCOUNT_SID, or the user name if that is one."""
    given = call.arguments.get("AccountSid")
    user = os.environ.get("TWILIO_USERNAME", "")
    account = os.environ.get(ACCOUNT) or (user if user.startswith("AC") else "")
    if account and given in (None, _OWN):
        call.arguments["AccountSid"] = account


@server.after("list_accounts")
def without_tokens(call: ToolCall, result: ToolResult) -> ToolResult:
    """Take out the auth token of each account, which Twilio gives with it: it opens the account, and no tool needs it."""
    blocks = [{**one, "text": _TOKEN.sub("", one["text"])} if "text" in one else one for one in result.content]
    accounts = (result.structured or {}).get("accounts", [])
    kept = [{name: value for name, value in one.items() if name != "auth_token"} for one in accounts]
    structured = {**result.structured, "accounts": kept} if accounts else result.structured
    return ToolResult(blocks, structured, is_error=result.is_error, meta=result.meta)


@server.prompt(title="Why did messages not arrive?")
def undelivered(days: int = 7) -> str:
    """Ask what did not arrive lately and what to do about it.

    Args:
        days: how far back.
    """
    return (
        f"Find out which messages of the last {days} days did not arrive and why. Say for each reason how many people it concerns and what to do. "
        "Send nothing again before I agree."
    )


def main() -> None:
    """Speak MCP on stdin and stdout, or with --http on a port."""
    server.run()
