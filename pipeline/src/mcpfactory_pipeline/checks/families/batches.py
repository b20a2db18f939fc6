"""Rules over arrays of messages, which one revision has. They weigh 1: clients hardly send any, and the next revision dropped them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from mcpfactory_pipeline.checks import eras
from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.families.legacy import describe_answer, probe_check
from mcpfactory_pipeline.checks.rule import Check, Fault, Rule, RuleOutcome, not_applicable, rule_outcome
from mcpfactory_runtime.protocol.errors import INVALID_REQUEST

__all__ = ["RULES"]

_FindFaults = Callable[[WireExchange], Iterator[Fault]]


def _batch(evidence: Evidence) -> RuleOutcome:
    if not eras.BATCHES & set(evidence.revisions):
        return not_applicable("the server speaks no revision with batches")
    return probe_check("batch", _batch_faults)(evidence)


def _beside(**judges: _FindFaults) -> Check:
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
    """Whether what the array holds is answered outside of arrays, too: that is another rule's finding."""
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
        yield Fault("the answers to a batch came one by one, not in an array", "batch", exchange)


def _silence(what: str) -> _FindFaults:
    def find_faults(exchange: WireExchange) -> Iterator[Fault]:
        if exchange.received is not None:
            yield Fault(f"a batch of {what} got {describe_answer(exchange)}", what, exchange)
        elif exchange.status not in (0, 202):
            yield Fault(f"a batch of {what} got status {exchange.status}, not 202", what, exchange)

    return find_faults


def _empty(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code != INVALID_REQUEST:
        yield Fault(f"expected error {INVALID_REQUEST}, got {describe_answer(exchange)}", "empty batch", exchange)


def _initialize(exchange: WireExchange) -> Iterator[Fault]:
    answers = [answer for answer in (exchange.received, *exchange.more) if answer is not None]
    results = [answer["result"] for answer in answers if isinstance(answer.get("result"), dict)]
    if any("protocolVersion" in result for result in results):
        yield Fault("initialize in a batch was answered with a result", "initialize", exchange)


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="legacy.batch", family="legacy", severity=1, gate=False, check=_batch,
        statement="In the revision that has batches, an array of requests is answered: each request once, notifications not, and on stdio in one array.",
        source="MCP basic/index, Batching: implementations must support receiving batches; JSON-RPC 2.0 §6 (clients hardly send any, and the next revision dropped them: it weighs 1)",
        hint="do not agree to that revision, or answer each member of the array",
        until=eras.LATEST_HANDSHAKE,
    ),
    Rule(
        id="legacy.batch-silence", family="legacy", severity=1, gate=False,
        check=_beside(batch_notifications=_silence("notifications"), batch_responses=_silence("responses")),
        statement="An array without requests is not answered; over HTTP its status is 202.",
        source="JSON-RPC 2.0 §6: the server must return nothing at all; MCP basic/transports of the revision with batches",
        hint="send no array where there is nothing to put into it",
        until=eras.LATEST_HANDSHAKE,
    ),
    Rule(
        id="legacy.batch-empty", family="legacy", severity=1, gate=False, check=_beside(batch_empty=_empty),
        statement=f"An empty array is answered with error {INVALID_REQUEST}.",
        source="JSON-RPC 2.0 §6",
        hint="refuse it before its members are looked at",
        until=eras.LATEST_HANDSHAKE,
    ),
    Rule(
        id="legacy.batch-initialize", family="legacy", severity=1, gate=False, check=_beside(batch_initialize=_initialize),
        statement="initialize in an array is refused.",
        source="MCP basic/lifecycle of the revision with batches, Initialization: the initialize request must not be part of a batch",
        hint="no other message of the array could be served before initialize is over",
        until=eras.LATEST_HANDSHAKE,
    ),
)  # fmt: skip
