"""What a rule is, and what its check may answer."""

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
    """One thing that a rule found wrong.

    `where` names the tool and field, or the message. `exchange` is the evidence, or `proof` where
    there is none (what stood on stdout, say). `lesser` replaces the rule's severity for a deviation that is
    tolerated: it costs fewer points and never closes a gate. `hint` replaces the rule's.
    """

    message: str
    where: str = ""
    exchange: WireExchange | None = None
    proof: Mapping[str, str] | None = None
    lesser: Severity | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """What a check answers: faults over a number of subjects, or why there is nothing to say.

    `inapplicable` takes the rule out of the score; `unknown` leaves it in as not passed.
    """

    faults: tuple[Fault, ...] = ()
    subjects: int = 1
    inapplicable: str = ""
    unknown: str = ""


Check = Callable[["Evidence"], RuleOutcome]


@dataclass(frozen=True, slots=True)
class Rule:
    """One requirement, where it comes from, and how it is checked.

    `severity` is what it weighs (5 a server that cannot be used, 3 a broken requirement, 2 a disadvantage for the model,
    1 a recommendation); a failed `gate` means that the server is not promotable whatever its score. `since` and `until`
    are revisions (both included, "" is open): the rule applies when the server speaks one of them. `ceiling` is the highest
    score of a server of which everything breaks the rule: what does not start, or does nothing, is worth no more for being described well.
    """

    id: str
    family: str
    severity: Severity
    gate: bool
    statement: str
    source: str
    hint: str
    check: Check
    since: str = ""
    until: str = ""
    ceiling: int = 100


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
    """Return the rule says nothing about this server."""
    return RuleOutcome(inapplicable=reason)


def not_checked(reason: str) -> RuleOutcome:
    """Return the rule applies, and whether it is kept could not be found out."""
    return RuleOutcome(unknown=reason)
