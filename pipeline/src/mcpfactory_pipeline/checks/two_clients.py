"""Check a server at a URL with two clients: equal ids, a call during a GET stream, and texts of one client."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from mcpfactory_pipeline.checks.call_plan import PlannedCall, plan_varied_calls
from mcpfactory_pipeline.checks.client_capabilities import params_without_meta
from mcpfactory_pipeline.checks.evidence import CanceledElsewhere, ConcurrentRequests, Evidence, RecordedCall
from mcpfactory_pipeline.checks.exchange import QUICK, WireExchange, initialize_params
from mcpfactory_pipeline.checks.requester import Requester
from mcpfactory_pipeline.checks.transport.conversation import Conversation, cancellation_message
from mcpfactory_pipeline.checks.transport.http import HttpConversation
from mcpfactory_runtime.types import Json

_PAIRS: Final = 2
_BESIDE: Final = 3  # maximum number of calls while streams are open
_CALLS: Final = 10  # maximum number of calls per client
_SLOW: Final = 300  # milliseconds; quicker calls may end before the server reads a cancellation
_LONGEST: Final = 5_000  # milliseconds; slower calls are not canceled
_SLOWEST: Final = 2_000  # milliseconds; slower requests are not sent with equal ids
_PATIENCE: Final = 5.0  # seconds; timeout of an answer, even while another request runs


async def observe_clients_at(
    evidence: Evidence,
    url: str,
    headers: Mapping[str, str],
    planned: Sequence[tuple[PlannedCall, RecordedCall]],
    requests: Requester,
) -> None:
    """Open a session of each of two clients at a URL, send the requests, and close the sessions."""
    requests.lifecycle = "legacy" if "legacy" in evidence.lifecycles else "modern"
    clients = (HttpConversation(url, "client 1", headers), HttpConversation(url, "client 2", headers))
    for client in clients if requests.lifecycle == "legacy" else ():
        hello = await requests.request(client, "initialize", initialize_params())
        if hello.result is None:
            break
        await client.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
    else:
        for client in clients:
            client.schemas = evidence.input_schemas
        await _observe(evidence, clients, planned, requests, one_user=bool(headers))
    for client in clients:
        await client.close()
        evidence.sessions += [client.session] if client.session.answered else []


async def _observe(
    evidence: Evidence,
    clients: tuple[HttpConversation, HttpConversation],
    planned: Sequence[tuple[PlannedCall, RecordedCall]],
    requests: Requester,
    *,
    one_user: bool,
) -> None:
    """Send requests with equal ids at the same time.

    Then send texts from the first client, and make calls from the second client.

    Only lists, and calls of tools with `readOnlyHint`, are repeated, and only if they were answered before.

    Args:
        evidence: the observations to extend.
        clients: two open sessions.
        planned: the calls that were already made, with their results.
        requests: builds the requests, and sends them until the time limit.
        one_user: True if both clients have the same credentials. Users may see their own texts, so no texts are sent.
    """
    first, second = clients
    reading = evidence.read_only_tools
    answered = [one for one in planned if one[1].tool in reading and not one[1].failed]
    repeated = [one for one in answered if one[1].exchange.milliseconds < QUICK][:_CALLS]
    for one, other in _pairs(evidence, [call.exchange for _, call in answered[:_CALLS]]):
        if requests.seconds_left() > 0:
            evidence.concurrent.append(await _ask_together(first, second, one, other, requests))
    slow = [plan for plan, call in answered if _SLOW <= call.exchange.milliseconds <= _LONGEST]
    if slow and requests.lifecycle == "legacy" and requests.seconds_left() > 0:
        await _cancel_elsewhere(evidence, first, second, _call(slow[0]), requests)
    if repeated and requests.lifecycle == "legacy":
        await _call_beside_streams(evidence, first, [plan for plan, _ in repeated[:_BESIDE]], requests)
    plans = [plan for plan, _ in repeated]
    texts = [] if one_user else plan_varied_calls(reading, plans)[1::2]  # one variant per tool
    # Call these tools last, because they may overwrite the first client's text.
    written = {plan.tool for plan in texts}
    reads = sorted(plans if texts else (), key=lambda plan: plan.tool in written)
    for client, made, answers in ((first, texts, evidence.first_client), (second, reads, evidence.second_client)):
        for plan in made:
            if requests.seconds_left() > 0:
                answers.append(await requests.exchange(client, requests.message("tools/call", _call(plan)), _PATIENCE))


async def _call_beside_streams(
    evidence: Evidence, client: HttpConversation, plans: Sequence[PlannedCall], requests: Requester
) -> None:
    """Make calls while one GET stream is open, then twice while two are open. Then resume the stream of a call."""
    for streams in (1, 2, 2):
        if requests.seconds_left() <= 0:
            return
        made = await client.ask_beside_streams(_messages(plans, requests), _PATIENCE, streams)
        evidence.beside_streams += [made] if made is not None else []
        if made is None or not any(made.heard):
            break
    if requests.seconds_left() > 0:
        evidence.replayed = await client.replay(_messages([*plans, *plans][:2], requests), _PATIENCE)


async def _cancel_elsewhere(
    evidence: Evidence, first: HttpConversation, second: HttpConversation, params: Json, requests: Requester
) -> None:
    """Make a slow call from the first client while the second one cancels a request with the same id."""

    async def cancel() -> None:
        await asyncio.sleep(_SLOW / 2 / 1000)
        await second.notify(cancellation_message(message))

    message = requests.message("tools/call", params)
    exchange, _ = await asyncio.gather(requests.exchange(first, message), cancel())
    again = exchange if exchange.received is not None else await requests.request(first, "tools/call", params)
    evidence.canceled_elsewhere.append(CanceledElsewhere(exchange, again))


def _messages(plans: Sequence[PlannedCall], requests: Requester) -> list[Json]:
    calls = [{**_call(plan), "_meta": {"progressToken": next(requests.numbers)}} for plan in plans]
    return [requests.message("tools/call", params) for params in calls]


def _call(planned: PlannedCall) -> Json:
    return {"name": planned.tool, "arguments": dict(planned.arguments)}


def _pairs(evidence: Evidence, calls: Sequence[WireExchange]) -> list[tuple[WireExchange, WireExchange]]:
    """Return pairs: the slowest request, preferably a tool call, and a request with a different result.

    Other calls of the same tool come first, because a server may share work between equal ids.
    """
    others = [call.exchange for call in (*evidence.others, *evidence.further) if not call.failed]
    lists = [listing.exchanges[0] for listing in evidence.lists.values() if listing.exchanges]
    known = [one for one in (*calls, *others, *lists) if one.result is not None and one.milliseconds < _SLOWEST]
    if not known:
        return []
    slowest = max(known, key=lambda one: (one.method == "tools/call", one.milliseconds // 100))
    known.sort(key=lambda one: one.params.get("name") != slowest.params.get("name"))
    return [(slowest, other) for other in known if other.content != slowest.content][:_PAIRS]


async def _ask_together(
    first: Conversation, second: Conversation, one: WireExchange, other: WireExchange, requests: Requester
) -> ConcurrentRequests:
    """Send two requests with the same id at the same time.

    If an answer differs from the earlier one, repeat each request alone.
    """

    def message(known: WireExchange) -> Json:
        return requests.message(known.method, params_without_meta(known.sent))

    messages = [message(known) for known in (one, other)]
    messages[1]["id"] = messages[0]["id"]
    pairs = zip((first, second), messages, strict=True)
    together = tuple(await asyncio.gather(*(requests.exchange(*pair, _PATIENCE) for pair in pairs)))
    again: tuple[WireExchange, ...] = ()
    if [answer.content for answer in together] != [one.content, other.content]:
        again = tuple([await requests.exchange(first, message(known), _PATIENCE) for known in (one, other)])
    return ConcurrentRequests((one, other), together, again)
