"""Send tool calls and resource reads with canaries as arguments."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from mcpfactory_pipeline.checks.canaries import (
    Canaries,
    CanaryProbe,
    CanaryResult,
    canary_template_probes,
    canary_tool_probes,
)
from mcpfactory_pipeline.checks.evidence import Evidence, sent_arguments
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.option_canaries import send_option_canaries
from mcpfactory_pipeline.checks.requester import TIME_LIMIT, Requester
from mcpfactory_pipeline.checks.sql_canaries import send_sql_canaries
from mcpfactory_pipeline.checks.transport.conversation import Conversation
from mcpfactory_runtime.types import Json

_CANARY: Final = 3.0  # seconds; timeout of the answer to a canary


async def send_canaries(
    evidence: Evidence,
    canaries: Canaries,
    conversation: Conversation,
    requests: Requester,
    *,
    permitted: Mapping[str, Json],
    queried: Container[str],
    templates: Sequence[Any] = (),
) -> None:
    """Send canaries to the permitted tools that answered before, and to resource templates.

    Only tools in `queried` get SQL conditions, because a vulnerable tool could change all rows of a table.
    """
    worked = {call.tool: sent_arguments(call) for call in evidence.calls if not call.failed}
    made = {call.tool: sent_arguments(call) for call in evidence.calls if call.exchange.result is not None} | worked
    # Tools that worked come first, because the others may wait for an API in every call.
    tools = sorted(
        ((name, permitted[name]) for name in permitted if name in made), key=lambda one: one[0] not in worked
    )
    probes = [*canary_tool_probes(tools, made, canaries), *canary_template_probes(templates, canaries)]

    async def ask(probe: CanaryProbe) -> WireExchange:
        return await requests.request(conversation, probe.method, dict(probe.params), _CANARY)

    def may_continue() -> bool:
        exchanges = conversation.session.exchanges
        if requests.seconds_left() <= 0:
            evidence.missing["canaries"] = TIME_LIMIT
        elif exchanges and exchanges[-1].server_ended:
            evidence.missing["canaries"] = exchanges[-1].problem
        return "canaries" not in evidence.missing

    for probe in probes:
        if not may_continue():
            return
        if probe.confirms and not _was_taken(probe, evidence):
            continue
        if probe.kind == "address form" and _was_taken(replace(probe, kind="address"), evidence):
            continue  # a server without a filter
        exchange = await ask(probe)
        taken = canaries.taken(probe.kind, json.dumps(exchange.received, ensure_ascii=False))
        evidence.canaries.append(CanaryResult(probe, exchange, taken))
    evidence.canaries += await send_option_canaries(tools, made, ask, may_continue)
    tools = [(name, tool) for name, tool in tools if name in queried]
    evidence.canaries += await send_sql_canaries(tools, made, ask, may_continue)


def _was_taken(probe: CanaryProbe, evidence: Evidence) -> bool:
    about = (probe.kind, probe.place)
    return any(one.taken and (one.probe.kind, one.probe.place) == about for one in evidence.canaries)
