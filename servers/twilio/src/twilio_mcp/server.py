"""The MCP server twilio. Edit this file; `_generated` is overwritten when the API documents change."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from mcpfactory_runtime import Server, ToolCall, ToolError, ToolRequest, ToolResult
from mcpfactory_runtime.upstream import UNSET

from . import __version__, delivery, reach, sending
from ._generated import api
from .answers import is_refusal
from .consent import Sending, agree, is_agreed

server = Server(
    "twilio",
    version=__version__,
    title="Twilio",
    instructions=(
        "Texts, calls and codes by Twilio. Sending costs money and cannot be taken back: tell the user what you will send and to whom. Use "
        "send_to_many for several people, find_failed_messages for undelivered messages, check_delivery for single ones. Numbers are in "
        "E.164 form: +15558675310."
    ),
)
server.mount_manifest(Path(__file__).parent / "_generated")
api.upstream = reach.connection  # also for generated tools, so that errors have Twilio's codes

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
_NEEDS: Final = {  # arguments of which each tool needs at least one
    "send_message": ("Body", "MediaUrl"),
    "make_call": ("Twiml", "Url"),
    "redact_or_cancel_message": ("Body", "Status"),
}
_WHERE: Final = {"send_message": "list_messages", "make_call": "list_calls"}  # tools that show executed requests
_POSTED: Final = re.compile(r"POST \S+ ?")
_READS: Final = {"readOnlyHint": True, "openWorldHint": True}
_SENDS: Final = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}

server.tool(annotations=_SENDS)(sending.send_to_many)
server.tool(annotations=_READS)(delivery.find_failed_messages)
server.tool(annotations=_READS)(delivery.check_delivery)


@server.before(*_OF_ACCOUNT)
def with_account(call: ToolCall) -> None:
    """Set the default of AccountSid: TWILIO_ACCOUNT_SID, or the user name if it is an account SID.

    Raises:
        ToolError: the user name is an API key, and TWILIO_ACCOUNT_SID is not set.
    """
    if call.arguments.get("AccountSid") not in (None, UNSET, _OWN):
        return
    user = os.environ.get("TWILIO_USERNAME", "")
    account = os.environ.get(ACCOUNT) or (user if user.startswith("AC") else "")
    if not account and user.startswith("SK"):
        raise ToolError(
            f"Nothing was sent: TWILIO_USERNAME is an API key, and {ACCOUNT} is not set, so the account is unknown.\n"
            f"hint: the operator must set {ACCOUNT} (AC…); or give the account in AccountSid"
        )
    if account:
        call.arguments["AccountSid"] = account


@server.before(*_NEEDS)
def complete(call: ToolCall) -> None:
    """Refuse calls that Twilio would refuse, or bill without an effect.

    Raises:
        ToolError: all of the required alternatives are missing.
    """
    names = _NEEDS[call.name]
    if all(_given(call, name) is None for name in names):
        raise ToolError(f"Nothing was sent: {call.name} needs {' or '.join(names)}.")


@server.before("send_message")
async def asked(call: ToolCall) -> None:
    """Ask for consent above the limit of recipients. The tool send_to_many has the same limit and count.

    Raises:
        ToolError: consent is missing, or sender and recipient have different channels.
    """
    given = {name: _given(call, name) for name in ("To", "From", "MessagingServiceSid", "Body", "MediaUrl")}
    sending.check_channels([given["To"]], given["From"] or "")
    if not is_agreed():
        sender = given["From"] or given["MessagingServiceSid"] or "no sender"
        what = Sending(sender, (given["To"],), given["Body"] or "", tuple(given["MediaUrl"] or ()))
        await agree(call.context, what)


def _given(call: ToolCall, name: str) -> Any:
    """Return an argument; None if it is unset or empty. An empty Body of redact_or_cancel_message is kept, because it redacts."""
    value = call.arguments.get(name)
    return None if value is UNSET or (value == "" and call.name != "redact_or_cancel_message") or value == [] else value


@server.tool_middleware(*_WHERE)
async def unsure(call: ToolRequest, call_next: Any) -> dict[str, Any]:
    """Replace the hint to try again, if a request without a response may have been executed."""
    try:
        result: dict[str, Any] = await call_next(call)
    except ToolError as error:
        said = str(error)
        if _POSTED.match(said) and not is_refusal(said) and "no connection to" not in said:
            first = said.partition("\nhint:")[0]
            raise ToolError(
                f"{first}\nIt may have been sent: check with {_WHERE[call.name]} before you send it again."
            ) from None
        raise
    return result


@server.after("list_accounts")
def without_tokens(call: ToolCall, result: ToolResult) -> ToolResult:
    """Remove the auth token of each account: it gives full access, and no tool needs it."""
    blocks = [{**one, "text": _TOKEN.sub("", one["text"])} if "text" in one else one for one in result.content]
    accounts = result.structured.get("accounts") if isinstance(result.structured, dict) else None
    if not isinstance(accounts, list):
        return ToolResult(blocks, result.structured, is_error=result.is_error, meta=result.meta)
    kept = [
        {name: value for name, value in one.items() if name != "auth_token"} if isinstance(one, dict) else one
        for one in accounts
    ]
    return ToolResult(blocks, {**result.structured, "accounts": kept}, is_error=result.is_error, meta=result.meta)


@server.prompt(title="Why did messages not arrive?")
def undelivered(days: int = 7) -> str:
    """Ask for undelivered messages and what to do about them.

    Args:
        days: number of days to cover.
    """
    return (
        f"Find out which messages of the last {days} days did not arrive and why. For each reason, give the number of people and what to do. "
        "Send nothing again before I agree."
    )


def main() -> None:
    """Serve MCP on stdin and stdout, or over HTTP with --http."""
    server.run()
