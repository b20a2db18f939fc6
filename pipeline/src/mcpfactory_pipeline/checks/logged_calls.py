"""Repeat calls in the per-request lifecycle with a log level: for all log messages, then for the most severe ones only."""

from __future__ import annotations

from typing import Final

from mcpfactory_pipeline.checks.client_capabilities import params_without_meta
from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import LOG_LEVEL, QUICK
from mcpfactory_pipeline.checks.requester import ANSWER, Requester
from mcpfactory_pipeline.checks.transport.conversation import Conversation

_TOOLS: Final = 2  # maximum number of tools


async def call_with_log_levels(evidence: Evidence, conversation: Conversation, requests: Requester) -> None:
    """Call read-only tools that answered quickly; tools that sent log messages before come first."""
    logged = [one.during for one in evidence.server_messages if one.method == "notifications/message"]
    tools = evidence.read_only_tools
    quick = [one for one in evidence.calls if one.tool in tools and not one.failed]
    quick = [one for one in quick if one.exchange.milliseconds < QUICK]
    for call in sorted(quick, key=lambda one: one.exchange.sent not in logged)[:_TOOLS]:
        for level in ("debug", "emergency"):
            if requests.seconds_left() > 0:
                params = {**params_without_meta(call.exchange.sent), "_meta": {LOG_LEVEL: level}}
                # `overlap` ignores other answers, such as late answers to cancellations.
                answers = await conversation.overlap([requests.message("tools/call", params)], ANSWER)
                if any(one.received is None for one in answers):
                    return
