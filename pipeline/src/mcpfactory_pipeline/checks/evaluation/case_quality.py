"""Measure the quality of evaluation cases, and propose new cases. Pure.

A case proves little if it still passes with swapped tool names or descriptions.

Proposals are in a separate folder, and no model gets them. A proposed question repeats the words of the tool's
description, so a search finds the tool too easily. To accept a proposal, a person rewords the question, makes the
arguments realistic, and moves the case.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import yaml

from mcpfactory_pipeline.checks.evaluation.judgment import Attempt, ModelRunSetting
from mcpfactory_pipeline.checks.evaluation.model_report import ModelReport
from mcpfactory_pipeline.checks.evaluation.offered_tools import SearchModeTools, case_rank, rank_tools
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase
from mcpfactory_runtime.schemas.walk import map_schema

DISTORTIONS: Final[Mapping[str, str]] = {
    "shuffled": "each tool has the title and description of another one, and its arguments have none",
    "renamed": "each tool has the name of another one",
    "swapped": "each tool has the name and descriptions of another one, but its own argument names",
}

_TEXTS: Final = ("title", "description")


def distort_tool_list(tools: Sequence[Mapping[str, Any]], words: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the list with swapped descriptions or names, and a map from each shown name to the real tool.

    Each tool swaps with the tool half a list away, because neighbors are often similar.

    Args:
        tools: the tools as the server lists them.
        words: `own` for no change, or a key of `DISTORTIONS`.
    """
    if words == "own":
        return [dict(tool) for tool in tools], {}
    half = len(tools) // 2
    givers = [tools[(number + half) % len(tools)] for number in range(len(tools))]
    pairs = list(zip(tools, givers, strict=True))
    shown = [dict(tool) if words == "renamed" else _with_texts(tool, giver) for tool, giver in pairs]
    if words == "shuffled":
        return shown, {}
    named = [{**tool, "name": giver["name"]} for tool, (_, giver) in zip(shown, pairs, strict=True)]
    return named, {str(giver["name"]): str(tool["name"]) for tool, giver in pairs}


def _with_texts(tool: Mapping[str, Any], giver: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in tool.items() if key not in _TEXTS}
    own["inputSchema"] = _without_texts(tool["inputSchema"])
    return own | {key: giver[key] for key in _TEXTS if key in giver}


def _without_texts(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    kept = {key: value for key, value in schema.items() if key not in {*_TEXTS, "examples"}}
    return map_schema(kept, _without_texts)


LISTS: Final = ("own", *DISTORTIONS)
"""Variants of the tool list: the server's own names and descriptions, and each kind of `DISTORTIONS`."""

_NEAR: Final = 3  # number of top search results that must include the tool
_HALF: Final = 0.5  # minimum share of successful attempts for a case to pass


@dataclass(frozen=True, slots=True)
class CaseQuality:
    """Pass rate of a case with each tool list, and the conclusion `tells`, `worthless`, `restraint` or `fails`."""

    case: str
    passed: Mapping[str, float]
    worth: str

    @property
    def words(self) -> str:
        """Return the meaning of the worth as text."""
        hurt = [name for name in DISTORTIONS if self.passed[name] < _HALF]
        return {
            "tells": f"tells lists apart: fails with the {' and the '.join(hurt)} one",
            "worthless": "worthless: passes with any tool names and descriptions",
            "restraint": "tests only restraint, not the list: no tool fits",
            "fails": "fails with the current list: correct the case, or the tools",
        }[self.worth]

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "passed": dict(self.passed), "words": self.words}


def _judged(case: EvaluationCase, passed: Mapping[str, float]) -> CaseQuality:
    if not case.right:
        return CaseQuality(case.name, passed, "restraint")
    if passed["own"] < _HALF:
        return CaseQuality(case.name, passed, "fails")
    return CaseQuality(case.name, passed, "tells" if any(passed[name] < _HALF for name in DISTORTIONS) else "worthless")


def rate_cases_from_report(cases: Sequence[EvaluationCase], report: ModelReport) -> list[CaseQuality]:
    """Return the worth of each case, from a report's first profile and mode with results for all `LISTS`."""
    first = report.settings[0]
    settings = {words: ModelRunSetting(first.profile, first.mode, words) for words in LISTS}
    return [
        _judged(case, {words: report.case_rate(setting, case.name).rate for words, setting in settings.items()})
        for case in cases
    ]


def rate_cases_by_search(cases: Sequence[EvaluationCase], tools: Sequence[Mapping[str, Any]]) -> list[CaseQuality]:
    """Return the worth of each case without a model: from the ranks of its tools in a search of each list."""
    lists = {words: distort_tool_list(tools, words) for words in LISTS}
    found = []
    for case in cases:
        ways = [[call.tool for call in way] for way in case.right]
        passed = {}
        for words, (listed, stands_for) in lists.items():
            ranked = [stands_for.get(name, name) for name in rank_tools(listed, case.question)]
            rank = case_rank(ways, ranked[:_NEAR])
            passed[words] = float(rank is not None or not ways)
        found.append(_judged(case, passed))
    return found


_REWORD: Final = "reword the question as people ask, without the document's words, and correct the arguments"
_HEAD: Final = """\
# Proposals of `mcpfactory evaluate NAME --propose`, overwritten each time. No model is asked these questions.
# To accept one: follow its comments, then move it below `cases:` of a file in evals/.
"""


@dataclass(frozen=True, slots=True)
class ProposedCase:
    """Proposed case that awaits review.

    `origin` is the source of the case; `doubt` is the question for the reviewer.
    """

    name: str
    question: str
    right: Sequence[Mapping[str, Any]]
    origin: str
    doubt: str


def example_arguments_by_tool(cases: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return tool → arguments from the examples of the API document (`tests/_generated/cases.json`)."""
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
    """Propose a case for each tool without a case, and for each new call sequence that a model completed."""
    expected = {call.tool for case in cases for way in case.right for call in way}
    taken = {case.name for case in cases}
    machinery = SearchModeTools(tools).machinery
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
            doubt = f"is this another right way? Then add it to `right` of {one.case}, which has the same question"
            yield ProposedCase(title, case.question, way, f"what {report.model} did about {one.case}", doubt)


def _way(attempt: Attempt) -> list[Mapping[str, Any]]:
    calls = [call for call in attempt.calls if not call.machinery]
    if attempt.verdict in {"refused", "unfinished", "unanswered"} or any(call.failed for call in calls):
        return []
    return [{"tool": call.tool, "arguments": dict(call.arguments or {})} for call in calls]


def _unique(name: str, taken: set[str]) -> str:
    plain = "-".join("".join(char if char.isalnum() else " " for char in name).split())[:70] or "case"
    found, number = plain, 2
    while found in taken:
        found, number = f"{plain}-{number}", number + 1
    taken.add(found)
    return found


def proposals_text(proposals: Sequence[ProposedCase]) -> str:
    """Return the proposal file. A comment above each case gives the origin and the question for the reviewer."""
    lines = [_HEAD + ("proposals:" if proposals else "proposals: []")]
    for one in proposals:
        lines += [f"  # From {one.origin}.", f"  # To decide: {one.doubt}."]
        entry = {"name": one.name, "question": one.question, "right": [[dict(call) for call in one.right]]}
        text = yaml.safe_dump([entry], sort_keys=False, allow_unicode=True, width=140)
        lines += [f"  {line}" for line in text.splitlines()]
    return "\n".join(lines) + "\n"
