"""Evaluation reports: terminal tables, Markdown pages, and recorded model reports."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.text import escape_markdown
from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.checks.evaluation.evaluation import CaseOutcome, Evaluation
from mcpfactory_pipeline.checks.evaluation.judgment import VERDICTS, ModelRunSetting
from mcpfactory_pipeline.checks.evaluation.model_report import ModelReport, hash_cases, hash_shown_tools, read_report
from mcpfactory_pipeline.checks.evaluation.offered_tools import WITHIN, random_hit_probability
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase


def case_rows(found: Evaluation) -> list[tuple[str, ...]]:
    """Return a row per case: its name, the rank of its tools in each mode, and the result of its calls."""
    rows = []
    for name in dict.fromkeys(one.case for one in found.outcomes):
        own = {one.mode: one for one in found.outcomes if one.case == name}
        places = [_place(own[mode].rank, bool(own[mode].ways)) for mode in found.lists]
        rows.append((name, *places, _calls(list(own.values()))))
    return rows


def retrieval_rate_rows(found: Evaluation) -> list[tuple[str, ...]]:
    """Return a row per mode, with its list and the cases that a search found, and a row for random guesses."""
    rows = []
    for mode, listed in found.lists.items():
        judged = len(found.judged(mode))
        shares = [f"{found.found(mode, within)}/{judged}" for within in WITHIN]
        rows.append((mode, str(listed.tools), str(listed.tokens), *shares))
    tools = found.lists["full"].tools
    rows.append(("by chance", "", "", *(f"{random_hit_probability(tools, within):.0%}" for within in WITHIN)))
    return rows


def evaluation_markdown(found: Evaluation) -> str:
    """Return the Markdown page; equal servers and cases give equal pages."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Evaluation) -> Iterator[str]:
    yield f"# Evaluation of {found.server}"
    yield ""
    yield f"Written by `mcpfactory evaluate {found.server} --report`; no model was asked. Profile `{found.profile}`."
    yield ""
    yield from markdown_table(
        ("mode", "tools", "tokens", *(f"within {within}" for within in WITHIN)), retrieval_rate_rows(found)
    )
    yield ""
    yield "Within 5: cases whose question alone finds all tools of a right way among the first five tools."
    yield ""
    yield "## Cases"
    yield ""
    questions = {one.case: one.question for one in found.outcomes}
    header = ("case", "question", *(f"place, {mode}" for mode in found.lists), "calls")
    yield from markdown_table(header, [(row[0], questions[row[0]], *row[1:]) for row in case_rows(found)])
    for fault in found.faults:
        yield f"\n- {escape_markdown(fault)}"
    yield ""
    yield "## Tools that compete"
    yield ""
    if found.competing:
        rows = [(f"{one.tools[0]}, {one.tools[1]}", one.why, one.advice) for one in found.competing]
        yield from markdown_table(("tools", "why", "what to write"), rows)
    else:
        yield "None: no two tools have the same words, or each says when to take the other."
    if found.expensive:
        yield ""
        yield "## Tools that cost much"
        yield ""
        yield from markdown_table(
            ("tool", "tokens", "share"), [(one.tool, str(one.tokens), f"{one.share:.0%}") for one in found.expensive]
        )


def _calls(own: Sequence[CaseOutcome]) -> str:
    if not any(one.ways for one in own):
        return "no tool fits"
    if not all(one.answered for one in own):
        return "wrong"
    return "right" if all(one.called for one in own) else "fit"


def _place(rank: int | None, judged: bool) -> str:
    return "" if not judged else "not found" if rank is None else str(rank)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(escape_markdown(cell) for cell in row) + " |"


SETTING_HEADER: Final = (
    "profile, mode", "tools", "tokens of the list", "pass rate (95 %)", "questions", "read", "written", "turns", "seconds", "cost",
)  # fmt: skip
CASE_HEADER: Final = ("case", "passed", "interval", "what else")
CONFUSION_HEADER: Final = ("expected", "chosen", "times")
WRONG_HEADER: Final = ("tool", "argument", "is", "times")
_SHOWN: Final = 40  # maximum number of failures in a report


