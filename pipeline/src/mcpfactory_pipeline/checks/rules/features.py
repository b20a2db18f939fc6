"""Rules about resources, prompts, completion, logging and subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from mcpfactory_pipeline.checks.evidence import Evidence, Listening
from mcpfactory_pipeline.checks.exchange import COMPLETIONS, FIRST_MODERN, LATEST_HANDSHAKE, WireExchange
from mcpfactory_pipeline.checks.probes import NOTHING_TO_ASK
from mcpfactory_pipeline.checks.rule import (
    Check,
    Fault,
    FindFaults,
    Rule,
    RuleOutcome,
    not_applicable,
    not_checked,
    rule_outcome,
)
from mcpfactory_pipeline.checks.rules.legacy import describe_answer, era_or_reason, expects_result, probe_check
from mcpfactory_pipeline.checks.transport.conversation import is_acknowledgement, subscription
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND

_MOST_VALUES: Final = 100  # of one completion


def _asked(probe: str, find_faults: FindFaults, capability: str, era: str = "") -> Check:
    """Return a check of one probe's exchange, for servers that list the probed feature."""
    judge = probe_check(probe, find_faults, era=era, capability=capability)

    def check(evidence: Evidence) -> RuleOutcome:
        if evidence.missing.get(probe) == NOTHING_TO_ASK:
            return not_applicable(NOTHING_TO_ASK)
        return judge(evidence)

    return check


def _refuses(what: str, *codes: int) -> FindFaults:
    """Return a check that something wrong is answered with one of `codes`; another error is tolerated."""

    def find_faults(exchange: WireExchange) -> Iterator[Fault]:
        if exchange.code not in codes:
            words = f"expected error {' or '.join(map(str, codes))}, got {describe_answer(exchange)}"
            yield Fault(words, what, exchange, lesser=1 if exchange.error is not None else None)

    return find_faults


