"""Tools that were confused, with the texts of both and the questions that confused them: what a person, or their agent, rewrites. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mcpfactory_pipeline.evaluation.competition import CompetingPair, competing_tools
from mcpfactory_pipeline.evaluation.model_report import ModelReport

__all__ = ["ConfusedPair", "confused_pairs"]


@dataclass(frozen=True, slots=True)
class ConfusedPair:
    """A tool that was called in the place of another.

    Attributes:
        expected, chosen: the names of both.
        texts: their titles and descriptions now, by name; "" for a tool that is gone.
        questions: in which it happened, each with how often.
        models: which did it; none where the pair is only known by its texts.
        advice: what to write.
    """

    expected: str
    chosen: str
    texts: Mapping[str, str]
    questions: Mapping[str, int]
    models: Sequence[str]
    advice: str

    @property
    def times(self) -> int:
        """How often it happened."""
        return sum(self.questions.values())

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "texts": dict(self.texts), "questions": dict(self.questions), "times": self.times}


def confused_pairs(tools: Sequence[Mapping[str, Any]], reports: Iterable[ModelReport]) -> list[ConfusedPair]:
    """Return the pairs that models confused, the most often first; then those whose texts compete and that nobody confused yet."""
    about = {str(tool["name"]): _text(tool) for tool in tools}
    competing = {frozenset(one.tools): one for one in competing_tools(tools)}
    counted: dict[tuple[str, str], tuple[Counter[str], list[str]]] = {}
    for report in reports:
        for pair, cases in report.confused().items():
            questions, models = counted.setdefault(pair, (Counter(), []))
            questions.update(report.questions.get(case, case) for case in cases)
            models.append(report.model)
    found = [
        ConfusedPair(
            expected,
            chosen,
            {name: about.get(name, "") for name in (expected, chosen)},
            dict(questions),
            models,
            _advice(expected, chosen, competing.get(frozenset((expected, chosen)))),
        )
        for (expected, chosen), (questions, models) in counted.items()
    ]
    known = {frozenset((one.expected, one.chosen)) for one in found}
    quiet = [
        ConfusedPair(*one.tools, {name: about[name] for name in one.tools}, {}, (), f"{one.why}: {one.advice}")
        for pair, one in competing.items()
        if pair not in known
    ]
    return [*sorted(found, key=lambda one: (-one.times, one.expected, one.chosen)), *quiet]


def _advice(expected: str, chosen: str, competing: CompetingPair | None) -> str:
    if competing is not None:
        return f"{competing.why}: {competing.advice}"
    return f"begin {expected} with what these questions ask for; say in {chosen} when to take {expected}"


def _text(tool: Mapping[str, Any]) -> str:
    return "\n".join(str(tool[key]) for key in ("title", "description") if tool.get(key))
