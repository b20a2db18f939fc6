"""Root causes of findings: effects of another finding are reported under it, so that one defect is one finding.

An effect costs no points. It is reported separately if its cause is waived, or if it closes a gate and its cause does
not: an error in the table must not hide the reason for a refusal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from mcpfactory_pipeline.checks.rule import Fault, Rule

Found = tuple[Rule, Fault]
Match = Literal["tool", "exchange", "unanswered", "anywhere", "unchecked"]


@dataclass(frozen=True, slots=True)
class Cascade:
    """Rule for the effects of a finding of the rule `cause`.

    The effects are findings of `effects` (rules, or prefixes such as `legacy.`) that `match` it. `tool`: about the
    same tool. `exchange`: with the same exchange as evidence. `unanswered`: findings whose request got no answer, and
    rules that could not be checked for that reason. `anywhere`: all of them. `unchecked`: only rules that could not
    be checked.
    """

    cause: str
    effects: tuple[str, ...]
    match: Match


_ABOUT_TOOLS: Final = ("schemas.", "descriptions.", "behaviour.", "content.", "substance.", "robustness.", "security.")

CASCADES: Final[tuple[Cascade, ...]] = (
    Cascade("startup.starts", ("",), "unchecked"),
    Cascade("startup.speaks", ("",), "unchecked"),
    Cascade("startup.stdout", ("legacy.", "modern.", "lists.", "features.", *_ABOUT_TOOLS), "unanswered"),
    Cascade("lists.tools", _ABOUT_TOOLS, "unchecked"),
    Cascade("schemas.tool-shape", ("behaviour.", "content.", "substance."), "unchecked"),
    Cascade("behaviour.answers", ("behaviour.", "content.", "substance."), "unchecked"),
    Cascade("behaviour.tools-work", ("behaviour.output", "content.", "substance."), "unchecked"),
    Cascade("behaviour.tools-work", ("behaviour.finished", "behaviour.cases"), "anywhere"),
    Cascade("behaviour.requests", ("behaviour.cases",), "tool"),
    Cascade("behaviour.read-only", ("behaviour.requests",), "tool"),
    Cascade("modern.input-required", ("lists.",), "exchange"),
    Cascade("modern.error-codes", ("features.",), "exchange"),
    Cascade("legacy.survives", ("legacy.params", "legacy.not-rpc"), "unanswered"),
    Cascade("legacy.survives", ("legacy.",), "unchecked"),
)


def find_causes(found: Sequence[Found], tools: Collection[str]) -> dict[int, int]:
    """Return for each finding that follows from another (by its index) the index of the first cause.

    Args:
        found: the faults that count, each with its rule.
        tools: the names of the listed tools.
    """
    parents: dict[int, int] = {}
    for row in CASCADES:
        if row.match == "unchecked":
            continue
        causes = [at for at, (rule, _) in enumerate(found) if rule.id == row.cause]
        keyed = _keyed(row.match, causes, found, tools)
        for at, (rule, fault) in enumerate(found if keyed else ()):
            cause = keyed.get(_key(row.match, fault, tools)) if _is_one_of(rule.id, row.effects) else None
            if cause is not None and at != cause and _closes(found[cause]) >= _closes(found[at]):
                parents.setdefault(at, cause)
    return {at: _root(at, parents) for at in parents}


def unchecked_cause(rule: Rule, reason: str, found: Sequence[Found]) -> int | None:
    """Return the index of the finding that prevented the check of a rule, or None."""
    matches = ("unchecked", "unanswered") if reason.startswith("no answer") else ("unchecked",)
    rows = [row for row in CASCADES if row.match in matches and _is_one_of(rule.id, row.effects)]
    return next(
        (
            at
            for row in rows
            for at, (cause, fault) in enumerate(found)
            if cause.id == row.cause and cause.id != rule.id and _closes((cause, fault)) >= rule.gate
        ),
        None,
    )


def tool_of(where: str, tools: Collection[str]) -> str:
    """Return the tool that a place is in, the longest that fits: `search`, `search inputSchema/…`, `search.word`, `search/silence`; "" for none."""
    lengths = sorted({len(name) for name in tools if 0 < len(name) <= len(where)}, reverse=True)
    ends = (at for at in lengths if where[at : at + 1] in ("", " ", ".", "/"))
    return next((where[:at] for at in ends if where[:at] in tools), "")


def subject_of(where: str, tools: Collection[str]) -> str:
    """Return the subject that a rule counts: the tool (`search`, `search inputSchema/…`), or the place.

    It is the place for an argument, and outside of tools.
    """
    tool = tool_of(where, tools)
    return tool if tool and where[len(tool) : len(tool) + 1] in ("", " ") else where


def _keyed(match: Match, causes: Sequence[int], found: Sequence[Found], tools: Collection[str]) -> Mapping[object, int]:
    """Return a map from the property that an effect shares with a cause to that cause."""
    if match in ("anywhere", "unanswered"):
        return {True: causes[0]} if causes else {}
    return {key: at for at in reversed(causes) if (key := _key(match, found[at][1], tools)) is not None}


def _key(match: Match, fault: Fault, tools: Collection[str]) -> object:
    if match == "tool":
        return subject_of(fault.where, tools)
    if match == "exchange":
        return None if fault.exchange is None else id(fault.exchange)
    return match == "anywhere" or (fault.exchange is not None and fault.exchange.received is None)


def _is_one_of(rule: str, effects: tuple[str, ...]) -> bool:
    return any(rule == one or ((one.endswith(".") or not one) and rule.startswith(one)) for one in effects)


def _closes(found: Found) -> bool:
    rule, fault = found
    return rule.gate and fault.lesser is None


def _root(at: int, parents: Mapping[int, int]) -> int:
    while at in parents:
        at = parents[at]
    return at
