"""Cancel calls on stdio in the per-request lifecycle, and record what the server still sends for them.

An answer may be under way when the server gets the cancellation. Only messages that follow the answer to a later request
are therefore recorded, and only after a pause, because threads of the server may write at the same time.
"""

from __future__ import annotations

from typing import Final

from mcpfactory_pipeline.checks.client_capabilities import params_without_meta
from mcpfactory_pipeline.checks.evidence import CanceledCall, Evidence
from mcpfactory_pipeline.checks.requester import ANSWER, Requester
from mcpfactory_pipeline.checks.transport.conversation import Conversation
from mcpfactory_pipeline.checks.transport.stdio import StdioConversation

_SHORTEST: Final = 300  # milliseconds; quicker calls may end before the server reads the cancellation
_LONGEST: Final = 2_000  # milliseconds
_TRIALS: Final = 2  # a thread of the server may be suspended once


async def cancel_slow_call(evidence: Evidence, conversation: Conversation, requests: Requester) -> None:
    """Cancel the slowest read-only call, and cancel it again if the server still sends messages for it."""
    tools = evidence.read_only_tools
    slow = [one for one in evidence.calls if one.tool in tools and not one.failed]
    slow = [one for one in slow if _SHORTEST <= one.exchange.milliseconds <= _LONGEST]
    call = max(slow, key=lambda one: one.exchange.milliseconds, default=None)
    if call is None or not isinstance(conversation, StdioConversation):
        return
    seconds = call.exchange.milliseconds / 1000
    for _ in range(_TRIALS):
        if requests.seconds_left() <= 2 * seconds + ANSWER or conversation.session.has_ended:
            return
        params = {**params_without_meta(call.exchange.sent), "_meta": {"progressToken": next(requests.numbers)}}
        message, later = requests.message("tools/call", params), requests.message("server/discover")
        exchange, late = await conversation.cancel(message, later, seconds, ANSWER)
        evidence.canceled.append(CanceledCall(call.tool, exchange, late))
        if not late:
            return
