"""Rules and the outcomes of their checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mcpfactory_pipeline.checks.exchange import WireExchange

if TYPE_CHECKING:
    from mcpfactory_pipeline.checks.evidence import Evidence

Severity = Literal[5, 3, 2, 1]


@dataclass(frozen=True, slots=True)
class Fault:
    """One problem found by a rule.

    `where` names the tool and field, or the message. `exchange` is the evidence, or `proof` if there was no exchange
    (such as text on stdout). `lesser` replaces the rule's severity for a tolerated deviation: it costs fewer points
    and never closes a gate. `hint` replaces the rule's hint.
    """

    message: str
    where: str = ""
    exchange: WireExchange | None = None
    proof: Mapping[str, str] | None = None
    lesser: Severity | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """Result of a check: faults over a number of subjects, or the reason for having no result.

    `inapplicable` excludes the rule from the score; `unknown` counts it as not passed.
    """

    faults: tuple[Fault, ...] = ()
    subjects: int = 1
    inapplicable: str = ""
    unknown: str = ""


Check = Callable[["Evidence"], RuleOutcome]
FindFaults = Callable[[WireExchange], Iterator[Fault]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One requirement, its source, and its check.

    `severity` is its weight (5 an unusable server, 3 a broken requirement, 2 a disadvantage for the model, 1 a
    recommendation); a failed `gate` makes the server not promotable at any score. `since` and `until` are revisions
    (both included, "" is open): the rule applies if the server speaks one of them. `ceiling` is the maximum score if
    all subjects of a server break the rule: a good description must not raise the score of a server that does not
    start or work.
    """

    id: str
    severity: Severity
    statement: str
    source: str
    hint: str
    check: Check
    gate: bool = False
    since: str = ""
    until: str = ""
    ceiling: int = 100

    @property
    def family(self) -> str:
        """The first part of the id."""
        return self.id.partition(".")[0]


def rule_outcome(subjects: int, faults: Iterable[Fault]) -> RuleOutcome:
    """Return the outcome of looking at `subjects` things (0: the rule does not apply)."""
    if subjects == 0:
        return not_applicable("there is nothing to look at")
    return RuleOutcome(tuple(faults), subjects)


def first_each(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Yield the first fault of each place: twenty calls without resultType are one finding."""
    seen: set[str] = set()
    for fault in faults:
        if fault.where not in seen:
            seen.add(fault.where)
            yield fault


def not_applicable(reason: str) -> RuleOutcome:
    """Return the outcome "not applicable"."""
    return RuleOutcome(inapplicable=reason)


def not_checked(reason: str) -> RuleOutcome:
    """Return the outcome "not checked": the rule applies, but compliance is unknown."""
    return RuleOutcome(unknown=reason)
