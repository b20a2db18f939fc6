"""Two clients of a server at a URL at the same time: equal request ids, and texts that only one of them sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from mcpfactory_pipeline.checks.call_plan import PlannedCall, plan_varied_calls
from mcpfactory_pipeline.checks.client_features import plain_params
from mcpfactory_pipeline.checks.evidence import ConcurrentRequests, Evidence, RecordedCall
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.transport.conversation import Conversation
from mcpfactory_runtime.types import Json

_PAIRS: Final = 2
_CALLS: Final = 10  # maximum calls of each client
_QUICK: Final = 1_000  # milliseconds; slower requests are not repeated
_PATIENCE: Final = 5.0  # seconds; a quick request must be answered within this time, also at the same time as another

Message = Callable[[str, Json], Json]


async def observe_two_clients(
    evidence: Evidence,
    clients: tuple[Conversation, Conversation],
    planned: Sequence[tuple[PlannedCall, RecordedCall]],
    message: Message,
) -> None:
    """Send requests with equal ids at the same time; then texts from the first client, and calls from the second.

    Only lists and calls of tools with readOnlyHint that were answered before are repeated.

    Args:
        evidence: the record to fill.
        clients: two open sessions.
        planned: the calls that were made, with their results.
        message: returns a request with a new id.
    """
    first, second = clients
    reading = evidence.read_only_tools
    calls = [(plan, call.exchange) for plan, call in planned if call.tool in reading and not call.failed]
    calls = [(plan, exchange) for plan, exchange in calls if exchange.milliseconds < _QUICK][:_CALLS]
    for one, other in _pairs(evidence, [exchange for _, exchange in calls]):
        evidence.concurrent.append(await _ask_together(first, second, one, other, message))
    texts = plan_varied_calls(reading, [plan for plan, _ in calls])[1::2]
    for plan in texts:
        evidence.first_client.append(await first.ask(message("tools/call", _call(plan)), _PATIENCE))
    written = {plan.tool for plan in texts}  # called last, as its call replaces what it keeps
    for plan, _ in sorted(calls if texts else (), key=lambda one: one[0].tool in written):
        evidence.second_client.append(await second.ask(message("tools/call", _call(plan)), _PATIENCE))


def _call(planned: PlannedCall) -> Json:
    return {"name": planned.tool, "arguments": dict(planned.arguments)}


def _pairs(evidence: Evidence, calls: Sequence[WireExchange]) -> list[tuple[WireExchange, WireExchange]]:
    """Return the slowest request with others that have different results."""
    others = [call.exchange for call in evidence.others if not call.failed]
    lists = [listing.exchanges[0] for listing in evidence.lists.values() if listing.exchanges]
    known = [one for one in (*calls, *others, *lists) if one.result is not None and one.milliseconds < _QUICK]
    if not known:
        return []
    slowest = max(known, key=lambda one: (one.method == "tools/call", one.milliseconds // 100))
    return [(slowest, other) for other in known if other.content != slowest.content][:_PAIRS]


async def _ask_together(
    first: Conversation, second: Conversation, one: WireExchange, other: WireExchange, message: Message
) -> ConcurrentRequests:
    """Send two requests with one id at the same time; repeat both alone if an answer differs from the earlier one."""
    messages = [message(known.method, plain_params(known.sent)) for known in (one, other)]
    messages[1]["id"] = messages[0]["id"]
    asked = (first.ask(messages[0], _PATIENCE), second.ask(messages[1], _PATIENCE))
    together = tuple(await asyncio.gather(*asked))
    again: tuple[WireExchange, ...] = ()
    if [answer.content for answer in together] != [one.content, other.content]:
        alone = [message(known.method, plain_params(known.sent)) for known in (one, other)]
        again = tuple([await first.ask(known, _PATIENCE) for known in alone])
    return ConcurrentRequests((one, other), together, again)