def model_setting_rows(report: ModelReport) -> list[tuple[str, ...]]:
    """Return a row per setting: the pass rate with its interval, and the cost."""
    rows: list[tuple[str, ...]] = []
    for one in report.settings:
        tools, tokens = report.lists[one]
        usage, rate, missing = report.usage(one), report.rate(one), report.missing(one)
        asked = f"{rate.questions} × {report.repeat}" + (f", {missing} unanswered" if missing else "")
        counts = (f"{usage.read:,}", f"{usage.written:,}", f"{report.turns(one):.1f}", f"{report.seconds(one):.2f}")
        rows.append((one.title, str(tools), str(tokens), rate.words, asked, *counts, _cost(report, one)))
    return rows


def model_case_rows(report: ModelReport, setting: ModelRunSetting) -> list[tuple[str, ...]]:
    """Return a row per case: its pass rate with the interval, and the other results."""
    rows: list[tuple[str, ...]] = []
    for case in report.questions:
        attempts, rate = report.of(setting, case), report.case_rate(setting, case)
        passed = sum(one.verdict == "passed" for one in attempts)
        counts = Counter(one.verdict for one in attempts if one.verdict != "passed")
        others = ", ".join(f"{name} {count}" if count > 1 else name for name, count in sorted(counts.items()))
        interval = f"{100 * rate.lower:.0f}–{rate.upper:.0%}" if rate.questions else ""
        rows.append((case, f"{passed}/{len(attempts)}", interval, others))
    return rows


def confusion_rows(report: ModelReport, setting: ModelRunSetting) -> list[tuple[str, ...]]:
    """Return (expected tool, called tool, count) for each non-empty cell of the confusion matrix."""
    return [
        (expected, "the same" if expected == chosen else chosen, str(times))
        for (expected, chosen), times in sorted(report.confusion(setting).items())
    ]


def wrong_argument_rows(report: ModelReport, setting: ModelRunSetting) -> list[tuple[str, ...]]:
    """Return a row per wrong argument."""
    found = report.wrong_arguments(setting)
    return [(tool, name or "all", kind, str(times)) for (tool, name, kind), times in sorted(found.items())]


def failed_attempt_rows(report: ModelReport, setting: ModelRunSetting) -> list[tuple[str, ...]]:
    """Return a row per failed attempt: case, verdict, faults."""
    return [(one.case, one.verdict, "; ".join(one.faults)) for one in report.failures(setting)]


def comparison_rows(report: ModelReport, earlier: ModelReport | None) -> list[tuple[str, ...]]:
    """Return rows that compare each setting with the first setting, and with an earlier report of the setting."""
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


def _cost(report: ModelReport, setting: ModelRunSetting) -> str:
    cost = report.cost(setting)
    return "" if cost is None or report.prices is None else f"{cost:.4f} {report.prices.currency}"


def model_report_markdown(report: ModelReport) -> str:
    """Return the page."""
    return "\n".join(_model_lines(report)) + "\n"


def _model_lines(report: ModelReport) -> Iterator[str]:
    yield f"# {report.server}, answered by {escape_markdown(report.model)}"
    yield ""
    place = f" at `{report.endpoint}`" if report.endpoint else ""
    yield f"Written by `mcpfactory evaluate {report.server} --model {report.model} --report`{place} on {report.asked}."
    yield "The interval is over the questions; repetitions do not narrow it."
    yield ""
    yield from markdown_table(SETTING_HEADER, model_setting_rows(report))
    if compared := comparison_rows(report, None):
        yield ""
        yield from markdown_table(("difference", "points (95 %)", "questions", "beyond chance"), compared)
    for setting in report.settings:
        yield from _setting_lines(report, setting)


