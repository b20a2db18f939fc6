"""What a model did, as text: rows for a terminal, and a page in Markdown that is kept beside the cases. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from mcpfactory_codegen.text import markdown_text
from mcpfactory_pipeline.evaluation.attempt import VERDICTS, Setting
from mcpfactory_pipeline.evaluation.model_report import ModelReport
from mcpfactory_pipeline.evaluation.summary import markdown_table

__all__ = [
    "CASE_HEADER",
    "CONFUSION_HEADER",
    "SETTING_HEADER",
    "WRONG_HEADER",
    "against_rows",
    "confusion_rows",
    "failure_rows",
    "model_case_rows",
    "model_page",
    "setting_rows",
    "wrong_rows",
]

SETTING_HEADER: Final = (
    "profile, mode", "tools", "tokens of the list", "pass rate (95 %)", "questions", "read", "written", "turns", "seconds", "cost",
)  # fmt: skip
CASE_HEADER: Final = ("case", "passed", "interval", "what else")
CONFUSION_HEADER: Final = ("expected", "chosen", "times")
WRONG_HEADER: Final = ("tool", "argument", "is", "times")
_SHOWN: Final = 40  # failures


def setting_rows(report: ModelReport) -> list[tuple[str, ...]]:
    """Return a row for each setting: the pass rate with its interval, and what it cost."""
    rows: list[tuple[str, ...]] = []
    for one in report.settings:
        tools, tokens = report.lists[one]
        usage, rate, missing = report.usage(one), report.rate(one), report.missing(one)
        asked = f"{rate.questions} × {report.repeat}" + (f", {missing} unanswered" if missing else "")
        counts = (f"{usage.read:,}", f"{usage.written:,}", f"{report.turns(one):.1f}", f"{report.seconds(one):.2f}")
        rows.append((one.title, str(tools), str(tokens), rate.words, asked, *counts, _cost(report, one)))
    return rows


def model_case_rows(report: ModelReport, setting: Setting) -> list[tuple[str, ...]]:
    """Return a row for each case: how often it passed, the interval of that, and what came instead."""
    rows: list[tuple[str, ...]] = []
    for case in report.questions:
        attempts, rate = report.of(setting, case), report.case_rate(setting, case)
        passed = sum(one.verdict == "passed" for one in attempts)
        counts = Counter(one.verdict for one in attempts if one.verdict != "passed")
        others = ", ".join(f"{name} {count}" if count > 1 else name for name, count in sorted(counts.items()))
        interval = f"{100 * rate.lower:.0f}–{rate.upper:.0%}" if rate.questions else ""
        rows.append((case, f"{passed}/{len(attempts)}", interval, others))
    return rows


def confusion_rows(report: ModelReport, setting: Setting) -> list[tuple[str, ...]]:
    """Return the cells of the confusion matrix that are not empty: what was expected, what was chosen, how often."""
    return [
        (expected, "the same" if expected == chosen else chosen, str(times))
        for (expected, chosen), times in sorted(report.confusion(setting).items())
    ]


def wrong_rows(report: ModelReport, setting: Setting) -> list[tuple[str, ...]]:
    """Return a row for each argument that was wrong."""
    found = report.wrong_arguments(setting)
    return [(tool, name or "all", kind, str(times)) for (tool, name, kind), times in sorted(found.items())]


def failure_rows(report: ModelReport, setting: Setting) -> list[tuple[str, ...]]:
    """Return a row for each attempt that did not pass: case, verdict, what was wrong."""
    return [(one.case, one.verdict, "; ".join(one.faults)) for one in report.failures(setting)]


def against_rows(report: ModelReport, earlier: ModelReport | None) -> list[tuple[str, ...]]:
    """Return what is compared: settings with the first one, and all with an earlier report."""
    rows: list[tuple[str, ...]] = []
    first, *others = report.settings
    for one in others:
        found = report.against(one, report, first)
        rows.append((f"{one.title} against {first.title}", found.words, str(found.questions), _sure(found.sure)))
    for one in report.settings if earlier is not None else ():
        assert earlier is not None
        if one in earlier.lists:
            found = report.against(one, earlier)
            title = f"{one.title} against {earlier.model} of {earlier.asked}"
            rows.append((title, found.words, str(found.questions), _sure(found.sure)))
    return rows


def _sure(sure: bool) -> str:
    return "yes" if sure else "may be chance"


def _cost(report: ModelReport, setting: Setting) -> str:
    cost = report.cost(setting)
    return "" if cost is None or report.prices is None else f"{cost:.4f} {report.prices.currency}"


def model_page(report: ModelReport, earlier: ModelReport | None = None) -> str:
    """Return the page."""
    return "\n".join(_lines(report, earlier)) + "\n"


def _lines(report: ModelReport, earlier: ModelReport | None) -> Iterator[str]:
    yield f"# {report.server}, answered by {markdown_text(report.model)}"
    yield ""
    place = f" at `{report.endpoint}`" if report.endpoint else ""
    yield f"Written by `mcpfactory evaluate {report.server} --model {report.model} --report`{place} on {report.asked}."
    yield "The interval is over the questions: how often each was asked does not narrow it."
    yield ""
    yield from markdown_table(SETTING_HEADER, setting_rows(report))
    if compared := against_rows(report, earlier):
        yield ""
        yield from markdown_table(("difference", "points (95 %)", "questions", "beyond chance"), compared)
    for setting in report.settings:
        yield from _setting_lines(report, setting)


def _setting_lines(report: ModelReport, setting: Setting) -> Iterator[str]:
    yield ""
    yield f"## {setting.title}"
    yield ""
    yield from markdown_table(CASE_HEADER, model_case_rows(report, setting))
    yield ""
    yield "Which tool was chosen where which was expected:"
    yield ""
    yield from markdown_table(CONFUSION_HEADER, confusion_rows(report, setting))
    if wrong := wrong_rows(report, setting):
        yield ""
        yield "Arguments that were wrong:"
        yield ""
        yield from markdown_table(WRONG_HEADER, wrong)
    if failures := failure_rows(report, setting):
        yield ""
        yield "What did not pass:"
        yield ""
        for case, verdict, faults in failures[:_SHOWN]:
            yield f"- {case}: {VERDICTS[verdict]}: {markdown_text(faults)}"
        if len(failures) > _SHOWN:
            yield f"- and {len(failures) - _SHOWN} more, in the JSON beside this page"
