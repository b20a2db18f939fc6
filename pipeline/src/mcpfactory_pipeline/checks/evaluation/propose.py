"""Proposals for evaluation cases, from tool descriptions, declared workflows, and recorded model behavior. Pure.

Proposals are in a separate folder under another heading, and are not asked. A proposed question repeats the
document's words, which make the tool too easy to find; a person rewords it, makes the arguments realistic, and moves
the case to the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from mcpfactory_pipeline.checks.evaluation.judgement import Attempt
from mcpfactory_pipeline.checks.evaluation.model_report import ModelReport
from mcpfactory_pipeline.checks.evaluation.offer import SearchTools
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase

_REWORD: Final = "put it as people ask, without the document's words, and correct the arguments"
_HEAD: Final = """\
# Proposals of `mcpfactory evaluate NAME --propose`, written anew each time. None of them is asked.
# To accept one: put its question as people ask, correct what the comment says, and move it below `cases:` of a file in evals/.
"""


@dataclass(frozen=True, slots=True)
class ProposedCase:
    """Proposed case that awaits review; `origin` is its source, `doubt` the question to decide."""

    name: str
    question: str
    right: Sequence[Mapping[str, Any]]
    origin: str
    doubt: str


def example_calls(cases: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return arguments for each tool from what code generation made of the document's examples (`tests/_generated/cases.json`)."""
    found: dict[str, Mapping[str, Any]] = {}
    for one in cases.get("cases", ()):
        required = [variant for variant in one.get("variants", ()) if variant.get("title") == "required arguments only"]
        found.setdefault(str(one["tool"]), (required or [one])[0].get("arguments") or {})
    return found


def propose_cases(
    tools: Sequence[Mapping[str, Any]],
    cases: Sequence[EvaluationCase],
    *,
    examples: Mapping[str, Mapping[str, Any]],
    workflows: Collection[str] = (),
    reports: Iterable[ModelReport] = (),
) -> list[ProposedCase]:
    """Return a proposal for each tool that no case expects, and for each other way that a model went to its end.

    Args:
        tools: of the server.
        cases: that it has.
        examples: arguments by tool.
        workflows: names of the tools that are declared workflows.
        reports: of models.
    """
    expected = {call.tool for case in cases for way in case.right for call in way}
    taken = {case.name for case in cases}
    machinery = SearchTools(tools).machinery
    found = []
    for tool in tools:
        name = str(tool["name"])
        if name in expected or name in machinery:
            continue
        title = _unique(name.lower().replace("_", "-"), taken)
        origin = f"the declared workflow {name}" if name in workflows else f"what {name} says of itself"
        call = {"tool": name, "arguments": dict(examples.get(name, {}))}
        question = str(tool.get("description") or tool.get("title") or name).split("\n", 1)[0]
        found.append(ProposedCase(title, question, [call], origin, _REWORD))
    return [*found, *_other_ways(cases, reports, taken)]


def _other_ways(
    cases: Sequence[EvaluationCase], reports: Iterable[ModelReport], taken: set[str]
) -> Iterator[ProposedCase]:
    known, seen = {case.name: case for case in cases}, set()
    for report in reports:
        for one in report.attempts:
            case, way = known.get(one.case), _way(one)
            mark = (one.case, str(way))
            if case is None or not way or one.verdict == "passed" or one.setting.words != "own" or mark in seen:
                continue
            seen.add(mark)
            title = _unique(f"{one.case}-otherwise", taken)
            doubt = f"is this another right way? Then add it to `right` of {one.case}, which says the same question"
            yield ProposedCase(title, case.question, way, f"what {report.model} did about {one.case}", doubt)


def _way(attempt: Attempt) -> list[Mapping[str, Any]]:
    """Return the calls of an attempt that came to an end without a failure; none else."""
    calls = [call for call in attempt.calls if not call.machinery]
    if attempt.verdict in {"refused", "unfinished", "unanswered"} or any(call.failed for call in calls):
        return []
    return [{"tool": call.tool, "arguments": dict(call.arguments or {})} for call in calls]


def _unique(name: str, taken: set[str]) -> str:
    """Return a name that no case has, and take it."""
    plain = "-".join("".join(char if char.isalnum() else " " for char in name).split())[:70] or "case"
    found, number = plain, 2
    while found in taken:
        found, number = f"{plain}-{number}", number + 1
    taken.add(found)
    return found


def proposals_text(proposals: Sequence[ProposedCase]) -> str:
    """Return the proposal file: entries in the format of cases, each below its origin and open question."""
    lines = [_HEAD + ("proposals:" if proposals else "proposals: []")]
    for one in proposals:
        lines += [f"  # From {one.origin}.", f"  # To decide: {one.doubt}."]
        entry = {"name": one.name, "question": one.question, "right": [[dict(call) for call in one.right]]}
        text = yaml.safe_dump([entry], sort_keys=False, allow_unicode=True, width=140)
        lines += [f"  {line}" for line in text.splitlines()]
    return "\n".join(lines) + "\n"
