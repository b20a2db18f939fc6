"""Rules about the handshake lifecycle, JSON-RPC and batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import BATCHED, HANDSHAKES, LATEST_HANDSHAKE, WireExchange
from mcpfactory_pipeline.checks.probes import UNKNOWN_REVISION
from mcpfactory_pipeline.checks.rule import (
    Check,
    Fault,
    FindFaults,
    Rule,
    RuleOutcome,
    Severity,
    not_applicable,
    not_checked,
    rule_outcome,
)
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR


def era_or_reason(evidence: Evidence, era: str = "") -> RuleOutcome | None:
    """Return None when the server speaks `era` ("" for any); else the outcome of every rule about it."""
    if not evidence.eras:
        return not_checked("the server speaks no revision")
    if era and era not in evidence.eras:
        return not_applicable(f"the server does not speak the {era} lifecycle")
    return None


def probe_check(probe: str, find_faults: FindFaults, *, era: str = "legacy", capability: str = "") -> Check:
    """Return a check of one probe's exchange, for servers that speak `era` ("" for any) and declare `capability`."""

    def check(evidence: Evidence) -> RuleOutcome:
        if (reason := era_or_reason(evidence, era)) is not None:
            return reason
        if capability and capability not in evidence.capabilities:
            return not_applicable(f"the server declares no {capability}")
        exchange = evidence.probes.get(probe)
        return (
            not_checked(evidence.why_missing(probe)) if exchange is None else RuleOutcome(tuple(find_faults(exchange)))
        )

    return check


def _handshakes(find_faults: Callable[[str, WireExchange], Iterator[Fault]]) -> Check:
    def check(evidence: Evidence) -> RuleOutcome:
        return era_or_reason(evidence, "legacy") or rule_outcome(
            len(evidence.handshakes),
            (fault for revision, exchange in evidence.handshakes.items() for fault in find_faults(revision, exchange)),
        )

    return check


def expects_error(code: int, where: str) -> FindFaults:
    """Return a check that something wrong is answered with this error."""

    def find_faults(exchange: WireExchange) -> Iterator[Fault]:
        if exchange.code != code:
            yield Fault(f"expected error {code}, got {describe_answer(exchange)}", where, exchange)

    return find_faults


def expects_result(what: str, where: str) -> FindFaults:
    """Return a check that a request is answered with a result."""

    def find_faults(exchange: WireExchange) -> Iterator[Fault]:
        if exchange.result is None:
            yield Fault(f"{what} got {describe_answer(exchange)}", where, exchange)

    return find_faults


def _negotiates(revision: str, exchange: WireExchange) -> Iterator[Fault]:
    result = exchange.result
    if result is None:
        yield Fault(
            f"initialize with {revision} got no result; a server must offer a revision that it supports instead",
            revision,
            exchange,
        )
    elif result.get("protocolVersion") not in HANDSHAKES:
        yield Fault(
            f"protocolVersion {result.get('protocolVersion')!r} is not a handshake revision", revision, exchange
        )


def _introduces(revision: str, exchange: WireExchange) -> Iterator[Fault]:
    result = exchange.result
    if result is None:
        return
    if not isinstance(result.get("capabilities"), dict):
        yield Fault("the result has no capabilities object", revision, exchange)
    info = result.get("serverInfo")
    named = isinstance(info, dict) and all(isinstance(info.get(key), str) for key in ("name", "version"))
    if not named:
        yield Fault("serverInfo must have name and version, both strings", revision, exchange)


