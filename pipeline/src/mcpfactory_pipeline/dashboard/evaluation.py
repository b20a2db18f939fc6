"""What models made of a server: pass rates, which tool was chosen where which was expected, and what did not pass. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_pipeline.dashboard.facts import ServerDetail
from mcpfactory_pipeline.dashboard.values import shorten

if TYPE_CHECKING:
    from mcpfactory_pipeline.evaluation.attempt import Setting
    from mcpfactory_pipeline.evaluation.model_report import ModelReport

__all__ = [
    "ChoiceView",
    "EvaluatedCase",
    "EvaluatedFailure",
    "EvaluatedModel",
    "EvaluatedPage",
    "EvaluatedSetting",
    "WrongField",
    "evaluated_page",
]

_FAILURES: Final = 50  # shown of one setting
_TEXT: Final = 300


@dataclass(frozen=True, slots=True)
class ChoiceView:
    """A row of the confusion matrix: how often the expected tool was chosen, and which others were, the most often first."""

    expected: str
    right: int
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WrongField:
    """An argument that was wrong: `missing`, `different`, `extra`, or `unreadable` for all of them."""

    tool: str
    field: str
    kind: str
    times: int


@dataclass(frozen=True, slots=True)
class EvaluatedCase:
    """One question: how often it passed of how often it was asked."""

    case: str
    question: str
    passed: int
    asked: int


@dataclass(frozen=True, slots=True)
class EvaluatedFailure:
    """One time that a question did not pass: why, which tools were called, and what the model said at last."""

    case: str
    verdict: str
    about: str
    faults: tuple[str, ...]
    calls: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class EvaluatedSetting:
    """What came of one way to offer the tools. Rates are percentages, `lower` and `upper` the interval of 95 %."""

    title: str
    tools: int
    tokens: int
    rate: float
    lower: float
    upper: float
    questions: int
    missing: int
    read: int
    written: int
    cost: str
    seconds: float
    choices: tuple[ChoiceView, ...]
    wrong: tuple[WrongField, ...]
    cases: tuple[EvaluatedCase, ...]
    failures: tuple[EvaluatedFailure, ...]
    failures_total: int


@dataclass(frozen=True, slots=True)
class EvaluatedModel:
    """The recorded report of one model. `gate` says what it means for the newest candidate, "" where no gate asks for it."""

    model: str
    endpoint: str
    asked: str
    repeat: int
    gate: str
    settings: tuple[EvaluatedSetting, ...]


@dataclass(frozen=True, slots=True)
class EvaluatedPage:
    """The reports beside the cases of a server; `problem` says why they cannot be read, "" as a rule."""

    workspace: str
    server: str
    problem: str
    models: tuple[EvaluatedModel, ...]


def evaluated_page(detail: ServerDetail, reports: Sequence[ModelReport], problem: str = "") -> EvaluatedPage:
    """Return what the reports say."""
    newest = detail.state.get("candidates", {}).get(detail.state.get("candidate") or "", {})
    known = newest.get("checks", {}).get("evaluate", {}).get("summary", {}).get("models", {})
    models = [_model(report, known.get(report.model)) for report in reports]
    return EvaluatedPage(detail.facts.workspace, detail.facts.name, problem, tuple(models))


def _model(report: ModelReport, known: Mapping[str, Any] | None) -> EvaluatedModel:
    settings = tuple(_setting(report, one) for one in report.settings)
    return EvaluatedModel(
        report.model, report.endpoint, report.asked.isoformat(), report.repeat, _gate(known), settings
    )


def _gate(known: Mapping[str, Any] | None) -> str:
    if known is None:
        return ""
    if why := known.get("why"):
        return f"does not count for the newest candidate: {why}"
    return f"counts for the newest candidate with {float(known.get('lower', 0)):.0%}"


def _setting(report: ModelReport, setting: Setting) -> EvaluatedSetting:
    tools, tokens = report.lists[setting]
    rate, usage, cost, failures = (
        report.rate(setting),
        report.usage(setting),
        report.cost(setting),
        report.failures(setting),
    )
    return EvaluatedSetting(
        title=setting.title,
        tools=tools,
        tokens=tokens,
        rate=round(100 * rate.rate, 1),
        lower=round(100 * rate.lower, 1),
        upper=round(100 * rate.upper, 1),
        questions=rate.questions,
        missing=report.missing(setting),
        read=usage.read,
        written=usage.written,
        cost="" if cost is None or report.prices is None else f"{cost:.4f} {report.prices.currency}",
        seconds=round(report.seconds(setting), 2),
        choices=_choices(report, setting),
        wrong=tuple(
            WrongField(tool, name, kind, times)
            for (tool, name, kind), times in sorted(report.wrong_arguments(setting).items())
        ),
        cases=tuple(_case(report, setting, case) for case in report.questions),
        failures=_failures(report, setting),
        failures_total=len(failures),
    )


def _choices(report: ModelReport, setting: Setting) -> tuple[ChoiceView, ...]:
    rows: dict[str, dict[str, int]] = {}
    for (expected, chosen), times in report.confusion(setting).items():
        rows.setdefault(expected, {})[chosen] = times
    return tuple(
        ChoiceView(
            expected,
            chosen.get(expected, 0),
            tuple(
                f"{name} × {times}"
                for name, times in sorted(chosen.items(), key=lambda one: (-one[1], one[0]))
                if name != expected
            ),
        )
        for expected, chosen in sorted(rows.items())
    )


def _case(report: ModelReport, setting: Setting, case: str) -> EvaluatedCase:
    attempts = report.of(setting, case)
    passed = sum(one.verdict == "passed" for one in attempts)
    return EvaluatedCase(case, report.questions[case], passed, len(attempts))


def _failures(report: ModelReport, setting: Setting) -> tuple[EvaluatedFailure, ...]:
    from mcpfactory_pipeline.evaluation.attempt import VERDICTS  # noqa: PLC0415 - only this page needs the evaluation

    return tuple(
        EvaluatedFailure(
            one.case,
            one.verdict,
            VERDICTS[one.verdict],
            tuple(shorten(fault, _TEXT) for fault in one.faults),
            tuple(call.tool for call in one.calls),
            shorten(one.text, _TEXT),
        )
        for one in report.failures(setting)[:_FAILURES]
    )