def _setting_lines(report: ModelReport, setting: ModelRunSetting) -> Iterator[str]:
    yield ""
    yield f"## {setting.title}"
    yield ""
    yield from markdown_table(CASE_HEADER, model_case_rows(report, setting))
    yield ""
    yield "Tools chosen instead of the expected ones:"
    yield ""
    yield from markdown_table(CONFUSION_HEADER, confusion_rows(report, setting))
    if wrong := wrong_argument_rows(report, setting):
        yield ""
        yield "Wrong arguments:"
        yield ""
        yield from markdown_table(WRONG_HEADER, wrong)
    if failures := failed_attempt_rows(report, setting):
        yield ""
        yield "Failed attempts:"
        yield ""
        for case, verdict, faults in failures[:_SHOWN]:
            yield f"- {case}: {VERDICTS[verdict]}: {escape_markdown(faults)}"
        if len(failures) > _SHOWN:
            yield f"- and {len(failures) - _SHOWN} more, in the JSON beside this page"


REPORTS: Final = Path("evals", "reports")
PROPOSALS: Final = Path("evals", "proposals", "proposed.yaml")
"""File of proposed cases; no model gets a case before its review."""

Tool = Mapping[str, Any]

_OTHER: Final = re.compile(r"[^A-Za-z0-9.]+")


def report_file(folder: Path, model: str) -> Path:
    """Return the path of a model's report about the server in `folder`."""
    return folder / REPORTS / f"{_OTHER.sub('-', model).strip('-.')}.json"


def write_model_report(folder: Path, report: ModelReport) -> Path:
    """Write the report and its page, and return the path of the report."""
    file = report_file(folder, report.model)
    replace_file(file, (json.dumps(report.to_json(), indent=1, ensure_ascii=False) + "\n").encode())
    replace_file(file.with_suffix(".md"), model_report_markdown(report).encode())
    return file


def load_model_report(file: Path) -> ModelReport:
    """Read a report from a file.

    Raises:
        StateError: the file is unreadable or invalid.
    """
    try:
        text = file.read_bytes()
    except OSError as error:
        raise StateError(f"{file} cannot be read: {error.strerror}", hint="give a file in evals/reports") from error
    return read_report(text, str(file))


def read_model_reports(folder: Path) -> list[ModelReport]:
    """Return the reports about the server in `folder`, sorted by file name.

    Raises:
        StateError: a report cannot be read.
    """
    return [load_model_report(file) for file in sorted((folder / REPORTS).glob("*.json"))]


def judge_recorded_report(
    folder: Path,
    server: str,
    model: str,
    mode: str,
    *,
    tools: Sequence[Tool],
    cases: Sequence[EvaluationCase],
    endpoint: str = "",
) -> dict[str, Any]:
    """Return the result of a model's recorded report for a tool list and its cases.

    The result has `rate`, `lower`, `upper`, `questions` and `asked`. If the report does not apply, the result has only
    the reason, as `why`. A report does not apply to other tools, other cases, or another `endpoint` than the
    workspace's.

    Raises:
        StateError: the report cannot be read.
    """
    file, setting = report_file(folder, model), ModelRunSetting(mode=mode)
    if not file.is_file():
        return {"why": "no report is recorded"}
    report = load_model_report(file)
    if (report.server, report.model) != (server, model):
        return {"why": f"its report is about {report.server} and {report.model}"}
    if report.tools != hash_shown_tools(tools):
        return {"why": "its report is about another tool list"}
    if report.cases != hash_cases(cases):
        return {"why": "its report is about other cases"}
    if endpoint and report.endpoint != endpoint:
        return {"why": "its report is about another endpoint than the workspace names"}
    if setting not in report.lists:
        return {"why": f"its report does not include {setting.title}"}
    if missing := report.missing(setting):
        return {"why": f"in its report {missing} questions have no answer"}
    return {**report.rate(setting).to_json(), "asked": report.asked.isoformat()}
