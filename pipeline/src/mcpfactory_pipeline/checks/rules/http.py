"""Rules about HTTP: origins, sessions, statuses and headers, in both lifecycles."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.checks.evidence import (
    CanceledElsewhere,
    ConcurrentRequests,
    Evidence,
    HttpProbeAnswer,
    ReplayedStream,
    RequestsBesideStreams,
    Session,
)
from mcpfactory_pipeline.checks.exchange import FIRST_MODERN, LATEST_HANDSHAKE, STREAMABLE, STRUCTURED, WireExchange
from mcpfactory_pipeline.checks.rule import Fault, RuleOutcome, RuleSubjects, RuleTable, not_applicable, not_checked
from mcpfactory_pipeline.checks.rules.modern import has_per_request_metadata
from mcpfactory_pipeline.checks.rules.subjects import missing_lifecycle_outcome
from mcpfactory_pipeline.checks.transport.argument_probes import DEFECTS
from mcpfactory_pipeline.checks.transport.conversation import is_jsonrpc_answer
from mcpfactory_pipeline.checks.transport.http_probes import HTTP_PROBES, http_fault
from mcpfactory_runtime.protocol.errors import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    UNSUPPORTED_VERSION,
)
from mcpfactory_runtime.types import Json

RULES: Final = RuleTable()
rule, row = RULES.rule, RULES.row


@dataclass(frozen=True, slots=True)
class HttpScope:
    """The answers to HTTP probes, in the order of the probes.

    Probe `after` has a wrong header. The rule applies only if the server checks this header, that is, answers `after`
    with the error for wrong headers. `reason` explains why the rule otherwise does not apply.
    """

    names: tuple[str, ...]
    after: str = ""
    reason: str = ""

    def __call__(self, evidence: Evidence) -> RuleSubjects[HttpProbeAnswer] | RuleOutcome:
        """Return the answers, or the outcome of the rule if there are no answers."""
        if evidence.transport != "http":
            return not_applicable("the server is not at a URL")
        earlier = evidence.http.get(self.after)
        if earlier is not None and earlier.code != HEADER_MISMATCH:
            return not_applicable(self.reason)
        lifecycles = {HTTP_PROBES[name].lifecycle for name in self.names}
        if (
            reason := missing_lifecycle_outcome(evidence, lifecycles.pop() if len(lifecycles) == 1 else "")
        ) is not None:
            return reason
        answers = [answer for name, answer in evidence.http.items() if name in self.names]
        if not answers and (not evidence.http or "http" in evidence.missing):
            return not_checked(evidence.missing.get("http", "the URL did not answer"))
        return RuleSubjects(answers)

    def faults(self, answer: HttpProbeAnswer) -> Iterator[Fault]:
        """Yield the differences between the answer and the answer that the probe expects."""
        expects = HTTP_PROBES[answer.probe].expects
        return expects(answer) if expects else iter(())


def http_probe_scope(*names: str) -> HttpScope:
    """Return the scope of the probes with these names."""
    return HttpScope(names)


_SETTINGS: Final = (
    "Python: TransportSecuritySettings(allowed_hosts=…, allowed_origins=…) as transport_security of the official SDK, and "
    "host_origin_protection=True with allowed_hosts=… and allowed_origins=… of FastMCP 4 (run and http_app; off by "
    "default); TypeScript: enableDnsRebindingProtection with allowedHosts and allowedOrigins of "
    "StreamableHTTPServerTransport (createMcpExpressApp checks only Host); Go: "
    "http.NewCrossOriginProtection().Handler(…) around the handler; Rust: allowed_origins of "
    "StreamableHttpServerConfig"
)
_NAMES: Final = http_probe_scope(
    *("modern-no-name", "modern-other-name", "modern-other-prompt", "modern-other-resource"),
    *("modern-no-prompt-name", "modern-no-resource-name"),
)
_ENCODINGS: Final = ("modern-invalid-base64", "modern-half-base64-marker", "modern-encoded")
_ORIGINS: Final = http_probe_scope(
    *("origin", "origin-begins", "origin-begins-localhost", "origin-ends", "origin-null", "origin-rebound"),
    *("modern-origin", "modern-origin-begins", "modern-origin-begins-localhost", "modern-origin-ends"),
    *("modern-origin-null", "modern-origin-rebound"),
)


@rule("http.origin", 5, gate=True, over=_ORIGINS,
      statement="A request from a web page of another site (by its Origin) is refused with status 403.",
      source="MCP basic/transports, Security Warning: servers must validate the Origin header, against DNS rebinding",
      hint=("compare Origin, if present, with the origins that you serve, before anything else. "
            f"{_SETTINGS}"))  # fmt: skip
def _origin(answer: HttpProbeAnswer, evidence: Evidence) -> Iterator[Fault]:
    """Lower the severity if the server refuses a foreign Host: that also prevents DNS rebinding.

    The severity stays for lookalike origins, because only servers that refuse a foreign Origin get these probes. Such a
    server refuses a foreign Host because of the Origin, so the refusal does not prove a check of Host.
    """
    rebound = evidence.http.get(answer.probe.replace("origin", "dns-rebinding"))
    guarded = rebound is not None and 400 <= rebound.status < 500
    for fault in _ORIGINS.faults(answer):
        if guarded and fault.lesser is None:
            words = f"{fault.message}, but is refused if Host is also foreign"
            yield replace(fault, message=words, lesser=3)
        else:
            yield fault


def _concurrent(evidence: Evidence) -> RuleSubjects[ConcurrentRequests] | RuleOutcome:
    return RuleSubjects(evidence.concurrent) if evidence.concurrent else not_applicable("there was one client")


@rule("http.request-ids", 5, gate=True, over=_concurrent,
      statement="Of two clients that send requests with the same id at the same time, each gets its own answer.",
      source="MCP basic, Requests: an id is unique within one session only; JSON-RPC 2.0 §5",
      hint="keep pending requests per connection or session, not by the id of the request alone")  # fmt: skip
def _own_answers(pair: ConcurrentRequests) -> Iterator[Fault]:
    first, second = pair.together
    if first.received is None and second.received is not None and pair.again[0].received is None:
        about = first.params.get("name") or first.method
        yield Fault("since a second client connected, the first client gets no answer", about, first)
        return
    if [one.content for one in pair.alone] != [one.content for one in pair.again]:
        return  # the answers also change without a second client
    for at, answer in enumerate(pair.together):
        about = answer.params.get("name") or answer.method
        if answer.content == pair.alone[1 - at].content:
            yield Fault("a client got the answer to the request of another client with the same id", about, answer)
        elif answer.problem.startswith("no answer"):
            yield Fault("a request got no answer while another client used the same id", about, answer)


def _foreign_cancellations(evidence: Evidence) -> RuleSubjects[CanceledElsewhere] | RuleOutcome:
    found = evidence.canceled_elsewhere
    return RuleSubjects(found, 1) if found else not_applicable("no read-only tool takes long enough to cancel a call")


@rule("http.foreign-cancellation", 3, gate=True, over=_foreign_cancellations,
      statement="A cancellation of one client does not end a request of another client with the same id.",
      source=("MCP basic/utilities/cancellation, Behavior Requirements: a cancellation must only reference requests that "
              "were issued in the same direction"),
      hint="look up the canceled request only in the session or connection that sent the cancellation")  # fmt: skip
def _foreign_cancellation(one: CanceledElsewhere) -> Iterator[Fault]:
    if one.exchange.received is None and one.again.received is not None:
        words = f"after another client sent a cancellation with its id, a call got no answer: {one.exchange.problem}"
        yield Fault(words, str(one.exchange.params.get("name")), one.exchange)


def _beside_streams(evidence: Evidence) -> RuleSubjects[list[RequestsBesideStreams]] | RuleOutcome:
    if not evidence.beside_streams:
        return not_applicable("the server opens no stream for GET, or no read-only tool was called")
    return RuleSubjects([evidence.beside_streams])


@rule("http.answer-beside-stream", 5, gate=True, since=STREAMABLE, until=LATEST_HANDSHAKE, over=_beside_streams,
      statement=("While a client has an event stream open (GET), its calls are answered on their own responses, and only "
                 "there."),
      source=("MCP basic/transports, Listening for Messages from the Server: the server must not send responses on "
              "that stream"),
      hint="send the answer on the response to the POST, also if the client listens")  # fmt: skip
def _answered_beside_stream(rounds: list[RequestsBesideStreams]) -> Iterator[Fault]:
    # A server may have too few threads for several streams.
    missing = next((one for one in rounds[0].exchanges if one.received is None), None)
    astray = [message for each in rounds for heard in each.heard for message in heard if is_jsonrpc_answer(message)]
    if missing is not None:
        words = f"while a GET stream is open, a call gets no answer: {missing.problem}"
        yield Fault(words, str(missing.params.get("name")), missing)
    elif astray:
        yield Fault("a response was sent on a GET stream", "GET", proof={"on the stream": json.dumps(astray[0])})


@rule("http.one-stream", 3, gate=True, since=STREAMABLE, until=LATEST_HANDSHAKE, over=_beside_streams,
      statement="If a client has several streams open, each message of the server is sent on one of them only.",
      source="MCP basic/transports, Multiple Connections: the server must not broadcast a message across streams",
      hint="choose one stream for each message: that of the request to which it belongs, or one GET stream")  # fmt: skip
def _not_broadcast(rounds: list[RequestsBesideStreams]) -> Iterator[Fault]:
    for each in rounds:
        for message in each.on_responses:
            # Other messages may be equal although the server sent them separately.
            unique = "id" in message or message.get("method") == "notifications/progress"
            if unique and any(message in heard for heard in each.heard):
                proof = {"sent on both streams": json.dumps(message)}
                yield Fault("a message was sent on a GET stream, and on the response to a request", "GET", proof=proof)
                return
    single, *doubled = rounds
    shared = [_shared_messages(each) for each in doubled]
    more = all(len(_sent_by_calls(each)) > len(_sent_by_calls(single)) for each in doubled)
    if len(doubled) > 1 and all(shared) and more:
        proof = {"sent on both streams": json.dumps(shared[0][0])}
        yield Fault("a message was sent on two GET streams of a session", "GET", proof=proof)


def _sent_by_calls(each: RequestsBesideStreams) -> list[Json]:
    """Return the messages on all GET streams since the first call, except those that also arrived before it."""
    early = [message for before in each.before for message in before]
    return [message for heard in each.heard for message in heard if message not in early]


def _shared_messages(each: RequestsBesideStreams) -> list[Json]:
    return [one for one in _sent_by_calls(each) if all(one in heard for heard in each.heard)]


def _replayed(evidence: Evidence) -> RuleSubjects[ReplayedStream] | RuleOutcome:
    if evidence.replayed is None:
        return not_applicable("the events of calls have no ids, or no read-only tool was called")
    return RuleSubjects([evidence.replayed])


@rule("http.replayed-messages", 3, gate=True, since=STREAMABLE, until=LATEST_HANDSHAKE, over=_replayed,
      statement="A resumed stream (Last-Event-ID) has only messages of the same stream.",
      source="MCP basic/transports, Resumability and Redelivery: messages of a different stream must not be replayed",
      hint="store the events of each stream separately, and replay those of the stream with the given id")  # fmt: skip
def _own_messages(stream: ReplayedStream) -> Iterator[Fault]:
    first, *others = stream.exchanges
    numbers = [one.sent["id"] for one in others if isinstance(one.sent, dict)]
    for message in stream.heard:
        if is_jsonrpc_answer(message) and message.get("id") in numbers:
            words = f"after the event {stream.event}, the answer to another request is replayed"
            yield Fault(words, "Last-Event-ID", first, proof={"replayed": json.dumps(message)})
            return


def _second_client(evidence: Evidence) -> RuleSubjects[WireExchange] | RuleOutcome:
    if not evidence.second_client:
        return not_applicable("two users could not call a read-only tool that takes text")
    return RuleSubjects(evidence.second_client)


@rule("http.client-data", 3, gate=True, over=_second_client,
      statement="The result of a read-only tool does not contain data that another client sent.",
      source=("MCP schema, ToolAnnotations.readOnlyHint (the tool does not modify its environment); "
              "basic/security_best_practices, Session Hijacking"),
      hint="keep a client's data in the client's session, not in a variable of the process")  # fmt: skip
def _own_data(exchange: WireExchange, evidence: Evidence) -> Iterator[Fault]:
    shown = json.dumps(exchange.content, ensure_ascii=False)
    # Ignore texts in the tools' schemas, and in the arguments of this call.
    own = json.dumps([evidence.tools, exchange.params], ensure_ascii=False)
    for sent in evidence.first_client:
        for text in sent.params.get("arguments", {}).values():
            quoted = json.dumps(text, ensure_ascii=False)[1:-1] if isinstance(text, str) else ""
            if len(quoted) >= _MIN_LEAK and quoted in shown and quoted not in own:
                words = f"the result contains {text!r}, which only another client sent, to {sent.params.get('name')}"
                yield Fault(words, str(exchange.params.get("name")), exchange)
                return


def _answered_requests(evidence: Evidence) -> RuleSubjects[HttpProbeAnswer | WireExchange] | RuleOutcome:
    probes = http_probe_scope("begin", "modern")(evidence)
    if isinstance(probes, RuleOutcome):
        return probes
    made = [one for one in evidence.traffic if isinstance(one.sent, dict) and "id" in one.sent]
    return RuleSubjects([*probes.items, *made], 1, once=True)


@rule("http.content-type", 3, gate=True, since=STREAMABLE, over=_answered_requests,
      statement="A request is answered with application/json or text/event-stream.",
      source="MCP basic/transports, Sending Messages to the Server",
      hint="set Content-Type")  # fmt: skip
def _content_type(answer: HttpProbeAnswer | WireExchange) -> Iterator[Fault]:
    sent = answer.headers.get("content-type", "") if isinstance(answer, HttpProbeAnswer) else answer.media_type
    kind = sent.partition(";")[0].strip().lower()
    if answer.status == 200 and kind not in ("application/json", "text/event-stream"):
        words = f"the content type is {kind or 'missing'}"
        if isinstance(answer, HttpProbeAnswer):
            yield http_fault(answer, words)
        else:
            yield Fault(words, answer.method, answer)


row("http.notification-status", 3, gate=True, since=STREAMABLE, until=LATEST_HANDSHAKE, over=http_probe_scope("notify", "notify-canceled", "respond"),
    statement="Notifications and responses are answered with status 202 and no body.",
    source="MCP basic/transports, Sending Messages to the Server",
    hint="return status 202 if there is nothing to answer")  # fmt: skip

row("http.get", 3, gate=True, since=STREAMABLE, until=LATEST_HANDSHAKE, over=http_probe_scope("get"),
    statement="GET is answered with an event stream or status 405.",
    source="MCP basic/transports, Listening for Messages from the Server",
    hint="return status 405 if you offer no event stream")  # fmt: skip


_MIN_LEAK: Final = 12  # minimum characters of a text; a shorter text may occur by chance
# Minimum characters of an id; at 6 bits per character, a shorter id has fewer than 60 random bits.
_MIN_ID: Final = 10
# Minimum number of different characters in two ids; counters and times differ in fewer.
_MIN_DIFFERING: Final = 6


@rule("http.session-guess", 3, gate=True, since=STREAMABLE, until=LATEST_HANDSHAKE,
      over=http_probe_scope("begin-other", "begin-chosen"),
      statement="Each session has its own id. The client does not choose it, and other clients cannot guess it.",
      source=("MCP basic/transports, Session Management (unique and cryptographically secure); "
              "basic/security_best_practices, Session Hijacking: servers must use secure, non-deterministic ids"),
      hint="use a random UUID (version 4), or 128 bits of your system's secure random numbers")  # fmt: skip
def _guessable(answer: HttpProbeAnswer, evidence: Evidence) -> Iterator[Fault]:
    first, session = (one.headers.get("mcp-session-id") for one in (evidence.http["begin"], answer))
    if first is None or session is None:
        return
    differing = _differing(first, session)
    if session == answer.sent_headers.get("Mcp-Session-Id"):
        yield http_fault(answer, "the session has the id that the client sent")
    elif differing == 0:
        yield http_fault(answer, f"two sessions have the same id {session[:60]!r}")
    elif answer.probe == "begin-chosen":
        return
    elif len(session) < _MIN_ID:
        yield http_fault(answer, f"the session id {session!r} has only {len(session)} characters")
    elif differing < _MIN_DIFFERING:
        words = f"the ids of two sessions differ in {differing} of {len(session)} characters"
        yield http_fault(answer, f"{words}: {first[:60]!r} and {session[:60]!r}")


def _differing(first: str, second: str) -> int:
    """Return the number of different characters; further characters of the longer text also count."""
    return sum(one != other for one, other in zip_longest(first, second))


@rule("http.session-id", 3, gate=True, since=STREAMABLE, until=LATEST_HANDSHAKE, over=http_probe_scope("begin"),
      statement="Session ids contain only visible ASCII characters.",
      source="MCP basic/transports, Session Management",
      hint="use a UUID, or the hexadecimal digits of a random number")  # fmt: skip
def _session_id(answer: HttpProbeAnswer) -> Iterator[Fault]:
    session = answer.headers.get("mcp-session-id")
    if session is not None and not (session and all(0x21 <= ord(letter) <= 0x7E for letter in session)):
        yield http_fault(answer, f"the session id {session[:60]!r} has letters that are not visible ASCII")


row("http.no-session", 2, since=STREAMABLE, until=LATEST_HANDSHAKE, over=http_probe_scope("no-session"),
    statement="If the server uses sessions, a request without a session id is answered with status 400.",
    source="MCP basic/transports, Session Management: servers that require a session should respond 400",
    hint="require Mcp-Session-Id in every request except initialize")  # fmt: skip

row("http.unknown-session", 3, gate=True, since=STREAMABLE, until=LATEST_HANDSHAKE, over=http_probe_scope("unknown-session"),
    statement="A request with an unknown session id is answered with status 404.",
    source="MCP basic/transports, Session Management: clients start a new session after 404",
    hint="return status 404, so that clients start a new session")  # fmt: skip

row("http.deleted-session", 3, gate=True, since=STREAMABLE, until=LATEST_HANDSHAKE, over=http_probe_scope("after-delete"),
    statement="A request in a session that DELETE ended is answered with status 404.",
    source="MCP basic/transports, Session Management",
    hint="forget the session when DELETE succeeds")  # fmt: skip

row("http.other-session", 3, gate=True, since=STREAMABLE, until=LATEST_HANDSHAKE, over=http_probe_scope("other-session-later"),
    statement="DELETE ends only the session that its Mcp-Session-Id names.",
    source="MCP basic/transports, Session Management: DELETE terminates the session of its Mcp-Session-Id",
    hint="end only the session with the id in Mcp-Session-Id")  # fmt: skip

row("http.version-header", 3, gate=True, since=STRUCTURED, until=LATEST_HANDSHAKE, over=http_probe_scope("version"),
    statement="A request with an unknown MCP-Protocol-Version is answered with status 400.",
    source="MCP basic/transports, Protocol Version Header",
    hint="compare the header with the revisions that you support")  # fmt: skip

row("http.no-batches", 1, since=STRUCTURED, until=LATEST_HANDSHAKE, over=http_probe_scope("array"),
    statement="In revisions without batches, an array is refused.",
    source=("MCP basic/transports, Sending Messages to the Server: the body must be a single message (mainly a rule "
            "for clients: severity 1)"),
    hint="return status 400 for an array")  # fmt: skip

row("http.host", 1, over=http_probe_scope("host"),
    statement="A server at a loopback address refuses a request for another host name.",
    source="MCP basic/transports, Security Warning: DNS rebinding; a browser sends no Origin with every request",
    hint=("return status 403 or 421: compare Host with the names that you serve; behind a proxy, "
          "include the names that it forwards"))  # fmt: skip

row("http.version-missing", 2, since=STRUCTURED, until=LATEST_HANDSHAKE, over=http_probe_scope("no-version"),
    statement="A request without MCP-Protocol-Version is served in the version of its session.",
    source=("MCP basic/transports, Protocol Version Header: the server should know the version by other means, or "
            "assume an older one"),
    hint="serve requests without the header: older clients do not send it")  # fmt: skip


@rule("http.stream-ends", 2, since=STREAMABLE, over=http_probe_scope("begin", "modern"),
      statement="An event stream ends after the response to its request.",
      source=("MCP basic/transports, Sending Messages to the Server: after the response has been sent, the server "
              "should terminate the stream"),
      hint="close the stream; otherwise clients keep one connection open per stream")  # fmt: skip
def _stream_ends(answer: HttpProbeAnswer) -> Iterator[Fault]:
    if answer.stream is not None and answer.stream.ended is False:
        yield http_fault(answer, "the stream continues after the answer")


def _event_ids(evidence: Evidence) -> RuleSubjects[Session] | RuleOutcome:
    sessions = [one for one in evidence.sessions if one.event_ids and "legacy" in evidence.lifecycles]
    return RuleSubjects(sessions, once=True) if sessions else not_applicable("no event had an id")


@rule("http.event-ids", 3, gate=True, since=STREAMABLE, until=LATEST_HANDSHAKE, over=_event_ids,
      statement="Each event id occurs only once in a session, across all streams.",
      source="MCP basic/transports, Resumability and Redelivery: ids must be globally unique within the session",
      hint="number the events per session, or include the stream's id in the event id")  # fmt: skip
def _unique_event_ids(session: Session) -> Iterator[Fault]:
    repeated = [one for one, count in Counter(session.event_ids).items() if count > 1]
    if repeated:
        words = (
            f"{pluralize(len(repeated), 'event id')} occurred more than once in a session: {', '.join(repeated[:3])}"
        )
        yield Fault(words, "event ids", proof={"event ids": ", ".join(session.event_ids[:20])})


row("http.priming-event", 1, since=LATEST_HANDSHAKE, until=LATEST_HANDSHAKE, over=http_probe_scope("begin", "begin-older"),
    statement=("If the revision defines it, a stream with event ids begins with an event that has an id and no data. "
               "In other revisions, no stream begins with such an event."),
    source=("MCP basic/transports, Sending Messages to the Server: this event lets clients reconnect; older "
            "clients cannot read it"),
    hint="send this event first if the session uses that revision")  # fmt: skip


# --- the per-request lifecycle ---

MODERN: Final = RuleTable(since=FIRST_MODERN)

_VERSIONS: Final = http_probe_scope("modern-no-version", "modern-other-version")


@MODERN.rule("http.modern-version", 3, gate=True, over=_VERSIONS,
      statement=(f"A request is answered with status 400 and error {HEADER_MISMATCH} if its MCP-Protocol-Version is "
                 "missing or differs from its metadata. A server with the handshake may take it as a request of an older "
                 "client: severity 1."),
      source="MCP basic/transports/streamable-http, Protocol Version Header",
      hint="compare header and metadata before you run the method")  # fmt: skip
def _version(answer: HttpProbeAnswer, evidence: Evidence) -> Iterator[Fault]:
    for fault in _VERSIONS.faults(answer):
        yield replace(fault, lesser=1) if "legacy" in evidence.lifecycles else fault


MODERN.row("http.modern-method", 3, gate=True, over=http_probe_scope("modern-no-method", "modern-other-method"),
    statement=(f"A request is answered with status 400 and error {HEADER_MISMATCH} if its Mcp-Method is missing or "
               "differs from its method."),
    source="MCP basic/transports/streamable-http, Request Headers: proxies route by these headers",
    hint="compare the header with the body")  # fmt: skip

MODERN.row("http.modern-name", 3, gate=True, over=_NAMES,
    statement=("A request that names a tool, prompt or resource is answered with status 400 and error "
               f"{HEADER_MISMATCH} if its Mcp-Name is missing or differs from that name or URI."),
    source="MCP basic/transports/streamable-http, Request Headers",
    hint="compare the header with params.name, or params.uri")  # fmt: skip

_STATUSES: Final = http_probe_scope(
    "modern-unknown-method", "modern-unknown-version", "modern-no-capabilities", "modern-no-revision"
)
_BAD_REQUESTS: Final = (HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION)  # errors with status 400


def _refusals(evidence: Evidence) -> RuleSubjects[HttpProbeAnswer | WireExchange] | RuleOutcome:
    probes = _STATUSES(evidence)
    if isinstance(probes, RuleOutcome):
        return probes
    # The status of an event stream is sent before its messages.
    refused = [one for one in evidence.traffic if one.code in _BAD_REQUESTS and has_per_request_metadata(one)]
    made = [one for one in refused if one.media_type != "text/event-stream"]
    return RuleSubjects([*probes.items, *made], len(probes.items))


@MODERN.rule("http.modern-status", 3, gate=True, over=_refusals,
    statement=("Unknown methods are answered with status 404; unknown revisions, incomplete metadata and missing "
               "capabilities with status 400."),
    source="MCP basic/transports/streamable-http; basic/versioning, Unsupported versions; basic/index, _meta",
    hint="choose the status by the error code")  # fmt: skip
def _status_of_code(answer: HttpProbeAnswer | WireExchange) -> Iterator[Fault]:
    if isinstance(answer, HttpProbeAnswer):
        yield from _STATUSES.faults(answer)
    elif answer.status != 400:
        yield Fault(f"error {answer.code} has status {answer.status}, not 400", answer.method, answer)


@MODERN.rule("http.modern-session", 3, gate=True, over=http_probe_scope("modern"),
      statement="In the per-request lifecycle, the server neither issues nor reads session ids.",
      source="MCP basic/transports/streamable-http, Backward Compatibility",
      hint="ignore Mcp-Session-Id if the metadata has a per-request revision")  # fmt: skip
def _sessionless(answer: HttpProbeAnswer) -> Iterator[Fault]:
    if "mcp-session-id" in answer.headers:
        yield http_fault(answer, "the answer gives a session id")
    elif answer.status != 200:
        words = f"a request with a session id, which is to be ignored, got status {answer.status}"
        yield http_fault(answer, words)


MODERN.row("http.modern-get", 2, over=http_probe_scope("modern-get"),
    statement="GET with a per-request revision is answered with status 405.",
    source="MCP basic/transports/streamable-http, Backward Compatibility",
    hint="return status 405 with Allow: POST")  # fmt: skip

MODERN.row("http.modern-notification-status", 3, gate=True, over=http_probe_scope("modern-notification"),
    statement="A notification is accepted with status 202 and no body, or refused.",
    source="MCP basic/transports/streamable-http, Sending Messages to the Server",
    hint="return status 202 if there is nothing to answer")  # fmt: skip

MODERN.row("http.modern-no-batches", 1, over=http_probe_scope("modern-array", "modern-response"),
    statement="Arrays and responses are refused.",
    source=("MCP basic/transports/streamable-http, Sending Messages to the Server: the body must be a single request "
            "or notification (mainly a rule for clients: severity 1)"),
    hint="return status 400 for both")  # fmt: skip


_OWN_CODES: Final = (HEADER_MISMATCH, UNSUPPORTED_VERSION, INVALID_PARAMS, METHOD_NOT_FOUND)
_REFUSED: Final = http_probe_scope(
    *("modern-no-version", "modern-other-version", "modern-no-method", "modern-other-method"),
    *("modern-other-name", "modern-unknown-method", "modern-unknown-version", "modern-no-capabilities"),
)


@MODERN.rule("http.modern-error-id", 3, gate=True, over=_REFUSED,
      statement="If a request is refused, the error has the id of the request.",
      source="MCP basic/transports/streamable-http, Protocol Version Header",
      hint="read the body before you refuse a request because of a header")  # fmt: skip
def _error_id(answer: HttpProbeAnswer) -> Iterator[Fault]:
    own = answer.code in _OWN_CODES  # the implementation of the older lifecycle sends errors with other codes
    if own and answer.message.get("id") != answer.sent["id"]:
        yield http_fault(answer, f"the error has the id {answer.message.get('id')!r}")


MODERN.row("http.modern-header-names", 3, gate=True, over=http_probe_scope("modern-header-names-uppercase"),
    statement="Header names are compared case-insensitively.",
    source="MCP basic/transports/streamable-http, Case Sensitivity; RFC 9110 §5.1",
    hint="use the header lookup of your HTTP library")  # fmt: skip

MODERN.row("http.modern-header-whitespace", 1, over=http_probe_scope("modern-header-whitespace"),
    statement="Whitespace around a header value is ignored.",
    source=("MCP basic/transports/streamable-http, Case Sensitivity; RFC 9110 §5.5 (some HTTP libraries keep "
            "it, and clients hardly send any: severity 1)"),
    hint="strip the value before you compare it")  # fmt: skip

MODERN.row("http.modern-header-values", 3, gate=True,
    over=HttpScope(("modern-header-value-uppercase",), "modern-other-method", "Mcp-Method is not compared"),
    statement=("Header values are compared case-sensitively: a value in another case is answered with status 400 "
               f"and error {HEADER_MISMATCH}."),
    source="MCP basic/transports/streamable-http, Case Sensitivity",
    hint="compare the values without changing their case")  # fmt: skip

MODERN.row("http.modern-header-base64", 3, gate=True,
    over=HttpScope(_ENCODINGS, "modern-other-name", "Mcp-Name is not compared"),
    statement=("Mcp-Name is decoded if it has both base64 marks, and used unchanged if one is missing. Invalid "
               f"base64 is answered with status 400 and error {HEADER_MISMATCH}."),
    source="MCP basic/transports/streamable-http, Value Encoding",
    hint="decode strictly, and only values that begin with =?base64? and end with ?=")  # fmt: skip


def _repeated_arguments(evidence: Evidence) -> RuleSubjects[HttpProbeAnswer] | RuleOutcome:
    if not evidence.header_arguments:
        return not_applicable("no read-only tool was called with an argument that a header repeats")
    return RuleSubjects(evidence.header_arguments, len(DEFECTS), once=True)


@MODERN.rule("http.modern-arguments", 3, gate=True, over=_repeated_arguments,
      statement=("If a header repeats an argument (x-mcp-header), a call whose header is missing or differs is answered "
                 f"with status 400 and error {HEADER_MISMATCH}. Values in base64 are decoded, and an argument that is "
                 "null or missing needs no header."),
      source="MCP basic/transports/streamable-http, Server Behavior for Custom Headers",
      hint="compare each Mcp-Param header with its argument before you run the tool")  # fmt: skip
def _arguments(answer: HttpProbeAnswer) -> Iterator[Fault]:
    yield from DEFECTS[answer.probe].expects(answer)


MODERN.row("http.modern-no-event-ids", 3, gate=True, over=http_probe_scope("modern", "modern-last-event"),
    statement="Events have no ids, and Last-Event-ID is ignored.",
    source="MCP basic/transports/streamable-http, Receiving Responses; Backward Compatibility",
    hint="leave ids out: streams of this revision cannot be resumed")  # fmt: skip


@MODERN.rule("http.modern-buffering", 1, over=http_probe_scope("modern"),
      statement="A stream asks proxies not to buffer it.",
      source="MCP basic/transports/streamable-http, Receiving Responses: servers should send X-Accel-Buffering: no",
      hint="add the header X-Accel-Buffering: no")  # fmt: skip
def _buffering(answer: HttpProbeAnswer) -> Iterator[Fault]:
    if answer.stream is not None and answer.headers.get("x-accel-buffering", "").strip().lower() != "no":
        yield http_fault(answer, "the stream lacks the header X-Accel-Buffering: no")
