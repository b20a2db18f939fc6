"""Open streams of notifications (`subscriptions/listen`), and make calls that may cause notifications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.probes import subscription_filters
from mcpfactory_pipeline.checks.requester import SLOWER, TIME_LIMIT, TIRED, Requester
from mcpfactory_pipeline.checks.transport.conversation import Conversation, cancellation_message
from mcpfactory_runtime.types import Json


async def observe_streams(
    evidence: Evidence, conversation: Conversation, requests: Requester, capabilities: Any, calls: Sequence[Json]
) -> None:
    """Open streams with different filters, make calls, and close the streams. Then open one with an invalid filter.

    `calls` has params of calls that may change something, and that may be repeated.
    """
    if requests.seconds_left() <= 0:
        evidence.missing["listen"] = evidence.missing["listen-malformed"] = TIME_LIMIT
        return
    filters = subscription_filters(evidence, capabilities)
    opened = [requests.message("subscriptions/listen", {"notifications": one}) for one in filters]
    made = [requests.message("tools/call", params) for params in calls]
    streams = await conversation.listen(opened, max(TIRED, SLOWER * requests.pace), made)
    evidence.streams.append(streams)
    if any(stream.heard for stream in streams):
        evidence.probes["after-listen"] = await requests.request(conversation, "server/discover")
        malformed = requests.message("subscriptions/listen", {"notifications": "all of them"})
        evidence.probes["listen-malformed"] = await requests.ask(conversation, malformed, TIRED)
        await conversation.notify(cancellation_message(malformed))
