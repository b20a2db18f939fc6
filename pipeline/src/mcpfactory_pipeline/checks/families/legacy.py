"""Rules over the handshake lifecycle (`initialize`) and what JSON-RPC asks of every request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from mcpfactory_pipeline.checks import eras
from mcpfactory_pipeline.checks.evidence import Evidence, Probe
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.rule import Fault, Rule, RuleOutcome, not_applicable, not_checked, rule_outcome
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR

__all__ = ["RULES", "era_or_reason", "probe_check"]


def era_or_reason(evidence: Evidence, era: str = "") -> RuleOutcome | None:
    """Return None when the server speaks `era` ("" for any); else the outcome of every rule about it."""
    if not evidence.eras:
        return not_checked("the server speaks no revision")
    if era and era not in evidence.eras:
        return not_applicable(f"the server does not speak the {era} lifecycle")
    return None


def probe_check(
    probe: Probe, find_faults: Callable[[WireExchange], Iterator[Fault]], *, era: str = "legacy", capability: str = ""
) -> Callable[[Evidence], RuleOutcome]:
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


def _handshakes(find_faults: Callable[[str, WireExchange], Iterator[Fault]]) -> Callable[[Evidence], RuleOutcome]:
    def check(evidence: Evidence) -> RuleOutcome:
        return era_or_reason(evidence, "legacy") or rule_outcome(
            len(evidence.handshakes),
            (fault for revision, exchange in evidence.handshakes.items() for fault in find_faults(revision, exchange)),
        )

    return check


def _negotiates(revision: str, exchange: WireExchange) -> Iterator[Fault]:
    result = exchange.result
    if result is None:
        yield Fault(
            f"initialize with {revision} got no result; a server offers a revision of its own instead",
            revision,
            exchange,
        )
    elif result.get("protocolVersion") not in eras.HANDSHAKES:
        yield Fault(f"protocolVersion {result.get('protocolVersion')!r} is no handshake revision", revision, exchange)


def _introduces(revision: str, exchange: WireExchange) -> Iterator[Fault]:
    result = exchange.result
    if result is None:
        return
    if not isinstance(result.get("capabilities"), dict):
        yield Fault("the result has no capabilities object", revision, exchange)
    info = result.get("serverInfo")
    named = isinstance(info, dict) and all(isinstance(info.get(key), str) for key in ("name", "version"))
    if not named:
        yield Fault("serverInfo needs name and version, both texts", revision, exchange)


def _ping(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.result is None:
        yield Fault(exchange.problem or "ping was not answered with a result", "ping", exchange)
    elif exchange.result:
        yield Fault("the result of ping is not empty", "ping", exchange, lesser=1)


def unknown_method(exchange: WireExchange) -> Iterator[Fault]:
    """Yield what is wrong with the answer to an unknown method."""
    if exchange.code != METHOD_NOT_FOUND:
        yield Fault(f"expected error {METHOD_NOT_FOUND}, got {describe_answer(exchange)}", "unknown method", exchange)


def _malformed(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code != PARSE_ERROR or (exchange.received or {}).get("id") is not None:
        yield Fault(f"expected error {PARSE_ERROR}, got {describe_answer(exchange)}", "malformed message", exchange)


def _lives(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.received is None:
        yield Fault(
            f"after a malformed message the next request got no answer: {exchange.problem}",
            "malformed message",
            exchange,
        )


def _unknown_tool(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code == INVALID_PARAMS:
        return
    tolerated = exchange.result is not None and exchange.result.get("isError") is True
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
    """Return what came back, in words."""
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
    wrong = [exchange for exchange in answered if not exchange.id_echoed]
    return RuleOutcome(
        tuple(
            Fault(f"{len(wrong)} of {len(answered)} answers carry another id than their request", "id", exchange)
            for exchange in wrong[:1]
        )
    )


def _envelope(evidence: Evidence) -> RuleOutcome:
    answered = [exchange for exchange in evidence.traffic if exchange.received is not None]
    if not answered:
        return not_checked("nothing was answered")
    return RuleOutcome(tuple([fault for exchange in answered for fault in _envelope_faults(exchange)][:1]))


def _envelope_faults(exchange: WireExchange) -> Iterator[Fault]:
    received = exchange.received or {}
    if ("result" in received) == ("error" in received):
        yield Fault("an answer has exactly one of result and error", "answer", exchange)
    elif "error" in received and (exchange.code is None or not isinstance((exchange.error or {}).get("message"), str)):
        yield Fault("an error has an integer code and a text as message", "answer", exchange)
    elif received.get("jsonrpc") != "2.0":
        yield Fault('an answer says "jsonrpc": "2.0"', "answer", exchange)


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="legacy.negotiates", family="legacy", severity=5, gate=True, check=_handshakes(_negotiates),
        statement="initialize with any handshake revision is answered with that revision or another handshake revision.",
        source="MCP basic/lifecycle, Version Negotiation",
        hint="echo the client's revision when you know it, else offer your latest",
    ),
    Rule(
        id="legacy.introduces", family="legacy", severity=3, gate=False, check=_handshakes(_introduces),
        statement="The result of initialize has capabilities and serverInfo with name and version.",
        source="MCP schema, InitializeResult",
        hint="send all three; clients refuse the result otherwise",
    ),
    Rule(
        id="legacy.ping", family="legacy", severity=3, gate=False, check=probe_check("ping", _ping),
        statement="ping is answered with an empty result.",
        source="MCP basic/utilities/ping: the receiver must respond promptly with an empty response",
        hint='answer {"result": {}}',
    ),
    Rule(
        id="legacy.unknown-method", family="legacy", severity=3, gate=False, check=probe_check("unknown-method", unknown_method),
        statement=f"A method that the server does not have is answered with error {METHOD_NOT_FOUND}.",
        source="JSON-RPC 2.0 §5.1",
        hint="answer unknown methods instead of dropping them; a client waits",
    ),
    Rule(
        id="legacy.malformed", family="legacy", severity=1, gate=False, check=probe_check("malformed", _malformed, era=""),
        statement=f"A message that is no JSON is answered with error {PARSE_ERROR} and the id null, or none.",
        source="JSON-RPC 2.0 §5.1; the newer revisions let the id be left out",
        hint="answer, then go on reading",
    ),
    Rule(
        id="legacy.survives", family="legacy", severity=5, gate=True, check=probe_check("after-malformed", _lives, era=""),
        statement="The server goes on after a message that is no JSON.",
        source="JSON-RPC 2.0 §5.1 has an answer for it; one bad line must not end every conversation",
        hint="catch the parse error where the line is read",
    ),
    Rule(
        id="legacy.unknown-tool", family="legacy", severity=3, gate=False, check=probe_check("unknown-tool", _unknown_tool, era="", capability="tools"),
        statement=f"A call of an unknown tool is answered with error {INVALID_PARAMS} (a result with isError is tolerated).",
        source="MCP server/tools, Error Handling: unknown tools are protocol errors",
        hint="look the name up before running anything",
    ),
    Rule(
        id="legacy.bad-cursor", family="legacy", severity=2, gate=False, check=probe_check("bad-cursor", _bad_cursor, era="", capability="tools"),
        statement=f"An invalid cursor is answered with error {INVALID_PARAMS} (ignoring it is tolerated).",
        source="MCP server/utilities/pagination, Error Handling",
        hint="a client that repeats a stale cursor must learn that it is stale",
    ),
    Rule(
        id="legacy.ids", family="legacy", severity=5, gate=True, check=_ids,
        statement="Every answer carries the id of its request, with its type.",
        source="JSON-RPC 2.0 §5",
        hint="copy the id as it came: texts stay texts, numbers stay numbers",
    ),
    Rule(
        id="legacy.envelope", family="legacy", severity=3, gate=False, check=_envelope,
        statement="Every answer is a JSON-RPC 2.0 response: one of result and error, and errors with code and message.",
        source="JSON-RPC 2.0 §5 and §5.1",
        hint="check what is sent against the schema of the protocol",
    ),
)  # fmt: skip
