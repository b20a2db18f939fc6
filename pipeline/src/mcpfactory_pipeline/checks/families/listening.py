"""Rules over streams of notifications, which the per-request lifecycle has (`subscriptions/listen`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from mcpfactory_pipeline.checks import eras
from mcpfactory_pipeline.checks.evidence import Evidence, Listening
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.families.legacy import describe_answer, era_or_reason
from mcpfactory_pipeline.checks.rule import Check, Fault, Rule, RuleOutcome, not_applicable, not_checked, rule_outcome
from mcpfactory_pipeline.checks.wire.conversation import is_acknowledgement, subscription
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS

__all__ = ["RULES"]

# The notification that each member of a filter asks for.
_KINDS: Final = {
    f"notifications/{kind}/list_changed": f"{kind}ListChanged" for kind in ("tools", "prompts", "resources")
}
_UPDATED: Final = "notifications/resources/updated"
_WHERE: Final = "subscriptions/listen"
_NewsOf = Callable[[tuple[Listening, ...]], Iterator[Fault]]


def _over(find_faults: _NewsOf) -> Check:
    """Return a check of the streams, of servers that do not refuse the first of them."""

    def check(evidence: Evidence) -> RuleOutcome:
        if (reason := era_or_reason(evidence, "modern")) is not None:
            return reason
        if not evidence.listens:
            return not_checked(evidence.why_missing("listen"))
        first = evidence.listens[0]
        if not first.heard and "error" in (first.answer or {}):
            return not_applicable("the server has no streams of notifications")
        return rule_outcome(1, find_faults(evidence.listens))

    return check


def _fault(words: str, stream: Listening, *others: Listening) -> Fault:
    proofs = [one.to_proof() for one in (stream, *others)]
    return Fault(words, _WHERE, proof={key: "\n".join(proof[key] for proof in proofs) for key in proofs[0]})


def _acknowledged(streams: tuple[Listening, ...]) -> Iterator[Fault]:
    first = streams[0]
    if not first.heard:
        came = "an answer" if first.answer is not None else "the end of the stream" if first.ended else "nothing"
        yield _fault(f"the stream begins with {came}, not with its acknowledgement", first)
    elif not is_acknowledgement(first.heard[0]):
        yield _fault(f"the stream begins with {first.heard[0].get('method')}, not with its acknowledgement", first)
    elif not isinstance(_params(first.heard[0]).get("notifications"), dict):
        yield _fault("the acknowledgement does not say which notifications it honours", first)


def _tagged(streams: tuple[Listening, ...]) -> Iterator[Fault]:
    for stream in streams:
        wanted = stream.request["id"]
        for one in stream.heard:
            tag = subscription(one)
            if type(tag) is not type(wanted) or tag != wanted:
                yield _fault(f"{one.get('method')} names the stream {tag!r}, not {wanted!r}", stream)
                return


def _wanted(streams: tuple[Listening, ...]) -> Iterator[Fault]:
    for stream in streams:
        asked = stream.request["params"]["notifications"]
        for one in stream.heard:
            if is_acknowledgement(one):
                more = [key for key, value in _honoured(one).items() if value and not _asked(asked, key, value)]
                if more and one is next(filter(is_acknowledgement, stream.heard)):
                    yield _fault(f"the acknowledgement honours {', '.join(more)}, which was not asked for", stream)
            elif not _is_wanted(one, asked):
                yield _fault(f"{one.get('method')} came, which was not asked for", stream)


def _asked(asked: dict[str, Any], key: str, value: Any) -> bool:
    if isinstance(value, list):
        return isinstance(asked.get(key), list) and all(one in asked[key] for one in value)
    return bool(asked.get(key))


def _is_wanted(message: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Whether a notification may come on a stream; what is about no change is judged elsewhere."""
    method = str(message.get("method"))
    if method == _UPDATED:
        return _params(message).get("uri") in asked.get("resourceSubscriptions", [])
    return method not in _KINDS or bool(asked.get(_KINDS[method]))


def _several(streams: tuple[Listening, ...]) -> Iterator[Fault]:
    first, *others = streams
    if not any(_honoured(message) for message in first.heard):
        return  # a stream of nothing may end at once
    if first.answer is not None or first.ended:
        yield _fault("the first stream ended when a second one was opened", first, *others)
    for other in others:
        if not other.heard and "error" not in (other.answer or {}):
            yield _fault("a second stream was not acknowledged, as long as the first one was open", other, first)


def _honoured(message: dict[str, Any]) -> dict[str, Any]:
    found = _params(message).get("notifications")
    return found if isinstance(found, dict) else {}


def _params(message: dict[str, Any]) -> dict[str, Any]:
    found = message.get("params")
    return found if isinstance(found, dict) else {}


def _malformed(evidence: Evidence) -> RuleOutcome:
    exchange = evidence.probes.get("listen-malformed")
    if exchange is None and not any(stream.heard for stream in evidence.listens):
        return era_or_reason(evidence, "modern") or not_applicable("the server has no streams of notifications")
    if exchange is None:
        return not_checked(evidence.why_missing("listen-malformed"))
    return RuleOutcome(tuple(_malformed_faults(exchange)))


def _malformed_faults(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code != INVALID_PARAMS:
        words = f"a filter that is a text: expected error {INVALID_PARAMS}, got {describe_answer(exchange)}"
        yield Fault(words, _WHERE, exchange, lesser=1 if exchange.error is not None else None)


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="modern.listen", family="modern", severity=3, gate=True, check=_over(_acknowledged),
        statement="A stream of notifications begins with its acknowledgement, which says what of the filter is honoured.",
        source="MCP basic/patterns/subscriptions, Acknowledgement",
        hint="send notifications/subscriptions/acknowledged before anything else",
        since=eras.FIRST_MODERN,
    ),
    Rule(
        id="modern.listen-tagged", family="modern", severity=3, gate=True, check=_over(_tagged),
        statement="Each notification on a stream has the id of the request that opened it in its metadata.",
        source="MCP basic/patterns/subscriptions, Notifications; basic/index, _meta, Subscription id",
        hint="copy the id as it came into _meta as io.modelcontextprotocol/subscriptionId",
        since=eras.FIRST_MODERN,
    ),
    Rule(
        id="modern.listen-wanted", family="modern", severity=3, gate=True, check=_over(_wanted),
        statement="A stream has only notifications that its filter asks for.",
        source="MCP basic/patterns/subscriptions, Filter: the server must not send kinds that were not requested",
        hint="keep the filter with the stream, and ask it before you send",
        since=eras.FIRST_MODERN,
    ),
    Rule(
        id="modern.listen-several", family="modern", severity=3, gate=True, check=_over(_several),
        statement="A second stream of the same client is opened beside the first, and acknowledged by itself.",
        source="MCP basic/patterns/subscriptions, Multiple subscriptions",
        hint="keep streams by the id of their request",
        since=eras.FIRST_MODERN,
    ),
    Rule(
        id="modern.listen-malformed", family="modern", severity=2, gate=False, check=_malformed,
        statement=f"A filter that is no object is answered with error {INVALID_PARAMS} (another error is tolerated).",
        source="MCP basic/patterns/subscriptions, Filter; schema, SubscriptionsListenRequest",
        hint="check the filter before the stream is opened",
        since=eras.FIRST_MODERN,
    ),
)  # fmt: skip
