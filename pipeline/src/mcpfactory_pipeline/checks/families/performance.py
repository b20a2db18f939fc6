"""Rules over what a server costs to run. The limits are policy's: where none is set, a figure is reported and never a fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mcpfactory_pipeline.checks.evidence import Evidence, measure
from mcpfactory_pipeline.checks.rule import Check, Fault, Rule, RuleOutcome, not_applicable, not_checked, rule_outcome
from mcpfactory_pipeline.plan.gates import COSTS

__all__ = ["RULES"]


def _within(limit: str, fault: Callable[[Evidence, int], Fault]) -> Check:
    """Return the check that a figure is within a limit; `fault` makes the message and the proof."""

    def check(evidence: Evidence) -> RuleOutcome:
        most = evidence.limits.get(limit)
        if most is None:
            return not_applicable(f"no policy sets {limit}")
        value = measure(evidence).get(COSTS[limit])
        if value is None:
            return not_checked(f"{COSTS[limit]} could not be measured")
        return rule_outcome(1, [fault(evidence, value)] if value > most else ())

    return check


def _start(evidence: Evidence, value: int) -> Fault:
    starts = [f"{start.purpose}: {start.milliseconds} ms" for start in evidence.starts if start.answered]
    words = f"the first answer took {value} ms, {evidence.limits['max_start_ms']:g} are allowed"
    return Fault(words, proof={"starts": "\n".join(starts)})


def _call(evidence: Evidence, value: int) -> Fault:
    answered = [call for call in evidence.calls if call.exchange.received is not None]
    slowest = max(answered, key=lambda call: call.exchange.milliseconds)
    words = f"calls took {value} ms (the median), {evidence.limits['max_call_ms']:g} are allowed"
    return Fault(f"{words}; the slowest took {slowest.exchange.milliseconds} ms", slowest.tool, slowest.exchange)


def _memory(evidence: Evidence, value: int) -> Fault:
    peaks = [f"{start.purpose}: {round(start.memory / 1024)} MB" for start in evidence.starts if start.memory]
    words = f"a process took {value} MB, {evidence.limits['max_memory_mb']:g} are allowed"
    return Fault(words, proof={"peaks": "\n".join(peaks)})


_SOURCE: Final = "the policy of this workspace, or --limit"

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="performance.start", family="performance", severity=1, gate=False, check=_within("max_start_ms", _start),
        statement="The first answer comes within the max_start_ms of policy; of several starts the fastest counts.",
        source=_SOURCE,
        hint="import late, and do not wait for the network before answering",
    ),
    Rule(
        id="performance.calls", family="performance", severity=1, gate=False, check=_within("max_call_ms", _call),
        statement="Tool calls take at most the max_call_ms of policy; the median counts.",
        source=_SOURCE,
        hint="keep connections open between calls, and do at start what every call does again",
    ),
    Rule(
        id="performance.memory", family="performance", severity=1, gate=False, check=_within("max_memory_mb", _memory),
        statement="No process takes more memory than the max_memory_mb of policy, with all calls that were made of it (stdio, Linux).",
        source=_SOURCE,
        hint="compare the peaks: a session with calls that takes more than one without keeps something of every call",
    ),
)  # fmt: skip
