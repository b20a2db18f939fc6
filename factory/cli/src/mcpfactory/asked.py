"""`mcpfactory evaluate --model`: asks a model, shows what it did, and says with the exit code whether that is enough."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from mcpfactory import output
from mcpfactory.exits import Exit
from mcpfactory.progress import progress

if TYPE_CHECKING:
    from mcpfactory_pipeline.evaluation import Attempt, EvaluationCase, ModelReport
    from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

__all__ = ["AskWish", "ask_model", "show_report"]

_JOBS: Final = 2  # questions that a model is asked at once


@dataclass(frozen=True, slots=True)
class AskWish:
    """What was typed about a model."""

    model: str
    endpoint: str = ""
    repeat: int = 1
    modes: Sequence[str] = ("full",)
    profiles: Sequence[str] = ("full",)
    check: bool = False
    timeout: float = 60.0
    max_cost: float | None = None
    minimum: float = 0.0
    against: Path | None = None
    keep: bool = False
    as_json: bool = False


def ask_model(
    workspace: Workspace, server: WorkspaceServer, cases: Sequence[EvaluationCase], wish: AskWish
) -> ModelReport:
    """Ask the model every case in every setting, and return what it did. Progress is shown meanwhile."""
    from mcpfactory_pipeline.base.errors import ConfigError
    from mcpfactory_pipeline.evaluation import (
        LISTS,
        AskOptions,
        Setting,
        ask_cases,
        find_endpoint,
        read_evaluation,
        read_prices,
    )

    known = read_evaluation(workspace).endpoints.get(wish.model, {})
    endpoint = find_endpoint(wish.model, known, url=wish.endpoint, timeout=wish.timeout)
    prices = read_prices(known)
    if wish.max_cost is not None and prices is None:
        raise ConfigError(
            f"nobody says what {wish.model} costs, so --max-cost bounds nothing",
            hint=f'[pipeline.evaluation.endpoints."{wish.model}"] read = … and written = …, for a million tokens',
        )
    lists = LISTS if wish.check else LISTS[:1]
    settings = [Setting(profile, mode, words) for profile in wish.profiles for mode in wish.modes for words in lists]
    options = AskOptions(settings, wish.repeat, _JOBS, wish.timeout, prices, wish.max_cost)
    total, passed, done, spent = len(cases) * len(settings) * wish.repeat, 0, 0, 0.0
    with progress(quiet=wish.as_json) as step:

        def count(one: Attempt) -> None:
            nonlocal passed, done, spent
            done, passed = done + 1, passed + (one.verdict == "passed")
            spent += prices.of(one.usage) if prices else 0.0
            cost = f", {spent:.4f} {prices.currency}" if prices else ""
            step(f"{done} of {total} asked, {passed} passed{cost}; {one.case}: {one.verdict}")

        step(f"{total} questions for {wish.model}")
        return asyncio.run(ask_cases(server, cases, endpoint, options, on_attempt=count))


def show_report(server: WorkspaceServer, report: ModelReport, wish: AskWish) -> None:
    """Print or keep the report, and end with 1 where it is not good enough, with 7 where not all was answered."""
    from mcpfactory_pipeline.evaluation import load_report, write_report
    from mcpfactory_pipeline.evaluation.model_page import against_rows

    earlier = load_report(wish.against) if wish.against else None
    if wish.keep:
        file = write_report(server.folder, report)
        if not wish.as_json:
            output.note(f"kept: {file.relative_to(server.folder)} of {server.name}, and a page beside it")
    compared = against_rows(report, earlier)
    if wish.as_json:
        names = ("what", "difference", "questions", "beyond_chance")
        output.data({**report.to_json(), "compared": [dict(zip(names, row, strict=True)) for row in compared]})
    else:
        _print(report, compared)
    low = [one for one in report.settings if report.rate(one).lower < wish.minimum and one.words == "own"]
    for one in low:
        output.error(
            f"{one.title}: the lower bound of the pass rate is {report.rate(one).lower:.0%}, "
            f"at least {wish.minimum:.0%} wanted"
        )
    missing = sum(report.missing(one) for one in report.settings)
    if missing:
        output.error(f"{missing} questions have no answer: the report does not count", _why_missing(report, wish))
    if low or missing:
        raise typer.Exit(Exit.NO if low else Exit.NOT_SHOWN)


def _why_missing(report: ModelReport, wish: AskWish) -> str:
    silent = [one.faults[0] for one in report.attempts if not one.answered]
    return silent[-1] if silent else f"--max-cost {wish.max_cost:g} was spent: allow more, or ask less often"


def _print(report: ModelReport, compared: Sequence[Sequence[str]]) -> None:
    from mcpfactory_pipeline.evaluation import model_page as page

    output.table(page.SETTING_HEADER, page.setting_rows(report))
    for setting in report.settings:
        output.line()
        output.line(setting.title)
        output.table(page.CASE_HEADER, page.model_case_rows(report, setting))
        mistaken = [row for row in page.confusion_rows(report, setting) if row[1] != "the same"]
        if mistaken:
            output.line()
            output.table(page.CONFUSION_HEADER, mistaken)
        if wrong := page.wrong_rows(report, setting):
            output.line()
            output.table(page.WRONG_HEADER, wrong)
        for case, verdict, faults in page.failure_rows(report, setting):
            output.line(f"{case}: {verdict}: {faults}")
    if compared:
        output.line()
        output.table(("difference", "points (95 %)", "questions", "beyond chance"), compared)
