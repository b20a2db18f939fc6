"""Rules about repeated calls: with explicit defaults, after other calls or failures, in parallel, or canceled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from mcpfactory_pipeline.checks.evidence import AnswerDuringSlowCall, CallComparison, Evidence, answer_text
from mcpfactory_pipeline.checks.exchange import LATEST_HANDSHAKE, QUICK, WireExchange
from mcpfactory_pipeline.checks.rule import Fault, RuleOutcome, RuleSubjects, RuleTable, Scope, not_applicable

RULES: Final = RuleTable()
rule = RULES.rule


def _compared(
    *kinds: Literal["default", "later", "overlap", "failures", "consumed", "repeated"],
) -> Scope[CallComparison]:
    """Return a scope that selects comparisons of the given kinds with a stable result in both situations."""

    def scope(evidence: Evidence) -> RuleSubjects[CallComparison] | RuleOutcome:
        found = [one for one in evidence.comparisons if one.kind in kinds and _agree(one.usual) and _agree(one.others)]
        if not found:
            return not_applicable("no read-only tool gave the same result when it was called twice")
        return RuleSubjects(found, len({one.tool for one in found}), once=True)

    return scope


def _agree(exchanges: Sequence[WireExchange]) -> bool:
    return all(one.outcome == exchanges[0].outcome for one in exchanges)


def _differs(one: CallComparison) -> bool:
    return bool(one.others[0].outcome != one.usual[0].outcome)


def _both(one: CallComparison) -> str:
    return f"{_said(one.others[0])} instead of {_said(one.usual[0])}"


def _is_unanswered(exchange: WireExchange) -> bool:
    return exchange.received is None and exchange.status in (0, 200)


def _said(exchange: WireExchange) -> str:
    return repr(answer_text(exchange)[:80])


@rule("tool-calls.defaults", 2, over=_compared("default"),
      statement="A call without an argument gives the same result as a call with the default of its schema.",
      source="JSON Schema Validation §9.2: default supplies a value; models rely on it and omit the argument",
      hint="use one constant for the default in the schema and in the handler")  # fmt: skip
def _defaults(one: CallComparison) -> Iterator[Fault]:
    key = one.title.partition("=")[0]
    echoed = key in str(one.others[0].outcome) and key not in str(one.usual[0].outcome)
    if _differs(one) and not echoed and one.others[0].received is not None:
        words = f"with the default {one.title}, the result is {_both(one)}"
        yield Fault(words, one.tool, one.others[0])


@rule("tool-calls.side-effects", 3, over=_compared("later", "consumed"),
      statement="Calls of tools with readOnlyHint do not change what these tools return.",
      source="MCP schema, ToolAnnotations.readOnlyHint: such a tool does not modify its environment",
      hint="repeat the calls in the report to find the tool that writes; remove its readOnlyHint or the write")  # fmt: skip
def _side_effects(one: CallComparison) -> Iterator[Fault]:
    if not _differs(one) or one.others[0].failed:  # an API may limit the number of calls
        return
    if one.kind == "consumed":  # the later results may come from a cache
        yield Fault(
            f"only the first of three equal calls has another result: {_both(one)}", one.tool, one.others[0], lesser=1
        )
    else:
        yield Fault(f"after calls of other read-only tools, the result is {_both(one)}", one.tool, one.others[0])


@rule("tool-calls.idempotent", 2, over=_compared("repeated"),
      statement="A second equal call of a tool with idempotentHint does not change the results of read-only tools.",
      source="MCP schema, ToolAnnotations.idempotentHint: repeated calls have no additional effect; clients retry them",
      hint="remove the hint, or recognize a repeated call by its arguments")  # fmt: skip
def _idempotent(one: CallComparison) -> Iterator[Fault]:
    if _differs(one):
        yield Fault(f"a second call changed the result of {one.title}: {_both(one)}", one.tool, one.others[0])


@rule("tool-calls.overlapping", 3, gate=True, over=_compared("overlap"),
      statement=("Each of two simultaneous calls gets its own result. A result that belongs to neither of the two "
                 "calls closes no gate."),
      source="JSON-RPC 2.0 §5: an answer belongs to the request with its id; clients send calls at the same time",
      hint="keep the state and the id of a call in local variables")  # fmt: skip
def _overlapping(one: CallComparison) -> Iterator[Fault]:
    got = one.others[0]
    if _is_unanswered(got):
        yield Fault(f"while another call ran, the call got no answer: {got.problem}", one.tool, got)
    elif got.failed and not one.usual[0].failed:
        return  # a server may limit the number of calls
    elif _differs(one) and one.rival is not None and got.outcome == one.rival.outcome:
        yield Fault(f"of two simultaneous calls, one got the result of the other: {_both(one)}", one.tool, got)
    elif _differs(one):
        yield Fault(f"while another call ran, the result is {_both(one)}", one.tool, got, lesser=2)


@rule("tool-calls.after-failures", 3, over=_compared("failures"),
      statement="After many failed calls, a tool still answers a correct call.",
      source="a failed call must free its connection, file or slot; otherwise the server stops working after some time",
      hint="release resources in a finally block")  # fmt: skip
def _after_failures(one: CallComparison) -> Iterator[Fault]:
    got = one.others[0]
    if _is_unanswered(got):
        yield Fault(f"after calls that failed, the tool gives no answer: {got.problem}", one.tool, got)
    elif got.failed and not one.usual[0].failed:
        words = f"after calls that failed, a call fails that succeeded before: {_both(one)}"
        yield Fault(words, one.tool, got, lesser=2)  # a server may limit the number of calls


def _busy(kind: Literal["ping", "after cancellation"], none: str) -> Scope[AnswerDuringSlowCall]:
    def scope(evidence: Evidence) -> RuleSubjects[AnswerDuringSlowCall] | RuleOutcome:
        found = [one for one in evidence.busy if one.kind == kind]
        return RuleSubjects(found) if found else not_applicable(none)

    return scope


@rule("tool-calls.ping", 3, until=LATEST_HANDSHAKE, over=_busy("ping", "no ping was sent during a call"),
      statement="ping is answered during a call.",
      source="MCP basic/utilities/ping: the receiver must respond promptly; clients close connections that do not answer",
      hint="run slow tools in a thread or as asynchronous tasks")  # fmt: skip
def _ping(one: AnswerDuringSlowCall) -> Iterator[Fault]:
    waited = one.exchange.milliseconds
    if one.exchange.received is None:
        yield Fault(f"during a call of {one.tool}, ping got no answer: {one.exchange.problem}", "ping", one.exchange)
    elif one.call.received is not None and waited > QUICK and waited >= one.call.milliseconds - QUICK / 10:
        yield Fault(f"ping was answered after {waited} ms, when the call of {one.tool} had ended", "ping", one.exchange)


@rule("tool-calls.cancellation", 3, gate=True, over=_busy("after cancellation", "no call was long enough to cancel"),
      statement="After a call is canceled, the next call of the tool is answered.",
      source=("JSON-RPC 2.0 §5: every request gets an answer; MCP basic/utilities/cancellation: a canceled request "
              "frees its resources"),
      hint="release locks and slots in a finally block")  # fmt: skip
def _cancellation(one: AnswerDuringSlowCall) -> Iterator[Fault]:
    if _is_unanswered(one.exchange):
        words = f"after a canceled call, the same call got no answer: {one.exchange.problem}"
        yield Fault(words, one.tool, one.exchange)
