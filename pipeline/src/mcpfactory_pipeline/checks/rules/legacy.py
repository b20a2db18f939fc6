"""Rules about the handshake lifecycle, JSON-RPC and batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import (
    BATCHED,
    HANDSHAKES,
    LATEST_HANDSHAKE,
    WireExchange,
)
from mcpfactory_pipeline.checks.probes import BATCH, UNKNOWN_REVISION, Probe, describe_answer
from mcpfactory_pipeline.checks.rule import (
    Fault,
    RuleOutcome,
    RuleSubjects,
    RuleTable,
    Severity,
    not_applicable,
    not_checked,
)
from mcpfactory_pipeline.checks.rules.subjects import missing_lifecycle_outcome, probed
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR

RULES: Final = RuleTable()
rule, row = RULES.rule, RULES.row


def _handshakes(evidence: Evidence) -> RuleSubjects[tuple[str, WireExchange]] | RuleOutcome:
    return missing_lifecycle_outcome(evidence, "legacy") or RuleSubjects(tuple(evidence.handshakes.items()))


@rule("legacy.version-negotiation", 5, gate=True, over=_handshakes,
      statement=("initialize with any handshake revision is answered with that revision, or with another handshake "
                 "revision if the server does not support it."),
      source="MCP basic/lifecycle, Version Negotiation",
      hint="return the client's revision if you support it, else your latest")  # fmt: skip
def _negotiates(handshake: tuple[str, WireExchange], evidence: Evidence) -> Iterator[Fault]:
    revision, exchange = handshake
    offered = _offered(exchange)
    if exchange.result is None:
        words = f"initialize with {revision} got no result; a server must offer a revision that it supports instead"
        yield Fault(words, revision, exchange)
    elif offered not in HANDSHAKES:
        yield Fault(f"protocolVersion {offered!r} is not a handshake revision", revision, exchange)
    elif offered != revision and revision in map(_offered, evidence.handshakes.values()):
        words = f"initialize with {revision} is answered with {offered}, but the server supports {revision}"
        yield Fault(f"{words}: it offers this revision to other clients", revision, exchange)


def _offered(handshake: WireExchange) -> Any:
    return (handshake.result or {}).get("protocolVersion")


@rule("legacy.server-info", 3, gate=True, over=_handshakes,
      statement="The result of initialize has capabilities and serverInfo with name and version.",
      source="MCP schema, InitializeResult",
      hint="send capabilities, and serverInfo with name and version; otherwise clients refuse the result")  # fmt: skip
def _introduces(handshake: tuple[str, WireExchange]) -> Iterator[Fault]:
    revision, exchange = handshake
    result = exchange.result
    if result is None:
        return
    if not isinstance(result.get("capabilities"), dict):
        yield Fault("the result has no capabilities object", revision, exchange)
    info = result.get("serverInfo")
    if not isinstance(info, dict) or not all(isinstance(info.get(key), str) for key in ("name", "version")):
        yield Fault("serverInfo must have name and version, both strings", revision, exchange)


@rule("legacy.ping", 3, gate=True, over=probed("ping"),
      statement="ping is answered with an empty result.",
      source="MCP basic/utilities/ping: the receiver must respond promptly with an empty response",
      hint='return {"result": {}}')  # fmt: skip
def _ping(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.result is None:
        yield Fault(exchange.problem or "ping was not answered with a result", "ping", exchange)
    elif exchange.result:
        yield Fault("the result of ping is not empty", "ping", exchange, lesser=1)


row("legacy.unknown-method", 3, gate=True, over=probed("unknown-method"),
    statement=f"An unknown method is answered with error {METHOD_NOT_FOUND}.",
    source="JSON-RPC 2.0 §5.1",
    hint=(f"answer unknown methods with {METHOD_NOT_FOUND}: without an answer a client waits, and other "
          "codes hide the cause"))  # fmt: skip


@rule("legacy.invalid-json", 1, over=probed("malformed"),
      statement=f"A message that is not JSON is answered with error {PARSE_ERROR}. The id is null or missing.",
      source="JSON-RPC 2.0 §5.1; the newer revisions allow a response without an id",
      hint="answer, then continue to read")  # fmt: skip
def _malformed(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code != PARSE_ERROR or (exchange.received or {}).get("id") is not None:
        yield Fault(f"expected error {PARSE_ERROR}, got {describe_answer(exchange)}", "malformed message", exchange)


@rule("legacy.keeps-running", 5, gate=True,
      statement=("The server continues after a message that is not JSON, and after other invalid messages. Over "
                 "stdio, where each client has its own process, a failure closes no gate."),
      source=("JSON-RPC 2.0 §5.1 defines the answer; MCP basic/transports, stdio: clients must write only valid "
              "messages"),
      hint="catch the parse error when you read the line")  # fmt: skip
def _survives(evidence: Evidence) -> RuleOutcome:
    if (reason := missing_lifecycle_outcome(evidence)) is not None:
        return reason
    made = [evidence.probes[probe] for probe in ("after-malformed", "after-odd") if probe in evidence.probes]
    dead = [exchange for exchange in made if exchange.received is None]
    if not made:
        return not_checked(evidence.missing_reason("after-malformed"))
    words = "after a message that no client sends, the next request got no answer: "
    # Over HTTP, an invalid message may end all sessions; on stdio, it ends only the client's own session.
    lesser: Severity | None = 3 if evidence.transport == "stdio" else None
    return RuleOutcome(
        tuple(Fault(words + exchange.problem, "malformed message", exchange, lesser=lesser) for exchange in dead[:1])
    )


@rule("legacy.utf-8", 2, until=LATEST_HANDSHAKE, over=probed("not-utf-8", stored="after-not-utf-8"),
      statement=("The server continues after bytes that are not valid UTF-8. The server can refuse the message or "
                 "replace the bytes."),
      source="MCP basic/transports: messages must be UTF-8; Unicode 16 §3.9: decoders continue after invalid bytes",
      hint="decode with replacement, or answer with a parse error and continue to read")  # fmt: skip
def _utf_8(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.received is None:
        words = "after bytes that are not UTF-8, the next request got no answer: "
        yield Fault(words + exchange.problem, "bytes that are not UTF-8", exchange)


row("legacy.unescaped-text", 5, gate=True, until=LATEST_HANDSHAKE, over=probed("unescaped-text"),
    statement="A message with unescaped Unicode line separators in a text is answered: only line feeds end messages.",
    source="MCP basic/transports, stdio: messages are delimited by newlines, and encoded in UTF-8; RFC 8259 §7",
    hint="split the input at line feeds only, and decode it as UTF-8")  # fmt: skip


@rule("legacy.unknown-version", 5, gate=True, until=LATEST_HANDSHAKE, over=probed("unknown-version"),
      statement=("initialize with an unknown revision is answered with a handshake revision or an error, never with "
                 "the unknown revision."),
      source=("MCP basic/lifecycle, Version Negotiation: otherwise the server must respond with another version that "
              "it supports"),
      hint="compare the revision with the revisions that you implement, and do not echo an unknown revision")  # fmt: skip
def _unknown_version(exchange: WireExchange) -> Iterator[Fault]:
    offered = (exchange.result or {}).get("protocolVersion")
    if exchange.result is not None and offered not in HANDSHAKES:
        words = f"initialize with {UNKNOWN_REVISION}, which no revision has, was answered with {offered!r}"
        yield Fault(words, "unknown revision", exchange)
    elif exchange.received is None:
        yield Fault(f"expected a supported revision or an error, got {exchange.problem}", "unknown revision", exchange)


def _early_message(evidence: Evidence) -> RuleOutcome | None:
    if evidence.transport != "stdio":
        return not_applicable("over HTTP, the transport defines how a session begins")
    ended = evidence.probes.get("early-ping")
    if ended is not None and ended.received is None:
        return not_applicable("the server did not answer before it was initialized")
    return None


row("legacy.incomplete-initialize", 2, until=LATEST_HANDSHAKE, over=probed("no-version", given=_early_message),
    statement=(f"initialize without protocolVersion is answered with error {INVALID_PARAMS} (another error is "
               "tolerated)."),
    source="MCP basic/lifecycle, Error Handling; schema, InitializeRequest",
    hint="require protocolVersion, and assume no default")  # fmt: skip


def _early_session(evidence: Evidence) -> RuleOutcome | None:
    if evidence.transport != "stdio":
        return not_applicable("there is no session before initialize")
    ping = evidence.probes.get("ping")
    return (
        not_applicable("ping is not answered in a session, either")
        if ping is not None and ping.result is None
        else None
    )


row("legacy.early-ping", 1, until=LATEST_HANDSHAKE, over=probed("early-ping", given=_early_session),
    statement="On stdio, ping is also answered before initialize.",
    source="MCP basic/lifecycle, Initialization: pings are the requests that a client may send before",
    hint="answer ping at any time")  # fmt: skip

row("legacy.notifications", 3, gate=True, until=LATEST_HANDSHAKE, over=probed("notification"),
    statement="A notification is never answered, even if its method is unknown.",
    source="MCP basic/index, Notifications: the receiver must not send a response",
    hint="send no answer to a message without an id")  # fmt: skip

row("legacy.late-cancellation", 3, gate=True, until=LATEST_HANDSHAKE, over=probed("late-cancellation"),
    statement="A cancellation of a request that is not running is ignored.",
    source=("MCP basic/utilities/cancellation, Behavior Requirements: receivers may ignore it; it is a notification, "
            "and never answered"),
    hint="forget answered requests, and ignore unknown ids")  # fmt: skip

row("legacy.responses", 3, gate=True, until=LATEST_HANDSHAKE, over=probed("response"),
    statement="A response is never answered, even if it matches no request.",
    source="JSON-RPC 2.0 §5; MCP basic/index, Responses",
    hint="drop responses with unknown ids")  # fmt: skip

row("legacy.not-json-rpc", 3, until=LATEST_HANDSHAKE, over=probed("not-json-rpc"),
    statement=(f"JSON that is not a JSON-RPC message is answered with error {INVALID_REQUEST}; a missing answer is "
               "tolerated."),
    source="JSON-RPC 2.0 §5.1",
    hint="check jsonrpc and method before anything else")  # fmt: skip


@rule("legacy.params", 3, until=LATEST_HANDSHAKE, over=probed("array-params"),
      statement=(f"Params that are not an object are answered with error {INVALID_PARAMS}; another error, or a "
                 "missing answer, is tolerated."),
      source="MCP schema, Request: params are an object",
      hint="check the type of params when you read the message")  # fmt: skip
def _array_params(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.result is not None and not exchange.failed:
        yield Fault("tools/call with a list as params was answered with a result", "params", exchange)
    elif exchange.code not in (INVALID_PARAMS, INVALID_REQUEST):
        words = f"expected error {INVALID_PARAMS}, got {describe_answer(exchange)}"
        yield Fault(words, "params", exchange, lesser=1)


row("legacy.unknown-members", 3, gate=True, over=probed("unknown-members"),
    statement="Requests with unknown members and unknown metadata are served.",
    source=("MCP basic/index, General fields; schema, RequestParams: other members are allowed, and later revisions "
            "add some"),
    hint="read the params that you know, and ignore the rest")  # fmt: skip

row("legacy.unknown-tool", 3, over=probed("unknown-tool"),
    statement=(f"A call of an unknown tool is answered with error {INVALID_PARAMS}; another code, and a result with "
               "isError, are tolerated."),
    source="MCP server/tools, Error Handling: unknown tools are protocol errors, and the example's code is -32602",
    hint="look up the name before you run anything")  # fmt: skip

row("legacy.invalid-cursor", 2, over=probed("invalid-cursor"),
    statement=f"An invalid cursor is answered with error {INVALID_PARAMS}; a server that ignores the cursor is tolerated.",
    source="MCP server/utilities/pagination, Error Handling",
    hint="return an error for a stale cursor, so that the client stops sending the cursor")  # fmt: skip


@rule("legacy.ids", 5, gate=True,
      statement=("Every answer has the id of its request, with the same type. If only errors with an HTTP status from 400 "
                 "on have another id, the finding has severity 1."),
      source="JSON-RPC 2.0 §5",
      hint="copy the id unchanged: strings stay strings, numbers stay numbers")  # fmt: skip
def _ids(evidence: Evidence) -> RuleOutcome:
    answered = [
        exchange
        for exchange in evidence.traffic
        if exchange.received is not None and isinstance(exchange.sent, dict) and "id" in exchange.sent
    ]
    if not answered:
        return not_checked("nothing was answered")
    wrong = [exchange for exchange in answered if not exchange.id_echoed and not _without_id(exchange)]
    wrong.sort(key=_is_refusal)
    words = f"{len(wrong)} of {len(answered)} answers have a different id than their request"
    return RuleOutcome(tuple(Fault(words, "id", one, lesser=1 if _is_refusal(one) else None) for one in wrong[:1]))


def _is_refusal(exchange: WireExchange) -> bool:
    """Return True for an HTTP error, to which clients need no id; the official Python SDK 1 sends another id."""
    return exchange.status >= 400 and exchange.error is not None


def _without_id(exchange: WireExchange) -> bool:
    """Return True if the server refused a request with an HTTP error and without an id, as basic/transports allows."""
    return _is_refusal(exchange) and (exchange.received or {}).get("id") is None


def _answered(evidence: Evidence) -> RuleSubjects[WireExchange] | RuleOutcome:
    answered = [exchange for exchange in evidence.traffic if exchange.received is not None]
    return RuleSubjects(answered, 1, once=True) if answered else not_checked("nothing was answered")


@rule("legacy.response-shape", 3, gate=True, over=_answered,
      statement="Every answer is a JSON-RPC 2.0 response with either result or error; an error has code and message.",
      source="JSON-RPC 2.0 §5 and §5.1",
      hint="validate every message that you send against the schema of the protocol")  # fmt: skip
def _envelope(exchange: WireExchange) -> Iterator[Fault]:
    received = exchange.received or {}
    if ("result" in received) == ("error" in received):
        yield Fault("an answer must have exactly one of result and error", "answer", exchange)
    elif "error" in received and (exchange.code is None or not isinstance((exchange.error or {}).get("message"), str)):
        yield Fault("an error must have an integer code and a string as message", "answer", exchange)
    elif received.get("jsonrpc") != "2.0":
        yield Fault('an answer must have "jsonrpc": "2.0"', "answer", exchange)


# --- batches ---


def _batches(evidence: Evidence) -> RuleOutcome | None:
    spoken = BATCHED & set(evidence.revisions)
    return None if spoken else not_applicable("the server speaks no revision with batches")


_BATCH: Final = probed("batch", given=_batches)


@rule("legacy.batch", 3, gate=True, until=LATEST_HANDSHAKE, over=_BATCH,
      statement=("In the revision with batches, each request in an array is answered once, and notifications are "
                 "not. On stdio, the answers are one array. The gate closes if only one of two requests is answered. "
                 "Other deviations have severity 1, because clients hardly send arrays."),
      source="MCP basic/index, Batching: implementations must support receiving batches; JSON-RPC 2.0 §6",
      hint="do not agree to that revision, or answer each request in the array")  # fmt: skip
def _batch(exchange: WireExchange) -> Iterator[Fault]:
    answers = [answer for answer in (exchange.received, *exchange.more) if answer is not None]
    ids = {str(answer.get("id")) for answer in answers}
    if len(answers) != 2 or len(ids) != 2:
        words = f"a batch of a ping, an unknown method and a notification got {len(answers)} answers"
        yield Fault(words, "batch", exchange, lesser=None if sum(one["id"] in ids for one in BATCH) == 1 else 1)
    elif exchange.separate:
        yield Fault("the answers to a batch were sent one by one, not in one array", "batch", exchange, lesser=1)


def _answered_batch(evidence: Evidence) -> RuleOutcome | None:
    batch = _BATCH(evidence)
    if isinstance(batch, RuleOutcome):
        return batch
    exchange = batch.items[0]
    if any(_batch(exchange)) and not exchange.separate:
        return not_applicable(f"a batch of requests got {describe_answer(exchange)}")
    return None


def _silent_batches(evidence: Evidence) -> RuleSubjects[tuple[Probe, WireExchange]] | RuleOutcome:
    """Return the batches that contain no requests.

    Messages that are answered even outside a batch are left out: another rule reports them.
    """
    found: list[tuple[Probe, WireExchange]] = []
    for name, alone in (("batch-notifications", "notification"), ("batch-responses", "response")):
        scope = probed(name, given=_answered_batch)
        seen = scope(evidence)
        if alone in evidence.probes and evidence.probes[alone].received is not None:
            continue
        if isinstance(seen, RuleOutcome):
            return seen
        found += [(scope.probe, exchange) for exchange in seen.items]
    return RuleSubjects(found)


@rule("legacy.batch-without-requests", 1, until=LATEST_HANDSHAKE, over=_silent_batches,
      statement="An array without requests is not answered; over HTTP its status is 202.",
      source=("JSON-RPC 2.0 §6: the server must return nothing at all; MCP basic/transports of the revision with "
              "batches"),
      hint="send nothing instead of an empty array")  # fmt: skip
def _batch_silence(batch: tuple[Probe, WireExchange]) -> Iterator[Fault]:
    probe, exchange = batch
    return probe.faults(exchange)


row("legacy.batch-empty", 1, until=LATEST_HANDSHAKE, over=probed("batch-empty", given=_answered_batch),
    statement=f"An empty array is answered with error {INVALID_REQUEST}.",
    source="JSON-RPC 2.0 §6",
    hint="refuse an empty array before you read the members of an array")  # fmt: skip


@rule("legacy.batch-initialize", 1, until=LATEST_HANDSHAKE, over=probed("batch-initialize", given=_answered_batch),
      statement="initialize in an array is refused.",
      source=("MCP basic/lifecycle of the revision with batches, Initialization: the initialize request must not be "
              "part of a batch"),
      hint="refuse the array: its other messages cannot be served before initialize is complete")  # fmt: skip
def _batch_initialize(exchange: WireExchange) -> Iterator[Fault]:
    answers = [answer for answer in (exchange.received, *exchange.more) if answer is not None]
    results = [answer["result"] for answer in answers if isinstance(answer.get("result"), dict)]
    if any("protocolVersion" in result for result in results):
        yield Fault("initialize in a batch was answered with a result", "initialize", exchange)