def _ping(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.result is None:
        yield Fault(exchange.problem or "ping was not answered with a result", "ping", exchange)
    elif exchange.result:
        yield Fault("the result of ping is not empty", "ping", exchange, lesser=1)


unknown_method = expects_error(METHOD_NOT_FOUND, "unknown method")


def _malformed(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code != PARSE_ERROR or (exchange.received or {}).get("id") is not None:
        yield Fault(f"expected error {PARSE_ERROR}, got {describe_answer(exchange)}", "malformed message", exchange)


def _lives(evidence: Evidence) -> RuleOutcome:
    if (reason := era_or_reason(evidence)) is not None:
        return reason
    made = [evidence.probes[probe] for probe in ("after-malformed", "after-odd") if probe in evidence.probes]
    dead = [exchange for exchange in made if exchange.received is None]
    if not made:
        return not_checked(evidence.why_missing("after-malformed"))
    words = "after a message that no client sends the next request got no answer: "
    # On stdio, clients must not write invalid messages, and only harm their own session; over HTTP all sessions are
    # lost.
    lesser: Severity | None = 3 if evidence.transport == "stdio" else None
    return RuleOutcome(
        tuple(Fault(words + exchange.problem, "malformed message", exchange, lesser=lesser) for exchange in dead[:1])
    )


def _not_utf_8(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.received is None:
        words = "after bytes that are no UTF-8 the next request got no answer: "
        yield Fault(words + exchange.problem, "bytes that are no UTF-8", exchange)


def _unknown_version(exchange: WireExchange) -> Iterator[Fault]:
    offered = (exchange.result or {}).get("protocolVersion")
    if exchange.result is not None and offered not in HANDSHAKES:
        words = f"initialize with {UNKNOWN_REVISION}, which no revision has, was answered with {offered!r}"
        yield Fault(words, "unknown revision", exchange)
    elif exchange.received is None:
        yield Fault(f"expected a supported revision or an error, got {exchange.problem}", "unknown revision", exchange)


def _no_version(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code != INVALID_PARAMS:
        words = f"expected error {INVALID_PARAMS}, got {describe_answer(exchange)}"
        yield Fault(
            words, "initialize without protocolVersion", exchange, lesser=1 if exchange.result is None else None
        )


def _silence(what: str) -> FindFaults:
    def find_faults(exchange: WireExchange) -> Iterator[Fault]:
        if exchange.received is not None and (exchange.received.get("id") is not None or exchange.result is not None):
            yield Fault(f"{what} got an answer", what, exchange)
        elif exchange.received is not None and exchange.status == 0:
            yield Fault(f"{what} got {describe_answer(exchange)}", what, exchange, lesser=1)

    return find_faults


def _not_rpc(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.result is not None:
        yield Fault(f"expected error {INVALID_REQUEST}, got a result", "no JSON-RPC message", exchange)
    elif exchange.code != INVALID_REQUEST:
        words = f"expected error {INVALID_REQUEST}, got {describe_answer(exchange)}"
        yield Fault(words, "no JSON-RPC message", exchange, lesser=1)


def _array_params(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.result is not None and not exchange.failed:
        yield Fault("tools/call with a list as params was answered with a result", "params", exchange)
    elif exchange.code not in (INVALID_PARAMS, INVALID_REQUEST):
        words = f"expected error {INVALID_PARAMS}, got {describe_answer(exchange)}"
        yield Fault(words, "params", exchange, lesser=1)


_unknown_members = expects_result(
    "tools/list with a member and metadata that the server does not know", "unknown members"
)


def _early_ping(evidence: Evidence) -> RuleOutcome:
    if evidence.transport != "stdio":
        return not_applicable("there is no session before initialize")
    ping = evidence.probes.get("ping")
    if ping is not None and ping.result is None:
        return not_applicable("ping is not answered in a session, either")
    return probe_check("early-ping", expects_result("ping before initialize", "ping"))(evidence)


def _malformed_initialize(evidence: Evidence) -> RuleOutcome:
    if evidence.transport != "stdio":
        return not_applicable("what begins a session is the transport's affair")
    ended = evidence.probes.get("early-ping")
    if ended is not None and ended.received is None:
        return not_applicable("the server did not answer before it was initialized")
    return probe_check("no-version", _no_version)(evidence)


def _unknown_tool(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code == INVALID_PARAMS:
        return
    failed = exchange.result is not None and exchange.result.get("isError") is True
    # That it is a protocol error stands in a sentence of the specification, the code only in its example.
    tolerated = failed or exchange.code is not None
    yield Fault(
        f"expected error {INVALID_PARAMS}, got {describe_answer(exchange)}",
        "unknown tool",
        exchange,
        lesser=1 if tolerated else None,
    )


def _bad_cursor(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code == INVALID_PARAMS:
        return
    ignored = exchange.result is not None
    yield Fault(
        f"expected error {INVALID_PARAMS}, got {describe_answer(exchange)}",
        "invalid cursor",
        exchange,
        lesser=1 if ignored else None,
    )


def describe_answer(exchange: WireExchange) -> str:
    """Return a short description of the answer."""
    if exchange.code is not None:
        return f"error {exchange.code}"
    if exchange.result is not None:
        return "a result with isError" if exchange.result.get("isError") is True else "a result"
    return exchange.problem or "an answer with neither result nor error"


def _ids(evidence: Evidence) -> RuleOutcome:
    answered = [
        exchange
        for exchange in evidence.traffic
        if exchange.received is not None and isinstance(exchange.sent, dict) and "id" in exchange.sent
    ]
    if not answered:
        return not_checked("nothing was answered")
    wrong = [exchange for exchange in answered if not exchange.id_echoed and not _without_id(exchange)]
    return RuleOutcome(
        tuple(
            Fault(f"{len(wrong)} of {len(answered)} answers have a different id than their request", "id", exchange)
            for exchange in wrong[:1]
        )
    )


def _without_id(exchange: WireExchange) -> bool:
    """Return True if HTTP refused a request before reading it: such an error may lack an id (basic/transports)."""
    return exchange.status >= 400 and exchange.error is not None and (exchange.received or {}).get("id") is None


def _envelope(evidence: Evidence) -> RuleOutcome:
    answered = [exchange for exchange in evidence.traffic if exchange.received is not None]
    if not answered:
        return not_checked("nothing was answered")
    return RuleOutcome(tuple([fault for exchange in answered for fault in _envelope_faults(exchange)][:1]))


def _envelope_faults(exchange: WireExchange) -> Iterator[Fault]:
    received = exchange.received or {}
    if ("result" in received) == ("error" in received):
        yield Fault("an answer must have exactly one of result and error", "answer", exchange)
    elif "error" in received and (exchange.code is None or not isinstance((exchange.error or {}).get("message"), str)):
        yield Fault("an error must have an integer code and a string as message", "answer", exchange)
    elif received.get("jsonrpc") != "2.0":
        yield Fault('an answer must have "jsonrpc": "2.0"', "answer", exchange)


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="legacy.negotiates", severity=5, gate=True, check=_handshakes(_negotiates),
        statement="initialize with any handshake revision is answered with that revision or another handshake revision.",
        source="MCP basic/lifecycle, Version Negotiation",
        hint="return the client's revision if you support it, else your latest",
    ),
    Rule(
        id="legacy.introduces", severity=3, check=_handshakes(_introduces),
        statement="The result of initialize has capabilities and serverInfo with name and version.",
        source="MCP schema, InitializeResult",
        hint="send all three; otherwise clients refuse the result",
    ),
    Rule(
        id="legacy.ping", severity=3, check=probe_check("ping", _ping),
        statement="ping is answered with an empty result.",
        source="MCP basic/utilities/ping: the receiver must respond promptly with an empty response",
        hint='return {"result": {}}',
    ),
    Rule(
        id="legacy.unknown-method", severity=3, check=probe_check("unknown-method", unknown_method),
        statement=f"An unknown method is answered with error {METHOD_NOT_FOUND}.",
        source="JSON-RPC 2.0 §5.1",
        hint=(f"answer unknown methods with {METHOD_NOT_FOUND}: without an answer a client waits, and other codes "
              "hide the cause"),
    ),
    Rule(
        id="legacy.malformed", severity=1, check=probe_check("malformed", _malformed, era=""),
        statement=f"A message that is not JSON is answered with error {PARSE_ERROR} and the id null or no id.",
        source="JSON-RPC 2.0 §5.1; the newer revisions let the id be left out",
        hint="answer, then continue to read",
    ),
    Rule(
        id="legacy.survives", severity=5, gate=True, check=_lives,
        statement=("The server continues after a message that is not JSON, and after other invalid messages. Over stdio, "
                   "where each client has its own process, a failure closes no gate."),
        source=("JSON-RPC 2.0 §5.1 has an answer for it; MCP basic/transports, stdio: the client must not write "
                "anything else"),
        hint="catch the parse error when you read the line",
    ),
    Rule(
        id="legacy.utf-8", severity=2, until=LATEST_HANDSHAKE, check=probe_check("after-not-utf-8", _not_utf_8),
        statement=("The server continues after bytes that are not valid UTF-8. It can refuse the message or replace the "
                   "bytes."),
        source="MCP basic/transports: messages must be UTF-8; Unicode 16 §3.9: decoders go on after what is none",
        hint="decode with replacement, or answer with a parse error and continue to read",
    ),
    Rule(
        id="legacy.unknown-version", severity=5, gate=True, until=LATEST_HANDSHAKE,
        check=probe_check("unknown-version", _unknown_version),
        statement=("initialize with an unknown revision is answered with a handshake revision or an error, never with "
                   "the unknown revision."),
        source=("MCP basic/lifecycle, Version Negotiation: otherwise the server must respond with another version "
                "that it supports"),
        hint="compare with the revisions that you implement, and do not echo an unknown one",
    ),
    Rule(
        id="legacy.malformed-initialize", severity=2, until=LATEST_HANDSHAKE, check=_malformed_initialize,
        statement=(f"initialize without protocolVersion is answered with error {INVALID_PARAMS} (another error is "
                   "tolerated)."),
        source="MCP basic/lifecycle, Error Handling; schema, InitializeRequest",
        hint="require protocolVersion, and assume no default",
    ),
    Rule(
        id="legacy.early-ping", severity=1, until=LATEST_HANDSHAKE, check=_early_ping,
        statement="On stdio, ping is also answered before initialize.",
        source="MCP basic/lifecycle, Initialization: pings are the requests that a client may send before",
        hint="answer ping at any time",
    ),
    Rule(
        id="legacy.notifications", severity=3, gate=True, until=LATEST_HANDSHAKE,
        check=probe_check("notification", _silence("a notification that no revision has")),
        statement="A notification is never answered, even if its method is unknown.",
        source="MCP basic/index, Notifications: the receiver must not send a response",
        hint="send no answer to a message without an id",
    ),
    Rule(
        id="legacy.cancelled", severity=3, gate=True, until=LATEST_HANDSHAKE,
        check=probe_check("late-cancel", _silence("a cancellation of nothing")),
        statement="A cancellation of a request that is not running is ignored.",
        source=("MCP basic/utilities/cancellation, Behavior Requirements: receivers may ignore it; it is a "
                "notification, and never answered"),
        hint="forget answered requests, and ignore unknown ids",
    ),
    Rule(
        id="legacy.responses", severity=3, gate=True, until=LATEST_HANDSHAKE,
        check=probe_check("response", _silence("a response that nobody asked for")),
        statement="A response is never answered, even if it matches no request.",
        source="JSON-RPC 2.0 §5; MCP basic/index, Responses",
        hint="drop responses with unknown ids",
    ),
    Rule(
        id="legacy.not-rpc", severity=3, until=LATEST_HANDSHAKE, check=probe_check("not-rpc", _not_rpc),
        statement=(f"JSON that is not a JSON-RPC message is answered with error {INVALID_REQUEST} (a missing answer is "
                   "tolerated)."),
        source="JSON-RPC 2.0 §5.1",
        hint="check jsonrpc and method before anything else",
    ),
    Rule(
        id="legacy.params", severity=3, check=probe_check("array-params", _array_params, capability="tools"),
        statement=(f"Params that are not an object are answered with error {INVALID_PARAMS} (another error, or a missing "
                   "answer, is tolerated)."),
        source="MCP schema, Request: params are an object",
        hint="check the type of params when you read the message", until=LATEST_HANDSHAKE,
    ),
    Rule(
        id="legacy.unknown-members", severity=3, gate=True,
        check=probe_check("unknown-members", _unknown_members, era="", capability="tools"),
        statement="Requests with unknown members and unknown metadata are served.",
        source=("MCP basic/index, General fields; schema, RequestParams: other members are allowed, and later "
                "revisions add some"),
        hint="read the params that you know, and ignore the rest",
    ),
    Rule(
        id="legacy.unknown-tool", severity=3,
        check=probe_check("unknown-tool", _unknown_tool, era="", capability="tools"),
        statement=(f"A call of an unknown tool is answered with error {INVALID_PARAMS} (another code, and a result with "
                   "isError, are tolerated)."),
        source="MCP server/tools, Error Handling: unknown tools are protocol errors, and the example's code is -32602",
        hint="look up the name before you run anything",
    ),
    Rule(
        id="legacy.bad-cursor", severity=2, check=probe_check("bad-cursor", _bad_cursor, era="", capability="tools"),
        statement=f"An invalid cursor is answered with error {INVALID_PARAMS} (ignoring it is tolerated).",
        source="MCP server/utilities/pagination, Error Handling",
        hint="return an error for a stale cursor, so that the client stops repeating it",
    ),
    Rule(
        id="legacy.ids", severity=5, gate=True, check=_ids,
        statement="Every answer has the id of its request, with the same type.",
        source="JSON-RPC 2.0 §5",
        hint="copy the id unchanged: strings stay strings, numbers stay numbers",
    ),
    Rule(
        id="legacy.envelope", severity=3, check=_envelope,
        statement="Every answer is a JSON-RPC 2.0 response with either result or error; an error has code and message.",
        source="JSON-RPC 2.0 §5 and §5.1",
        hint="validate every message that you send against the schema of the protocol",
    ),
)  # fmt: skip


def _batch(evidence: Evidence) -> RuleOutcome:
    if not BATCHED & set(evidence.revisions):
        return not_applicable("the server speaks no revision with batches")
    return probe_check("batch", _batch_faults)(evidence)


def _beside(**judges: FindFaults) -> Check:
    """Return a check of other arrays, `batch_empty=…` for the probe `batch-empty`, of servers that answer those with requests."""

    def check(evidence: Evidence) -> RuleOutcome:
        plain = _batch(evidence)
        if plain.inapplicable or plain.unknown:
            return plain
        if plain.faults and not (answered := evidence.probes["batch"]).apart:
            return not_applicable(f"a batch of requests got {describe_answer(answered)}")
        chosen = {_probe(name): judge for name, judge in judges.items() if not _answered_alone(evidence, _probe(name))}
        outcomes = [probe_check(probe, judge)(evidence) for probe, judge in chosen.items()]
        unknown = next((one for one in outcomes if one.unknown), None)
        return unknown or rule_outcome(len(outcomes), (fault for one in outcomes for fault in one.faults))

    return check


def _probe(name: str) -> str:
    return next(one for one in _OTHERS if one.replace("-", "_") == name)


def _answered_alone(evidence: Evidence, probe: str) -> bool:
    """Return True if the array's content is also answered outside of arrays, which another rule reports."""
    plain = _PLAIN.get(probe)
    return plain is not None and plain in evidence.probes and evidence.probes[plain].received is not None


_PLAIN: Final[dict[str, str]] = {"batch-notifications": "notification", "batch-responses": "response"}
_OTHERS: Final[tuple[str, ...]] = ("batch-notifications", "batch-responses", "batch-empty", "batch-initialize")


def _batch_faults(exchange: WireExchange) -> Iterator[Fault]:
    answers = [answer for answer in (exchange.received, *exchange.more) if answer is not None]
    ids = {str(answer.get("id")) for answer in answers}
    if len(answers) != 2 or len(ids) != 2:
        yield Fault(f"a batch of two pings and a notification got {len(answers)} answers", "batch", exchange)
    elif exchange.apart:
        yield Fault("the answers to a batch were sent one by one, not in one array", "batch", exchange)


def _batch_silence(what: str) -> FindFaults:
    def find_faults(exchange: WireExchange) -> Iterator[Fault]:
        if exchange.received is not None:
            yield Fault(f"a batch of {what} got {describe_answer(exchange)}", what, exchange)
        elif exchange.status not in (0, 202):
            yield Fault(f"a batch of {what} got status {exchange.status}, not 202", what, exchange)

    return find_faults


def _initialize(exchange: WireExchange) -> Iterator[Fault]:
    answers = [answer for answer in (exchange.received, *exchange.more) if answer is not None]
    results = [answer["result"] for answer in answers if isinstance(answer.get("result"), dict)]
    if any("protocolVersion" in result for result in results):
        yield Fault("initialize in a batch was answered with a result", "initialize", exchange)


BATCH_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="legacy.batch", severity=1, until=LATEST_HANDSHAKE, check=_batch,
        statement=("In the revision with batches, each request in an array is answered once, and notifications are not. "
                   "On stdio, the answers are one array."),
        source=("MCP basic/index, Batching: implementations must support receiving batches; JSON-RPC 2.0 §6 (clients "
                "hardly send any, and the next revision dropped them: it weighs 1)"),
        hint="do not agree to that revision, or answer each request in the array",
    ),
    Rule(
        id="legacy.batch-silence", severity=1, until=LATEST_HANDSHAKE,
        check=_beside(batch_notifications=_batch_silence("notifications"), batch_responses=_batch_silence("responses")),
        statement="An array without requests is not answered; over HTTP its status is 202.",
        source=("JSON-RPC 2.0 §6: the server must return nothing at all; MCP basic/transports of the revision with "
                "batches"),
        hint="send nothing instead of an empty array",
    ),
    Rule(
        id="legacy.batch-empty", severity=1, until=LATEST_HANDSHAKE, check=_beside(batch_empty=expects_error(INVALID_REQUEST, "empty batch")),
        statement=f"An empty array is answered with error {INVALID_REQUEST}.",
        source="JSON-RPC 2.0 §6",
        hint="refuse it before you read its members",
    ),
    Rule(
        id="legacy.batch-initialize", severity=1, until=LATEST_HANDSHAKE, check=_beside(batch_initialize=_initialize),
        statement="initialize in an array is refused.",
        source=("MCP basic/lifecycle of the revision with batches, Initialization: the initialize request must not be "
                "part of a batch"),
        hint="refuse the array: its other messages cannot be served before initialize is complete",
    ),
)  # fmt: skip
