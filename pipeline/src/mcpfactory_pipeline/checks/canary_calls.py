"""Tool calls and reads with canaries as arguments."""

from __future__ import annotations

import json
from typing import Final

from mcpfactory_pipeline.checks.call_plan import may_call_tool
from mcpfactory_pipeline.checks.canaries import (
    Canaries,
    CanaryProbe,
    CanaryResult,
    canary_template_probes,
    canary_tool_probes,
)
from mcpfactory_pipeline.checks.evidence import Evidence, sent_arguments
from mcpfactory_pipeline.checks.requester import Requester
from mcpfactory_pipeline.checks.transport.conversation import Conversation

_CANARY: Final = 3.0  # seconds; timeout of the answer to a canary


async def send_canaries(
    evidence: Evidence, canaries: Canaries, conversation: Conversation, requests: Requester, *, allow_calls: bool
) -> None:
    """Send canaries as arguments of tools that have answered already, and as variables of resource templates."""
    answered = sorted(evidence.calls, key=lambda call: not call.failed)  # successful calls come first
    made = {call.tool: sent_arguments(call) for call in answered if call.exchange.result is not None}
    failed = made.keys() - {call.tool for call in answered if not call.failed}
    named = evidence.named_tools
    tools = [one for one in named if one[0] in made and may_call_tool(one[0], named, allow_calls=allow_calls)]
    templates = evidence.lists.get("resources/templates/list")
    probes = [
        *canary_tool_probes(tools, made, canaries, failed),
        *canary_template_probes(templates.items if templates else (), canaries),
    ]
    for probe in probes:
        if requests.seconds_left() <= 0:
            evidence.missing["canaries"] = "the time limit of the validation was reached"
            return
        if probe.confirms and not _was_taken(probe, evidence):
            continue
        exchange = await requests.request(conversation, probe.method, dict(probe.params), _CANARY)
        taken = canaries.taken(probe.kind, json.dumps(exchange.received, ensure_ascii=False))
        evidence.canaries.append(CanaryResult(probe, exchange, taken))
        if exchange.problem.startswith("the server"):
            return


def _was_taken(probe: CanaryProbe, evidence: Evidence) -> bool:
    """Return True if the same argument has already taken a canary of this kind."""
    about = (probe.kind, probe.place)
    return any(one.taken and (one.probe.kind, one.probe.place) == about for one in evidence.canaries)
