"""Open streams of notifications (`subscriptions/listen`), and make calls that may cause notifications."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mcpfactory_pipeline.checks.client_capabilities import params_without_meta
from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import QUICK
from mcpfactory_pipeline.checks.probes import subscription_filters
from mcpfactory_pipeline.checks.requester import SLOWER, TIME_LIMIT, TIRED, Requester
from mcpfactory_pipeline.checks.transport.conversation import Conversation, cancellation_message
from mcpfactory_runtime.types import Json

_MAX_CALLS: Final = 4  # maximum number of calls while streams are open


async def observe_streams(
    evidence: Evidence,
    conversation: Conversation,
    requests: Requester,
    capabilities: Any,
    may_repeat: Callable[[Json | str], bool],
) -> None:
    """Open streams with different filters, make calls, and close the streams. Then open one with an invalid filter.

    The calls are permitted repetitions of quick calls that may change something.
    """
    if requests.seconds_left() <= 0:
        evidence.missing["listen"] = evidence.missing["listen-malformed"] = TIME_LIMIT
        return
    filters = subscription_filters(evidence, capabilities)
    opened = [requests.message("subscriptions/listen", {"notifications": one}) for one in filters]
    reading = evidence.read_only_tools
    made = [call.exchange for call in evidence.calls if not call.failed and call.tool not in reading]
    repeated = [one.sent for one in made if one.milliseconds < QUICK and may_repeat(one.sent)][:_MAX_CALLS]
    calls = [requests.message("tools/call", params_without_meta(sent)) for sent in repeated]
    streams = await conversation.listen(opened, max(TIRED, SLOWER * requests.pace), calls)
    evidence.streams.append(streams)
    if any(stream.heard for stream in streams):
        evidence.probes["after-listen"] = await requests.request(conversation, "server/discover")
        malformed = requests.message("subscriptions/listen", {"notifications": "all of them"})
        evidence.probes["listen-malformed"] = await requests.ask(conversation, malformed, TIRED)
        await conversation.notify(cancellation_message(malformed))