def _not_found(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code in (RESOURCE_NOT_FOUND, INVALID_PARAMS):
        return
    contents = (exchange.result or {}).get("contents")
    if exchange.result is not None and contents:
        return  # a template may match any URI
    what = "empty contents" if exchange.result is not None else describe_answer(exchange)
    words = f"expected error {RESOURCE_NOT_FOUND} or {INVALID_PARAMS}, got {what}"
    yield Fault(words, "unknown resource", exchange, lesser=1 if exchange.error is not None else None)


def _prompt(exchange: WireExchange) -> Iterator[Fault]:
    result = exchange.result
    if result is None:
        if exchange.error is None:  # the text that was made up may be none that the prompt takes
            yield Fault(f"the first prompt got {describe_answer(exchange)}", "prompts/get", exchange)
        return
    if result.get("resultType") == "input_required":
        return
    messages = result.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        yield Fault("the result has no list of messages", "prompts/get", exchange)
    elif any(message.get("role") not in ("user", "assistant") for message in messages):
        yield Fault("a message has a role that is neither user nor assistant", "prompts/get", exchange)
    elif any(not isinstance(message.get("content"), dict) for message in messages):
        yield Fault("the content of a message is not a content block", "prompts/get", exchange)


def _not_completed(exchange: WireExchange) -> Iterator[Fault]:
    found: Any = (exchange.result or {}).get("completion")
    if isinstance(found, dict) and found.get("values"):
        return  # it completes, and does not say so
    if exchange.code != METHOD_NOT_FOUND and exchange.received is not None:
        yield Fault(f"expected error {METHOD_NOT_FOUND}, got {describe_answer(exchange)}", "completion", exchange)


def _undeclared(evidence: Evidence) -> RuleOutcome:
    if "completions" in evidence.capabilities:
        return not_applicable("the server declares completions")
    return probe_check("complete-undeclared", _not_completed, era="")(evidence)


def _completion(exchange: WireExchange) -> Iterator[Fault]:
    found: Any = (exchange.result or {}).get("completion")
    values = found.get("values") if isinstance(found, dict) else None
    if exchange.result is None:
        yield Fault(
            f"the completion of a listed prompt's argument got {describe_answer(exchange)}", "completion", exchange
        )
    elif not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        yield Fault("completion.values is not a list of strings", "completion", exchange)
    elif len(values) > _MOST_VALUES:
        yield Fault(f"{len(values)} values, the maximum is {_MOST_VALUES}", "completion", exchange)


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="features.unknown-resource", severity=3, check=_asked("unknown-resource", _not_found, "resources"),
        statement=(f"A resource that does not exist is answered with an error ({RESOURCE_NOT_FOUND}, or {INVALID_PARAMS} "
                   "in the newest revision), never with empty contents."),
        source="MCP server/resources, Error Handling",
        hint="return an error: an empty text looks like an answer",
    ),
    Rule(
        id="features.resource-uri", severity=3, gate=True,
        check=_asked("resource-uri", _refuses("a number as URI", INVALID_PARAMS), "resources"),
        statement=f"resources/read with a URI that is not a string is answered with error {INVALID_PARAMS}.",
        source="MCP server/resources, Security Considerations: servers must validate all resource URIs",
        hint="check the type before you look up the resource",
    ),
    Rule(
        id="features.subscribe", severity=3, gate=True, until=LATEST_HANDSHAKE,
        check=_asked("subscribe", expects_result("resources/subscribe", "resources/subscribe"), "resources", "legacy"),
        statement="A server that declares resources.subscribe accepts a subscription to a listed resource.",
        source="MCP server/resources, Subscriptions",
        hint="return an empty result, or do not declare resources.subscribe",
    ),
    Rule(
        id="features.unsubscribe", severity=3, gate=True, until=LATEST_HANDSHAKE,
        check=_asked("unsubscribe", expects_result("resources/unsubscribe", "resources/unsubscribe"), "resources", "legacy"),
        statement="A server that declares resources.subscribe also accepts the end of a subscription.",
        source="MCP schema, UnsubscribeRequest",
        hint="return an empty result",
    ),
    Rule(
        id="features.prompt", severity=3, gate=True, check=_asked("get-prompt", _prompt, "prompts"),
        statement="prompts/get for the first listed prompt returns messages, each with a role and one content block.",
        source="MCP server/prompts, Getting a Prompt; schema, GetPromptResult",
        hint='return {"messages": [{"role": "user", "content": {"type": "text", "text": …}}]}',
    ),
    Rule(
        id="features.unknown-prompt", severity=2,
        check=_asked("unknown-prompt", _refuses("unknown prompt", INVALID_PARAMS), "prompts"),
        statement=f"prompts/get for an unknown prompt is answered with error {INVALID_PARAMS}.",
        source="MCP server/prompts, Error Handling",
        hint="look up the name before anything else",
    ),
    Rule(
        id="features.prompt-arguments", severity=2,
        check=_asked("prompt-arguments", _refuses("missing argument", INVALID_PARAMS), "prompts"),
        statement=f"prompts/get without a required argument is answered with error {INVALID_PARAMS}.",
        source="MCP server/prompts, Error Handling: missing required arguments",
        hint="check the arguments before you fill in the prompt",
    ),
    Rule(
        id="features.completion", severity=3, gate=True, check=_asked("complete", _completion, "completions"),
        statement=("A server that declares completions completes an argument of a listed prompt, with at most "
                   f"{_MOST_VALUES} values."),
        source="MCP server/utilities/completion",
        hint="return an empty list if there are no values, and set hasMore if there are more",
    ),
    Rule(
        id="features.unknown-completion", severity=2,
        check=_asked("complete-unknown", _refuses("completion of an unknown prompt", INVALID_PARAMS), "completions"),
        statement=f"completion/complete for an unknown prompt is answered with error {INVALID_PARAMS}.",
        source="MCP server/utilities/completion, Error Handling",
        hint="look up the reference first",
    ),
    Rule(
        id="features.completion-argument", severity=2, since=COMPLETIONS,
        check=_asked("complete-nothing", _refuses("completion without an argument", INVALID_PARAMS), "completions"),
        statement=f"completion/complete without an argument is answered with error {INVALID_PARAMS}.",
        source="MCP server/utilities/completion, Error Handling: missing required arguments",
        hint="check the request against its schema first",
    ),
    Rule(
        id="features.no-completion", severity=1, since=COMPLETIONS, check=_undeclared,
        statement=f"A server without completions answers completion/complete with error {METHOD_NOT_FOUND}.",
        source=("MCP server/utilities/completion, Error Handling: method not found, where the capability is not "
                "supported"),
        hint="remove the method, or declare completions",
    ),
    Rule(
        id="features.log-level", severity=3, gate=True, until=LATEST_HANDSHAKE,
        check=_asked("set-level", expects_result("logging/setLevel", "logging/setLevel"), "logging", "legacy"),
        statement="A server that declares logging accepts each of the eight levels.",
        source="MCP server/utilities/logging, Setting Log Level",
        hint="answer logging/setLevel with an empty result",
    ),
    Rule(
        id="features.unknown-log-level", severity=2, until=LATEST_HANDSHAKE,
        check=_asked("unknown-level", _refuses("unknown level", INVALID_PARAMS), "logging", "legacy"),
        statement=f"An unknown log level is answered with error {INVALID_PARAMS}.",
        source="MCP server/utilities/logging, Error Handling",
        hint="accept only the eight syslog levels",
    ),
)  # fmt: skip


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
                more = [key for key, value in _honoured(one).items() if value and not _is_asked(asked, key, value)]
                if more and one is next(filter(is_acknowledgement, stream.heard)):
                    yield _fault(f"the acknowledgement honours {', '.join(more)}, which was not asked for", stream)
            elif not _is_wanted(one, asked):
                yield _fault(f"{one.get('method')} came, which was not asked for", stream)


