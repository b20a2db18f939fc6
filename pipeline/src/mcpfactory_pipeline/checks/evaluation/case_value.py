"""Value of evaluation cases: a case that also passes with swapped tool names or texts proves little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from mcpfactory_pipeline.checks.evaluation.judgement import Setting
from mcpfactory_pipeline.checks.evaluation.model_report import ModelReport
from mcpfactory_pipeline.checks.evaluation.offer import case_rank, rank_tools
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase

DAMAGES: Final[Mapping[str, str]] = {
    "shuffled": "each tool has the title and description of another one, and its arguments have none",
    "renamed": "each tool has the name of another one",
    "swapped": "each tool has all of these of another one: only the names of its arguments are its own",
}

_TEXTS: Final = ("title", "description")
_NAMED: Final = ("properties", "$defs", "definitions", "patternProperties")  # their members have custom names


def reword(tools: Sequence[Mapping[str, Any]], words: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the list with swapped texts or names, and shown name → tool where they differ.

    Each tool swaps with the one half a list away: none keeps its texts, and neighbors, which are often similar, never
    swap.

    Args:
        tools: as the server lists them.
        words: `own` changes nothing; the others are those of `DAMAGES`.
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
    """Return a schema without titles, descriptions and examples; arguments with names such as `title` are kept."""
    if isinstance(schema, list):
        return [_without_texts(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: {name: _without_texts(one) for name, one in value.items()}
        if key in _NAMED and isinstance(value, Mapping)
        else _without_texts(value)
        for key, value in schema.items()
        if key not in {*_TEXTS, "examples"}
    }


LISTS: Final = ("own", *DAMAGES)
"""The words that lists are asked with: the server's own, and those of `DAMAGES`."""

_NEAR: Final = 3  # places within which a tool counts as found
_HALF: Final = 0.5  # of the times that a case must pass, so that it counts as passed


@dataclass(frozen=True, slots=True)
class CaseWorth:
    """Share of passes of a case with each list, and the conclusion: `tells`, `worthless`, `restraint` or `fails`."""

    case: str
    passed: Mapping[str, float]
    worth: str

    @property
    def words(self) -> str:
        """Return the meaning of the worth."""
        hurt = [name for name in DAMAGES if self.passed[name] < _HALF]
        return {
            "tells": f"tells lists apart: fails with the {' and the '.join(hurt)} one",
            "worthless": "worthless: passes whatever the tools are called and say",
            "restraint": "shows restraint, and nothing of the list: no tool fits",
            "fails": "fails with the list as it is: correct the case, or the tools",
        }[self.worth]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "passed": dict(self.passed), "words": self.words}


def _judged(case: EvaluationCase, passed: Mapping[str, float]) -> CaseWorth:
    if not case.right:
        return CaseWorth(case.name, passed, "restraint")
    if passed["own"] < _HALF:
        return CaseWorth(case.name, passed, "fails")
    return CaseWorth(case.name, passed, "tells" if any(passed[name] < _HALF for name in DAMAGES) else "worthless")


def model_worth(cases: Sequence[EvaluationCase], report: ModelReport) -> list[CaseWorth]:
    """Return the worth of each case in a report with every list of `LISTS`, in its first profile and mode."""
    first = report.settings[0]
    settings = {words: Setting(first.profile, first.mode, words) for words in LISTS}
    return [
        _judged(case, {words: report.case_rate(setting, case.name).rate for words, setting in settings.items()})
        for case in cases
    ]


def found_worth(cases: Sequence[EvaluationCase], tools: Sequence[Mapping[str, Any]]) -> list[CaseWorth]:
    """Return the worth of each case without a model, from the ranks of its tools in a search index of each list."""
    lists = {words: reword(tools, words) for words in LISTS}
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
