"""What a case is worth: one that passes with any tool list, also with one whose words are swapped, says nothing of the list. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from mcpfactory_pipeline.evaluation.attempt import Setting
from mcpfactory_pipeline.evaluation.model_report import ModelReport
from mcpfactory_pipeline.evaluation.retrieval import case_rank, rank_tools
from mcpfactory_pipeline.evaluation.rewording import DAMAGES, reword
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase

__all__ = ["LISTS", "CaseWorth", "found_worth", "model_worth"]

LISTS: Final = ("own", *DAMAGES)
"""The words that lists are asked with: the server's own, and those of `DAMAGES`."""

_NEAR: Final = 3  # places within which a tool counts as found
_HALF: Final = 0.5  # of the times that a case must pass, so that it counts as passed


@dataclass(frozen=True, slots=True)
class CaseWorth:
    """How a case fared with each list (the share that passed), and what follows: `tells`, `worthless`, `restraint` or `fails`."""

    case: str
    passed: Mapping[str, float]
    worth: str

    @property
    def words(self) -> str:
        """What the worth means."""
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
    """Return what each case is worth by a report that has every list of `LISTS`, in the profile and mode that it begins with."""
    first = report.settings[0]
    settings = {words: Setting(first.profile, first.mode, words) for words in LISTS}
    return [
        _judged(case, {words: report.case_rate(setting, case.name).rate for words, setting in settings.items()})
        for case in cases
    ]


def found_worth(cases: Sequence[EvaluationCase], tools: Sequence[Mapping[str, Any]]) -> list[CaseWorth]:
    """Return what each case is worth where no model is asked: whether the search index finds its tools near the top of each list."""
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
