"""Rules and the outcomes of their checks.

A module of rules has one `RuleTable`; a decorator gives each check its id, severity and texts. A check reads the whole
`Evidence`. With `over`, a check reads one subject at a time: a tool, a call, or the answer to a probe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Required, TypedDict, TypeVar, Unpack, overload

from mcpfactory_pipeline.checks.exchange import WireExchange

if TYPE_CHECKING:
    from mcpfactory_pipeline.checks.evidence import Evidence

Severity = Literal[5, 3, 2, 1]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """One problem that a rule found.

    `where` names the place of the problem: the tool and field, or the message. The evidence is `exchange`; without an
    exchange, it is `proof` (such as text on stdout). `lesser` replaces the rule's severity for a tolerated deviation. A
    tolerated deviation costs fewer points and never closes a gate. `hint` replaces the rule's hint.
    """

    message: str
    where: str = ""
    exchange: WireExchange | None = None
    proof: Mapping[str, str] | None = None
    lesser: Severity | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """Result of a check: the faults and the number of subjects, or the reason for a missing result.

    `inapplicable` excludes the rule from the score. `unknown` counts the rule as not passed.
    """

    faults: tuple[Fault, ...] = ()
    subjects: int = 1
    inapplicable: str = ""
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class RuleSubjects(Generic[T]):
    """Items that a rule checks one by one.

    A fault costs the rule's points divided by `count` (default: the number of items).

    If `once` is set, only the first fault at each place counts: twenty results without resultType are one finding.
    """

    items: Sequence[T]
    count: int | None = None
    once: bool = False


Check = Callable[["Evidence"], RuleOutcome]
Scope = Callable[["Evidence"], RuleSubjects[T] | RuleOutcome]
"""Function that returns the subjects of a rule, or the rule's outcome if the evidence has no subject."""


class SubjectCheck(Protocol[T]):
    """Decorator for a function that checks one subject.

    A check with a second parameter also gets the whole evidence.
    """

    @overload
    def __call__(self, check: Callable[[T], Iterator[Fault]]) -> Callable[[T], Iterator[Fault]]: ...

    @overload
    def __call__(self, check: Callable[[T, Evidence], Iterator[Fault]]) -> Callable[[T, Evidence], Iterator[Fault]]: ...


class JudgingScope(Protocol[T]):
    """Scope that selects subjects and also judges them, such as answers to probes."""

    def __call__(self, evidence: Evidence) -> RuleSubjects[T] | RuleOutcome:
        """Return the subjects, or the rule's outcome if there are no subjects."""

    def faults(self, subject: T) -> Iterator[Fault]:
        """Yield the faults of a subject."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One requirement, its source, and its check.

    `severity` is 5 for an unusable server, 3 for a broken requirement, 2 for a disadvantage for models, 1 for a
    recommendation. If a rule with `gate` fails, the server is not promotable at any score. The rule applies if the
    server speaks a revision from `since` to `until`, both included. "" means no limit.
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

    @property
    def family(self) -> str:
        """The first part of the id."""
        return self.id.partition(".")[0]


class RuleFields(TypedDict, total=False):
    """Fields of `Rule` that a decorator takes as keyword arguments."""

    statement: Required[str]
    source: Required[str]
    hint: Required[str]
    gate: bool
    since: str
    until: str


class RuleTable(list[Rule]):
    """Rules in the order of their checks. `since` and `until` are the defaults for rules that do not set them."""

    def __init__(self, *, since: str = "", until: str = "") -> None:
        self._since = since
        self._until = until

    @overload
    def rule(self, id: str, severity: Severity, **fields: Unpack[RuleFields]) -> Callable[[Check], Check]: ...

    @overload
    def rule(self, id: str, severity: Severity, *, over: Scope[T], **fields: Unpack[RuleFields]) -> SubjectCheck[T]: ...

    def rule(
        self,
        id: str,  # noqa: A002 - the name of the field of `Rule`
        severity: Severity,
        *,
        over: Scope[Any] | None = None,
        **fields: Unpack[RuleFields],
    ) -> Callable[[Any], Any]:
        """Return a decorator that adds a rule to the table and leaves its check unchanged."""
        fields.setdefault("since", self._since)
        fields.setdefault("until", self._until)

        def decorate(check: Any) -> Any:
            judge = check if over is None else _each(over, check)
            self.append(Rule(id=id, severity=severity, check=judge, **fields))
            return check

        return decorate

    def row(self, id: str, severity: Severity, *, over: JudgingScope[Any], **fields: Unpack[RuleFields]) -> None:  # noqa: A002 - the name in `Rule`
        """Add a rule with a scope that also judges its subjects."""
        self.rule(id, severity, over=over, **fields)(over.faults)


def _each(scope: Scope[Any], find: Callable[..., Iterator[Fault]]) -> Check:
    with_evidence = len(signature(find).parameters) > 1

    def check(evidence: Evidence) -> RuleOutcome:
        subjects = scope(evidence)
        if isinstance(subjects, RuleOutcome):
            return subjects
        more = (evidence,) if with_evidence else ()
        faults = (fault for one in subjects.items for fault in find(one, *more))
        count = len(subjects.items) if subjects.count is None else subjects.count
        return rule_outcome(count, _first_each(faults) if subjects.once else faults)

    return check


def rule_outcome(subjects: int, faults: Iterable[Fault]) -> RuleOutcome:
    """Return the outcome for a number of subjects; with 0 subjects, the rule does not apply."""
    if subjects == 0:
        return not_applicable("there is nothing to check")
    return RuleOutcome(tuple(faults), subjects)


def _first_each(faults: Iterable[Fault]) -> Iterator[Fault]:
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
