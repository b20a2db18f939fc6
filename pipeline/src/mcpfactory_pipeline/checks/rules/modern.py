"""Rules about the per-request lifecycle (`server/discover`, metadata on every request) and its notification streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from mcpfactory_pipeline.checks.client_capabilities import (
    MAX_ROUNDS,
    declared_client_capabilities,
    input_requests,
    params_without_meta,
    request_state,
    undeclared_client_capability,
)
from mcpfactory_pipeline.checks.evidence import Evidence, Listing, ModifiedStateAnswer, NotificationStream
from mcpfactory_pipeline.checks.exchange import CACHEABLE, FIRST_MODERN, META, META_KEY, MODERNS, VERSION, WireExchange
from mcpfactory_pipeline.checks.probes import describe_answer
from mcpfactory_pipeline.checks.rule import (
    Fault,
    RuleOutcome,
    RuleSubjects,
    RuleTable,
    Scope,
    not_applicable,
    not_checked,
    rule_outcome,
)
from mcpfactory_pipeline.checks.rules.subjects import ProbeScopes, missing_lifecycle_outcome, probed
from mcpfactory_pipeline.checks.transport.conversation import is_acknowledgement, subscription_id
from mcpfactory_runtime.protocol.errors import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_VERSION,
    URL_ELICITATION_REQUIRED,
)
from mcpfactory_runtime.revisions import LATEST
from mcpfactory_runtime.types import Json

RULES: Final = RuleTable(since=FIRST_MODERN)
rule, row = RULES.rule, RULES.row
_MODERN_CODES: Final = (HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION)


def has_per_request_metadata(exchange: WireExchange) -> bool:
    """Return True if a request has per-request metadata of a known revision; rules ignore answers to other requests."""
    meta = exchange.params.get("_meta")
    return isinstance(meta, dict) and meta.get(VERSION) in MODERNS


def _answers(
    choose: Callable[[WireExchange], bool] = lambda exchange: exchange.result is not None,
    *,
    by_method: bool = False,
    none: str = "",
) -> Scope[WireExchange]:
    """Return a scope of chosen answers to per-request messages; by default, all results.

    If `by_method` is set, each method counts once. `none` is the reason if no answer is selected.
    """

    def scope(evidence: Evidence) -> RuleSubjects[WireExchange] | RuleOutcome:
        if (reason := missing_lifecycle_outcome(evidence, "modern")) is not None:
            return reason
        found = [exchange for exchange in evidence.traffic if has_per_request_metadata(exchange) and choose(exchange)]
        if none and not found:
            return not_applicable(none)
        return RuleSubjects(found, len({exchange.method for exchange in found}) if by_method else None, once=True)

    return scope


@rule("modern.discover", 5, gate=True,
      statement="server/discover lists the supported revisions and the capabilities.",
      source="MCP server/discover",
      hint="return supportedVersions and capabilities")  # fmt: skip
def _discover(evidence: Evidence) -> RuleOutcome:
    return missing_lifecycle_outcome(evidence, "modern") or rule_outcome(1, _discover_faults(evidence.discover))


def _extensions(evidence: Evidence) -> RuleSubjects[str] | RuleOutcome:
    result = evidence.discover.result if evidence.discover else None
    declared = (result or {}).get("capabilities")
    names = declared.get("extensions") if isinstance(declared, dict) else None
    found = list(names) if isinstance(names, dict) else []
    return RuleSubjects(found) if found else not_applicable("no extension is declared")


@rule("modern.extension-names", 3, gate=True, over=_extensions,
      statement="The name of an extension has a prefix, such as example.com/name.",
      source="MCP basic/versioning, Extensions; basic/index, _meta: prefixes and names begin and end with a letter or digit",
      hint="use the reversed name of a domain that you own as prefix")  # fmt: skip
def _extension(name: str) -> Iterator[Fault]:
    if "/" not in name or not META_KEY.fullmatch(name):
        yield Fault(f"the name of the extension {name!r} has no valid prefix"[:200], "extensions")


def _discover_faults(exchange: WireExchange | None) -> Iterator[Fault]:
    result = exchange.result if exchange else None
    if result is None:
        yield Fault("server/discover has no result", "server/discover", exchange)
        return
    versions = result.get("supportedVersions")
    if not isinstance(versions, list) or not all(isinstance(version, str) for version in versions):
        yield Fault("supportedVersions is not a list of strings", "server/discover", exchange)
    elif not set(versions) & set(MODERNS):
        words = f"supportedVersions {versions} has no per-request revision, but the server answered one"
        yield Fault(words, "server/discover", exchange)
    if not isinstance(result.get("capabilities"), dict):
        yield Fault("the result has no capabilities object", "server/discover", exchange)


@rule("modern.result-type", 5, gate=True, over=_answers(by_method=True),
      statement="Every result has a resultType.",
      source="MCP basic/index, Responses: resultType is required",
      hint='add "resultType": "complete"')  # fmt: skip
def _result_type(exchange: WireExchange) -> Iterator[Fault]:
    kind = (exchange.result or {}).get("resultType")
    if not isinstance(kind, str):
        yield Fault(f"resultType is {kind!r}", exchange.method, exchange)


@rule("modern.cacheable", 3, gate=True, over=_answers(lambda one: one.result is not None and one.method in CACHEABLE, by_method=True),
      statement="Results of discover, lists and resources/read have ttlMs and cacheScope.",
      source="MCP server/utilities/caching",
      hint='add "ttlMs": 0 and "cacheScope": "private" if the result must not be cached')  # fmt: skip
def _cacheable(exchange: WireExchange) -> Iterator[Fault]:
    result = exchange.result or {}
    lifetime, scope = result.get("ttlMs"), result.get("cacheScope")
    if result.get("resultType") == "input_required":
        return
    if not isinstance(lifetime, int | float) or isinstance(lifetime, bool) or lifetime < 0 or lifetime % 1:
        yield Fault(f"ttlMs is {lifetime!r}, not a number of milliseconds", exchange.method, exchange)
    elif scope not in ("public", "private"):
        yield Fault(f"cacheScope is {scope!r}, neither public nor private", exchange.method, exchange)


# The first probe is sent to every server with tools; see `probes` for the others.
_INCOMPLETE: Final = ProbeScopes(
    tuple(map(probed, ("modern-no-capabilities", "modern-no-revision", "modern-no-metadata")))
)

row("modern.metadata", 3, gate=True, over=_INCOMPLETE,
    statement=(f"A request without the client's capabilities is answered with error {INVALID_PARAMS}. A server without the "
               "handshake also refuses a request without revision; another error is tolerated."),
    source="MCP basic/index, Per-request metadata: protocolVersion and clientCapabilities are required",
    hint="check _meta before you run the method")  # fmt: skip


def _only_stdio(evidence: Evidence) -> RuleOutcome | None:
    if evidence.transport != "stdio" or "legacy" in evidence.lifecycles:
        return not_applicable("the rules legacy or http check this server")
    return None


_STRAYS: Final = ("modern-notification", "modern-late-cancellation")

row("modern.notifications", 3, gate=True, over=ProbeScopes(tuple(probed(name, given=_only_stdio) for name in _STRAYS)),
    statement="A notification is never answered, even if its method is unknown, or if it cancels nothing.",
    source="MCP basic/index, Notifications: the receiver must not send a response",
    hint="send no answer to a message without an id")  # fmt: skip

row("modern.unescaped-text", 5, gate=True, over=probed("modern-unescaped-text", given=_only_stdio),
    statement="A message with unescaped Unicode line separators in a text is answered: only line feeds end messages.",
    source="MCP basic/transports/stdio: messages are delimited by newlines; RFC 8259 §7",
    hint="split the input at line feeds only, and decode it as UTF-8")  # fmt: skip


@rule("modern.unknown-version", 3, gate=True, over=probed("modern-unknown-version"),
      statement=f"An unsupported revision is answered with error {UNSUPPORTED_VERSION} and data.supported.",
      source="MCP basic/versioning, Unsupported versions",
      hint="list the supported revisions: a client selects one of them for its next request")  # fmt: skip
def _unknown_version(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code != UNSUPPORTED_VERSION:
        words = f"expected error {UNSUPPORTED_VERSION}, got {describe_answer(exchange)}"
        yield Fault(words, "unknown revision", exchange)
        return
    supported = _error_data(exchange).get("supported")
    if isinstance(supported, list) and not set(map(str, supported)) & set(MODERNS):
        words = "the error's data.supported does not list the revisions that the server supports"
        yield Fault(words, "unknown revision", exchange)


def _error_data(exchange: WireExchange) -> Json:
    data = (exchange.error or {}).get("data")
    return data if isinstance(data, dict) else {}


def _are_client_capabilities(value: Any) -> bool:
    known = ("elicitation", "experimental", "extensions", "roots", "sampling")
    return isinstance(value, dict) and all(isinstance(value.get(one, {}), dict) for one in known)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


# Error code → required members of the error's data, with their types, and functions that check the values.
_DATA: Final[Mapping[int, tuple[tuple[str, str, Callable[[Any], bool]], ...]]] = {
    MISSING_CAPABILITY: (("requiredCapabilities", "an object of client capabilities", _are_client_capabilities),),
    UNSUPPORTED_VERSION: (
        ("supported", "a list of revisions", lambda value: isinstance(value, list) and all(map(_is_text, value))),
        ("requested", "the revision of the request", _is_text),
    ),
}


def _errors_with_data(evidence: Evidence) -> RuleSubjects[WireExchange] | RuleOutcome:
    if (reason := missing_lifecycle_outcome(evidence, "modern")) is not None:
        return reason
    sent = [one for one in evidence.traffic if isinstance(one.params.get("_meta"), dict)]
    found = [one for one in sent if VERSION in one.params["_meta"] and one.code in _DATA]
    return RuleSubjects(found, len({one.code for one in found}), once=True)


@rule("modern.error-data", 3, gate=True, over=_errors_with_data,
      statement=(f"Error {MISSING_CAPABILITY} has data.requiredCapabilities, an object. Error {UNSUPPORTED_VERSION} has "
                 "data.supported, a list, and data.requested, a string."),
      source="MCP schema, MissingRequiredClientCapabilityError and UnsupportedProtocolVersionError: required members",
      hint='for example, send {"requiredCapabilities": {"sampling": {}}}')  # fmt: skip
def _required_data(exchange: WireExchange) -> Iterator[Fault]:
    for name, kind, fits in _DATA[exchange.code or 0]:
        value = _error_data(exchange).get(name)
        if not fits(value):
            yield Fault(f"data.{name} is {value!r}, not {kind}"[:200], f"error {exchange.code}", exchange)


row("modern.unknown-method", 3, gate=True, over=probed("modern-unknown-method"),
    statement=f"An unknown method is answered with error {METHOD_NOT_FOUND}.",
    source="JSON-RPC 2.0 §5.1",
    hint="answer unknown methods instead of dropping them: without an answer a client waits")  # fmt: skip

row("modern.removed-methods", 3, gate=True, over=probed("modern-removed-method"),
    statement=f"In the per-request revisions, which have no ping, ping is answered with error {METHOD_NOT_FOUND}.",
    source="MCP changelog, removed methods; basic/versioning: each request is served in the version that it names",
    hint="look up methods in the revision of the request, not in one table for all revisions")  # fmt: skip


@rule("modern.result-type-values", 3, gate=True, over=_answers(),
      statement="resultType is complete or input_required if the client declares no extension.",
      source="MCP basic/index, Responses",
      hint="use other values only for extensions that the client declared")  # fmt: skip
def _known_types(exchange: WireExchange) -> Iterator[Fault]:
    kind = (exchange.result or {}).get("resultType")
    if isinstance(kind, str) and kind not in ("complete", "input_required"):
        yield Fault(f"resultType is {kind!r}", exchange.method, exchange)


@rule("modern.input-required", 3, gate=True,
      over=_answers(lambda one: (one.result or {}).get("resultType") == "input_required", by_method=True,
                    none="no result asked for input"),
      statement=("Only tools/call, prompts/get and resources/read ask for input, and only for kinds that the client "
                 "declared."),
      source="MCP basic/patterns/mrtr",
      hint="check the client's capabilities in the request's metadata before you ask")  # fmt: skip
def _input_required(exchange: WireExchange) -> Iterator[Fault]:
    result, method = exchange.result or {}, exchange.method
    requests = result.get("inputRequests")
    if method not in LATEST.input_requests:
        yield Fault(f"{method} must not ask for input", method, exchange)
    elif requests is None and not isinstance(result.get("requestState"), str):
        yield Fault("inputRequests and requestState are both missing", method, exchange)
    elif requests is not None and not isinstance(requests, dict):
        yield Fault("inputRequests is not an object", method, exchange)
    else:
        declared = declared_client_capabilities(exchange)
        lost = sorted({undeclared_client_capability(one, declared) for one in input_requests(exchange).values()} - {""})
        if lost:
            words = f"the server asks for {', '.join(lost)}, and the request declared no such capability"
            yield Fault(words, method, exchange)


_Dialogue = tuple[WireExchange, ...]


def _dialogues(evidence: Evidence) -> RuleSubjects[_Dialogue] | RuleOutcome:
    if (reason := missing_lifecycle_outcome(evidence, "modern")) is not None:
        return reason
    found = evidence.dialogues
    return RuleSubjects(found, once=True) if found else not_applicable("no result asked for input")


@rule("modern.input-ends", 2, over=_dialogues,
      statement=f"A request for which the server asks for input is complete after at most {MAX_ROUNDS} answers.",
      source="MCP basic/patterns/mrtr: the client retries with its answers, and the server processes the request",
      hint="read inputResponses by the keys of your inputRequests, and keep earlier answers in requestState")  # fmt: skip
def _ends(rounds: _Dialogue) -> Iterator[Fault]:
    if len(rounds) > MAX_ROUNDS and input_requests(rounds[-1]):
        where = str(rounds[0].params.get("name", rounds[0].method))
        yield Fault(f"after {MAX_ROUNDS} answers, the server still asks for input", where, rounds[-1])


def _undeclared_requests(evidence: Evidence) -> RuleSubjects[tuple[WireExchange, WireExchange]] | RuleOutcome:
    """Select the requests without capabilities that ask for input if they are repeated with capabilities."""
    dialogues = _dialogues(evidence)
    if isinstance(dialogues, RuleOutcome):
        return dialogues
    pairs = zip(evidence.traffic, evidence.traffic[1:], strict=False)
    found = [
        (without, again)
        for without, again in pairs
        if has_per_request_metadata(without)
        and not declared_client_capabilities(without)
        and (without.method, params_without_meta(without.sent)) == (again.method, params_without_meta(again.sent))
        and input_requests(again)
    ]
    return RuleSubjects(found, 1, once=True)


@rule("modern.missing-capability", 3, gate=True, over=_undeclared_requests,
      statement=(f"If a request fails only because the client lacks a capability, its error is {MISSING_CAPABILITY}. A "
                 "result is also accepted."),
      source="MCP basic/index, _meta: the server must return MissingRequiredClientCapabilityError",
      hint=f"return error {MISSING_CAPABILITY} with data.requiredCapabilities")  # fmt: skip
def _missing_capability(pair: tuple[WireExchange, WireExchange]) -> Iterator[Fault]:
    without = pair[0]
    if without.code is not None and without.code != MISSING_CAPABILITY:
        words = f"without capabilities, expected error {MISSING_CAPABILITY} or a result, got {describe_answer(without)}"
        yield Fault(words, str(without.params.get("name", without.method)), without)


def _states(evidence: Evidence) -> RuleSubjects[ModifiedStateAnswer] | RuleOutcome:
    dialogues = _dialogues(evidence)
    if isinstance(dialogues, RuleOutcome):
        return dialogues
    sent = {rounds[0].method for rounds in dialogues.items if any(map(request_state, rounds))}
    return RuleSubjects(evidence.modified_states, len(sent))


@rule("modern.request-state", 3, gate=True, over=_states,
      statement=("A modified requestState is refused. If it is accepted but does not change the result, the finding "
                 "has severity 1 and closes no gate."),
      source=("MCP basic/patterns/mrtr: an attacker may control requestState; its integrity must be protected if it "
              "influences the result"),
      hint="sign the state (HMAC), and refuse it with an error if the signature is wrong")  # fmt: skip
def _state(state: ModifiedStateAnswer) -> Iterator[Fault]:
    where = str(state.exchange.params.get("name", state.exchange.method))
    usual = [one.content for one in state.unmodified]
    shown = all(one == usual[0] for one in usual) and state.exchange.content != usual[0]
    words = "a modified requestState was accepted" + (", and changed the result" if shown else "")
    yield Fault(words, where, state.exchange, lesser=None if shown else 1)


row("modern.stateless", 3, gate=True, over=probed("modern-first"),
    statement="The first request of a client gets a result, even without server/discover before it.",
    source="MCP basic/index, Per-request metadata: a server must not rely on earlier requests",
    hint="read the client's information from the metadata of each request; server/discover is optional")  # fmt: skip


@rule("modern.error-codes", 3, gate=True, over=_answers(lambda exchange: exchange.code is not None),
      statement=("Errors use no retired codes. Codes in the reserved range are codes that the revision defines, in their "
                 "meaning."),
      source="MCP basic/index, Error Codes",
      hint="choose custom codes outside -32768 to -32000")  # fmt: skip
def _error_codes(exchange: WireExchange, evidence: Evidence) -> Iterator[Fault]:
    code = exchange.code or 0
    reserved = -32099 <= code <= -32020 and code not in _MODERN_CODES
    if reserved or code in (RESOURCE_NOT_FOUND, URL_ELICITATION_REQUIRED):
        yield Fault(f"error {code} is not one of the revision's codes", exchange.method, exchange)
    elif code in _MODERN_CODES and (why := _misuse(code, exchange, evidence)):
        yield Fault(f"error {code} does not fit: {why}", exchange.method, exchange)


def _misuse(code: int, exchange: WireExchange, evidence: Evidence) -> str:
    """Return why the meaning of a code does not fit the request; "" if it fits."""
    discovered = ((evidence.discover.result if evidence.discover else None) or {}).get("supportedVersions")
    version = exchange.params["_meta"][VERSION]
    needed = _error_data(exchange).get("requiredCapabilities")
    if code == HEADER_MISMATCH and exchange.status == 0:
        return "stdio has no headers"
    if code == UNSUPPORTED_VERSION and isinstance(discovered, list) and version in discovered:
        return f"server/discover lists the revision {version}"
    if code == MISSING_CAPABILITY and needed and _includes(declared_client_capabilities(exchange), needed):
        return "the request declared these capabilities"
    return ""


def _includes(declared: Any, needed: Any) -> bool:
    if not isinstance(declared, dict) or not isinstance(needed, dict):
        return bool(declared == needed)
    return all(key in declared and _includes(declared[key], value) for key, value in needed.items())


@rule("modern.server-info", 1, over=_answers(),
      statement="Each result names the server in its metadata.",
      source="MCP basic/index, Result metadata: servers should include serverInfo",
      hint="add _meta with io.modelcontextprotocol/serverInfo")  # fmt: skip
def _named(exchange: WireExchange) -> Iterator[Fault]:
    meta = (exchange.result or {}).get("_meta")
    if not isinstance(meta, dict) or META + "serverInfo" not in meta:
        yield Fault("the result's metadata has no serverInfo", "serverInfo", exchange)


@rule("modern.cache-pages", 3, gate=True,
      statement="All pages of a list have the same cacheScope.",
      source="MCP server/utilities/caching",
      hint="choose cacheScope per list, not per page")  # fmt: skip
def _cache_pages(evidence: Evidence) -> RuleOutcome:
    lists = [listing for listing in evidence.lists.values() if any(map(has_per_request_metadata, listing.exchanges))]
    faults = (
        Fault(f"the pages have different scopes: {', '.join(map(str, scopes))}", listing.method, listing.exchanges[-1])
        for listing in lists
        if len(scopes := sorted({str((page.result or {}).get("cacheScope")) for page in listing.exchanges})) > 1
    )
    return missing_lifecycle_outcome(evidence, "modern") or rule_outcome(len(lists), faults)


# --- notification streams ---

# Notification → member of a filter that requests the notification.
_KINDS: Final = {
    f"notifications/{kind}/list_changed": f"{kind}ListChanged" for kind in ("tools", "prompts", "resources")
}
_UPDATED: Final = "notifications/resources/updated"
_WHERE: Final = "subscriptions/listen"
_Streams = tuple[NotificationStream, ...]


def _streams(evidence: Evidence) -> RuleSubjects[_Streams] | RuleOutcome:
    if (reason := missing_lifecycle_outcome(evidence, "modern")) is not None:
        return reason
    if not evidence.streams:
        return not_checked(evidence.missing_reason("listen"))
    first = evidence.streams[0][0]
    if not first.heard and "error" in (first.answer or {}):
        return not_applicable("the server has no streams of notifications")
    return RuleSubjects(evidence.streams, 1, once=True)


def _fault(words: str, stream: NotificationStream, others: Iterable[NotificationStream] = ()) -> Fault:
    proofs = [one.to_proof() for one in (stream, *others)]
    return Fault(words, _WHERE, proof={key: "\n".join(proof[key] for proof in proofs) for key in proofs[0]})


@rule("modern.listen", 3, gate=True, over=_streams,
      statement=("A stream of notifications begins with its acknowledgment, which reports the accepted part of the "
                 "filter."),
      source="MCP basic/patterns/subscriptions, Acknowledgment",
      hint="send notifications/subscriptions/acknowledged before anything else")  # fmt: skip
def _listen(streams: _Streams) -> Iterator[Fault]:
    first = streams[0]
    if not first.heard:
        came = "an answer" if first.answer is not None else "the end of the stream" if first.ended else "nothing"
        yield _fault(f"the stream begins with {came}, not with its acknowledgement", first)
    for stream in streams:
        begins = stream.heard[0] if stream.heard else None
        if begins is not None and not is_acknowledgement(begins):
            yield _fault(f"the stream begins with {begins.get('method')}, not with its acknowledgement", stream)
        elif begins is not None and not isinstance(_params(begins).get("notifications"), dict):
            yield _fault("the acknowledgement does not list the accepted notifications", stream)


@rule("modern.listen-request-id", 3, gate=True, over=_streams,
      statement="Each notification on a stream has the id of the request that opened the stream in its metadata.",
      source="MCP basic/patterns/subscriptions, Receiving Notifications; basic/index, _meta, Subscription id",
      hint="copy the id unchanged to _meta as io.modelcontextprotocol/subscriptionId")  # fmt: skip
def _tagged(streams: _Streams) -> Iterator[Fault]:
    for stream in streams:
        wanted = stream.request["id"]
        for one in stream.heard:
            tag = subscription_id(one)
            if type(tag) is not type(wanted) or tag != wanted:
                yield _fault(f"{one.get('method')} names the stream {tag!r}, not {wanted!r}", stream)
                return


@rule("modern.listen-filtered", 3, gate=True, over=_streams,
      statement="A stream has only notifications that its filter requests.",
      source="MCP basic/patterns/subscriptions, Opening a Stream: the server must not send kinds that were not requested",
      hint="store the filter with the stream, and check it before you send")  # fmt: skip
def _wanted(streams: _Streams) -> Iterator[Fault]:
    for stream in streams:
        asked = stream.request["params"]["notifications"]
        for one in stream.heard:
            if is_acknowledgement(one):
                more = [key for key, value in _honoured(one).items() if value and not _is_asked(asked, key, value)]
                if more and one is next(filter(is_acknowledgement, stream.heard)):
                    yield _fault(f"the acknowledgement accepts {', '.join(more)}, which was not requested", stream)
            elif not _is_wanted(one, asked, [each.request["id"] for each in streams]):
                yield _fault(f"{one.get('method')} was sent, but not requested", stream)


def _is_asked(asked: Json, key: str, value: Any) -> bool:
    if isinstance(value, list):
        return isinstance(asked.get(key), list) and all(one in asked[key] for one in value)
    return bool(asked.get(key))


def _is_wanted(message: Json, asked: Json, stream_ids: Sequence[Any]) -> bool:
    """Return True if a notification may be sent on a stream: it was requested, ends a stream, or is not a core message."""
    method = str(message.get("method"))
    if method == _UPDATED:
        return _params(message).get("uri") in asked.get("resourceSubscriptions", [])
    if method == "notifications/cancelled":
        return _params(message).get("requestId") in stream_ids
    return method not in LATEST.notifications or bool(asked.get(_KINDS.get(method, "")))


@rule("modern.listen-delivered", 3, gate=True, over=_streams,
      statement="The notification about a changed list arrives on each open stream that accepted its kind.",
      source="MCP basic/patterns/subscriptions, Multiple Concurrent Subscriptions",
      hint="send each notification on every matching stream, with the id of that stream")  # fmt: skip
def _delivered(streams: _Streams) -> Iterator[Fault]:
    for method, kind in _KINDS.items():
        asked = [stream for stream in streams if stream.heard and _honoured(stream.heard[0]).get(kind)]
        heard = [any(one.get("method") == method for one in stream.heard) for stream in asked]
        # A change that came before the last stream was opened is only on the earlier streams.
        if asked and heard[-1] and not all(heard):
            yield _fault(f"{method} arrived on only one of the streams that accepted it", asked[0], asked[1:])


@rule("modern.listen-concurrent", 3, gate=True, over=_streams,
      statement="A client can open a second stream, which is acknowledged separately.",
      source="MCP basic/patterns/subscriptions, Multiple Concurrent Subscriptions",
      hint="store streams by the id of their request")  # fmt: skip
def _several(streams: _Streams) -> Iterator[Fault]:
    first, *others = streams
    if not any(_honoured(message) for message in first.heard):
        return  # a stream with an empty filter may end at once
    if first.answer is not None or first.ended:
        yield _fault("the first stream ended when a second one was opened", first, others)
    for other in others:
        if not other.heard and "error" not in (other.answer or {}):
            yield _fault("a second stream was not acknowledged while the first one was open", other, [first])


def _with_streams(evidence: Evidence, name: str) -> RuleSubjects[WireExchange] | RuleOutcome:
    """Return the exchange of a probe that is sent only to servers with streams."""
    exchange = evidence.probes.get(name)
    if exchange is not None:
        return RuleSubjects([exchange])
    if any(stream.heard for streams in evidence.streams for stream in streams):
        return not_checked(evidence.missing_reason(name))
    return missing_lifecycle_outcome(evidence, "modern") or not_applicable("the server has no streams of notifications")


@rule("modern.after-listen", 3, gate=True, over=partial(_with_streams, name="after-listen"),
      statement="After a client closes its streams of notifications, the server still answers requests.",
      source="JSON-RPC 2.0 §5: every request gets an answer; MCP basic/patterns/subscriptions, Cancellation",
      hint="send notifications from a separate task, not from the loop that reads requests")  # fmt: skip
def _after_listen(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.received is None:
        yield Fault(f"after streams were open, server/discover got no answer: {exchange.problem}", _WHERE, exchange)


def _honoured(message: Json) -> Json:
    found = _params(message).get("notifications")
    return found if isinstance(found, dict) else {}


def _params(message: Json) -> Json:
    found = message.get("params")
    return found if isinstance(found, dict) else {}


def _lists_around_calls(evidence: Evidence) -> RuleSubjects[tuple[Listing, Listing]] | RuleOutcome:
    lists = [pair for pair in evidence.lists_around_calls if not any(one.problem for one in pair)]
    if not lists or "legacy" in evidence.lifecycles:
        return not_applicable("nothing was listed after calls, or the server also has sessions")
    return RuleSubjects(lists, count=1, once=True)


# List → member that identifies its entries.
_KEYS: Final = {"resources/list": "uri", "resources/templates/list": "uriTemplate"}


@rule("modern.list-after-calls", 3, gate=True, over=_lists_around_calls,
      statement=("The lists do not depend on earlier calls on the connection. If only resources differ, the finding has "
                 "severity 2 and closes no gate, because a call may create a resource."),
      source="MCP basic, Statelessness: servers must not use earlier requests on a connection as context",
      hint="list the same entries for each request; use arguments, such as an id, to continue earlier work")  # fmt: skip
def _list_after_calls(lists: tuple[Listing, Listing]) -> Iterator[Fault]:
    method = lists[0].method
    key = _KEYS.get(method, "name")
    before, after = ({str(one.get(key)) for one in each.items if isinstance(one, dict)} for each in lists)
    if changed := before.symmetric_difference(after):
        words = f"after calls on the same connection, {method} differs: {', '.join(sorted(changed)[:5])}"
        yield Fault(words, method, lists[1].exchanges[-1], lesser=2 if method == "resources/list" else None)


@rule("modern.listen-invalid-filter", 2, over=partial(_with_streams, name="listen-malformed"),
      statement=f"A filter that is not an object is answered with error {INVALID_PARAMS}; another error is tolerated.",
      source="MCP basic/patterns/subscriptions, Notification Filter; schema, SubscriptionsListenRequest",
      hint="check the filter before you open the stream")  # fmt: skip
def _malformed(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code != INVALID_PARAMS:
        words = f"a filter that is a text: expected error {INVALID_PARAMS}, got {describe_answer(exchange)}"
        yield Fault(words, _WHERE, exchange, lesser=1 if exchange.error is not None else None)
