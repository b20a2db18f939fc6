"""Subjects of rules: observations that a rule checks one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_pipeline.checks.evidence import Evidence, RecordedCall
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.probes import NOTHING_TO_ASK, PROBES, Probe
from mcpfactory_pipeline.checks.rule import Fault, RuleOutcome, RuleSubjects, not_applicable, not_checked

_NONE_CALLED: Final = "no tool could be called: none is marked readOnlyHint, and there are no cases"


def missing_lifecycle_outcome(evidence: Evidence, lifecycle: str = "") -> RuleOutcome | None:
    """Return None if the server speaks the lifecycle ("" for any); else return the outcome of rules about it."""
    if not evidence.lifecycles:
        return not_checked("the server speaks no revision")
    if lifecycle and lifecycle not in evidence.lifecycles:
        return not_applicable(f"the server does not speak the {lifecycle} lifecycle")
    return None


def missing_tools_outcome(evidence: Evidence) -> RuleOutcome | None:
    """Return None if the server has tools; else return the outcome of rules about tools."""
    if evidence.tools:
        return None
    listing = evidence.lists.get("tools/list")
    if listing is None:
        why = evidence.missing.get("tools/list")
        return not_checked(why) if why else not_applicable("the server declares no tools")
    return not_checked(listing.problem) if listing.problem else not_applicable("the server lists no tools")


def missing_calls_outcome(evidence: Evidence) -> RuleOutcome | None:
    """Return None if tools were called; else return the outcome of rules about calls."""
    if (reason := missing_tools_outcome(evidence)) is not None:
        return reason
    if not evidence.answers:
        return not_checked(evidence.missing.get("tools/call", _NONE_CALLED))
    return None


def missing_cases_outcome(evidence: Evidence) -> RuleOutcome | None:
    """Return None if tools were called with cases; else return the outcome of rules about cases."""
    return missing_calls_outcome(evidence) if evidence.with_cases else not_applicable("there are no cases")


@dataclass(frozen=True, slots=True)
class ProbeScope:
    """The exchange of a probe, for servers with the probe's lifecycle and capability.

    `given` returns an outcome if the rule does not apply, otherwise None. `stored` names the exchange to use instead of
    the probe's own, such as the ping after the probe.
    """

    probe: Probe
    given: Callable[[Evidence], RuleOutcome | None] = lambda _evidence: None
    stored: str = ""

    def __call__(self, evidence: Evidence) -> RuleSubjects[WireExchange] | RuleOutcome:
        """Return the exchange, or the outcome of the rule if no exchange exists."""
        probe, name = self.probe, self.stored or self.probe.name
        if (reason := self.given(evidence) or missing_lifecycle_outcome(evidence, probe.lifecycle)) is not None:
            return reason
        if not probe.suits(evidence.capabilities):
            no = "" if probe.capability.startswith("!") else "no "
            return not_applicable(f"the server declares {no}{probe.capability.removeprefix('!')}")
        if evidence.missing.get(name) == NOTHING_TO_ASK:
            return not_applicable(NOTHING_TO_ASK)
        exchange = evidence.probes.get(name)
        return not_checked(evidence.missing_reason(name)) if exchange is None else RuleSubjects([exchange])

    def faults(self, exchange: WireExchange) -> Iterator[Fault]:
        """Yield how the answer differs from the expected answer."""
        return self.probe.faults(exchange)


def probed(
    name: str, *, given: Callable[[Evidence], RuleOutcome | None] = lambda _evidence: None, stored: str = ""
) -> ProbeScope:
    """Return the scope of the probe with this name."""
    return ProbeScope(PROBES[name], given, stored)


@dataclass(frozen=True, slots=True)
class ProbeScopes:
    """The exchanges of several probes; the first scope decides whether the rule applies, and the others may be missing."""

    scopes: tuple[ProbeScope, ...]

    def __call__(self, evidence: Evidence) -> RuleSubjects[tuple[ProbeScope, WireExchange]] | RuleOutcome:
        """Return each exchange with its scope, or the outcome of the rule if the first exchange is missing."""
        first = self.scopes[0](evidence)
        if isinstance(first, RuleOutcome):
            return first
        sent = [(one, evidence.probes.get(one.stored or one.probe.name)) for one in self.scopes]
        return RuleSubjects([(one, exchange) for one, exchange in sent if exchange is not None])

    def faults(self, sent: tuple[ProbeScope, WireExchange]) -> Iterator[Fault]:
        """Yield how an answer differs from the expected answer."""
        scope, exchange = sent
        yield from scope.faults(exchange)


def tools_as_subjects(evidence: Evidence) -> RuleSubjects[tuple[str, Any]] | RuleOutcome:
    """Return (name, tool) of every named tool as a subject."""
    return missing_tools_outcome(evidence) or RuleSubjects(evidence.named_tools)


def calls_as_subjects(calls: Iterable[RecordedCall], *, once: bool = False) -> RuleSubjects[RecordedCall]:
    """Return calls as subjects of a rule; each tool counts once.

    If `once` is set, only the first fault of each tool counts.
    """
    found = list(calls)
    return RuleSubjects(found, len({call.tool for call in found}), once)