def _is_asked(asked: dict[str, Any], key: str, value: Any) -> bool:
    if isinstance(value, list):
        return isinstance(asked.get(key), list) and all(one in asked[key] for one in value)
    return bool(asked.get(key))


def _is_wanted(message: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Return True if a notification may come on a stream; only change notifications are judged here."""
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


LISTENING_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="modern.listen", severity=3, gate=True, since=FIRST_MODERN, check=_over(_acknowledged),
        statement=("A stream of notifications begins with its acknowledgment, which reports the accepted part of the "
                   "filter."),
        source="MCP basic/patterns/subscriptions, Acknowledgement",
        hint="send notifications/subscriptions/acknowledged before anything else",
    ),
    Rule(
        id="modern.listen-tagged", severity=3, gate=True, since=FIRST_MODERN, check=_over(_tagged),
        statement="Each notification on a stream has the id of the request that opened the stream in its metadata.",
        source="MCP basic/patterns/subscriptions, Notifications; basic/index, _meta, Subscription id",
        hint="copy the id unchanged to _meta as io.modelcontextprotocol/subscriptionId",
    ),
    Rule(
        id="modern.listen-wanted", severity=3, gate=True, since=FIRST_MODERN, check=_over(_wanted),
        statement="A stream has only notifications that its filter requests.",
        source="MCP basic/patterns/subscriptions, Filter: the server must not send kinds that were not requested",
        hint="store the filter with the stream, and check it before you send",
    ),
    Rule(
        id="modern.listen-several", severity=3, gate=True, since=FIRST_MODERN, check=_over(_several),
        statement="A client can open a second stream, which is acknowledged separately.",
        source="MCP basic/patterns/subscriptions, Multiple subscriptions",
        hint="store streams by the id of their request",
    ),
    Rule(
        id="modern.listen-malformed", severity=2, since=FIRST_MODERN, check=_malformed,
        statement=f"A filter that is not an object is answered with error {INVALID_PARAMS} (another error is tolerated).",
        source="MCP basic/patterns/subscriptions, Filter; schema, SubscriptionsListenRequest",
        hint="check the filter before you open the stream",
    ),
)  # fmt: skip
