"""Check that questions select the right tools, with or without a model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mcpfactory import output
from mcpfactory.options import AsJson, Name, selected_workspace
from mcpfactory.output import progress
from mcpfactory_runtime.errors import Exit
from mcpfactory_runtime.server.generated.catalog import MODES

if TYPE_CHECKING:
    from mcpfactory_pipeline.checks.evaluation.evaluation import Evaluation
    from mcpfactory_pipeline.checks.evaluation.judgment import Attempt
    from mcpfactory_pipeline.checks.evaluation.model_report import ModelReport
    from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase
    from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer


_COUNTED: Final = 5  # number of top search results that must include the right tool
_PAGE: Final = Path("evals", "report.md")
_REPORTS: Final = Path("evals", "reports")


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """Options of `mcpfactory evaluate`."""

    name: Name
    model: Annotated[
        str,
        typer.Option(
            metavar="KIND:MODEL", help="Ask this model instead of the search: openai:MODEL or anthropic:MODEL"
        ),
    ] = ""
    repeat: Annotated[int, typer.Option(metavar="N", help="Ask each question this number of times", min=1)] = 1
    mode: Annotated[
        list[str] | None,
        typer.Option(
            metavar="full|search",
            help="Show the model all tools (full), or three tools that find, describe and call them (search) (repeatable)",
        ),
    ] = None
    profile: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PROFILE",
            help="Offer only the tools of this profile: full, read-only or a custom profile",
        ),
    ] = None
    max_cost: Annotated[
        float | None,
        typer.Option(metavar="AMOUNT", help="Stop at this total cost, computed from prices in mcpfactory.toml", min=0),
    ] = None
    minimum: Annotated[
        float,
        typer.Option(
            "--min",
            metavar="SHARE",
            help=(
                f"Minimum share (0 to 1) of questions that find the right tool in the first {_COUNTED} results; with "
                "--model: minimum of the pass rate's lower confidence bound"
            ),
            min=0,
            max=1,
        ),
    ] = 0.0
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Compare the results with this earlier --model report"),
    ] = None
    report: Annotated[
        bool,
        typer.Option("--report", help=f"Save a report to {_PAGE}; with --model, to {_REPORTS}/KIND-MODEL.md and .json"),
    ] = False
    check_cases: Annotated[
        bool,
        typer.Option(
            "--check-cases",
            help="Swap tool names and descriptions, and report cases that still pass",
        ),
    ] = False
    suggest: Annotated[
        bool,
        typer.Option(
            "--suggest",
            help=f"Only list the tools that models confused in earlier reports ({_REPORTS})",
        ),
    ] = False
    propose: Annotated[
        bool,
        typer.Option(
            "--propose",
            help="Only propose new cases, based on descriptions, examples, workflows and reports",
        ),
    ] = False
    as_json: AsJson = False

    @property
    def modes(self) -> list[str]:
        """Return the modes for showing tools to the model, without duplicates."""
        return list(dict.fromkeys(self.mode or MODES[:1]))

    @property
    def profiles(self) -> list[str]:
        """Return the tool profiles."""
        return self.profile or ["full"]


def evaluate_model(
    workspace: Workspace, server: WorkspaceServer, cases: Sequence[EvaluationCase], request: EvaluateOptions
) -> ModelReport:
    """Ask the model every case with every mode and profile, and show progress."""
    from mcpfactory_pipeline.base.errors import ConfigError
    from mcpfactory_pipeline.checks.evaluation.case_quality import LISTS
    from mcpfactory_pipeline.checks.evaluation.judgment import ModelRunSetting
    from mcpfactory_pipeline.checks.evaluation.model_endpoint import find_endpoint
    from mcpfactory_pipeline.checks.evaluation.model_report import read_prices
    from mcpfactory_pipeline.checks.evaluation.model_runs import ModelRunOptions, ask_model_cases
    from mcpfactory_pipeline.workspace.settings import EndpointSettings

    known = workspace.settings.pipeline.evaluation.endpoints.get(request.model, EndpointSettings())
    endpoint = find_endpoint(request.model, known)
    prices = read_prices(known)
    if request.max_cost is not None and prices is None:
        raise ConfigError(
            f"--max-cost cannot be applied: the price of {request.model} is unknown",
            hint=(
                "set read = … and written = … (prices per million tokens) in "
                f'[pipeline.evaluation.endpoints."{request.model}"]'
            ),
        )
    lists = LISTS if request.check_cases else LISTS[:1]
    settings = [
        ModelRunSetting(profile, mode, words)
        for profile in request.profiles
        for mode in request.modes
        for words in lists
    ]
    options = ModelRunOptions(settings, request.repeat, prices=prices, max_cost=request.max_cost)
    total, passed, done, spent = len(cases) * len(settings) * request.repeat, 0, 0, 0.0
    with progress(quiet=request.as_json) as step:

        def count(one: Attempt) -> None:
            nonlocal passed, done, spent
            done, passed = done + 1, passed + (one.verdict == "passed")
            spent += prices.of(one.usage) if prices else 0.0
            cost = f", {spent:.4f} {prices.currency}" if prices else ""
            step(f"{done} of {total} asked, {passed} passed{cost}; {one.case}: {one.verdict}")

        step(f"{total} questions for {request.model}")
        return asyncio.run(ask_model_cases(server, cases, endpoint, options, on_attempt=count))


def print_or_write_report(server: WorkspaceServer, report: ModelReport, request: EvaluateOptions) -> None:
    """Print or store the report. Exit with 1 if a pass rate is too low, and with 7 if answers are missing."""
    from mcpfactory_pipeline.checks.evaluation.evaluation_reports import (
        comparison_rows,
        load_model_report,
        write_model_report,
    )

    earlier = load_model_report(request.baseline) if request.baseline else None
    if request.report:
        file = write_model_report(server.folder, report)
        if not request.as_json:
            output.note(f"saved {file.relative_to(server.folder)} of {server.name} and a page next to it")
    compared = comparison_rows(report, earlier)
    if request.as_json:
        names = ("what", "difference", "questions", "beyond_chance")
        output.data({**report.to_json(), "compared": [dict(zip(names, row, strict=True)) for row in compared]})
    else:
        _print(report, compared)
    low = [one for one in report.settings if report.rate(one).lower < request.minimum and one.words == "own"]
    for one in low:
        output.error(
            f"{one.title}: the lower bound of the pass rate is {report.rate(one).lower:.0%}, below the "
            f"required {request.minimum:.0%}"
        )
    missing = sum(report.missing(one) for one in report.settings)
    if missing:
        silent = [one.faults[0] for one in report.attempts if not one.answered]
        why = silent[-1] if silent else f"--max-cost {request.max_cost:g} is reached: raise it, or lower --repeat"
        output.error(f"incomplete report: {missing} questions have no answer", why)
    if low or missing:
        raise typer.Exit(Exit.NEGATIVE if low else Exit.INCOMPLETE)


def _print(report: ModelReport, compared: Sequence[Sequence[str]]) -> None:
    from mcpfactory_pipeline.checks.evaluation import evaluation_reports

    output.table(evaluation_reports.SETTING_HEADER, evaluation_reports.model_setting_rows(report))
    for setting in report.settings:
        output.line()
        output.line(setting.title)
        output.table(evaluation_reports.CASE_HEADER, evaluation_reports.model_case_rows(report, setting))
        mistaken = [row for row in evaluation_reports.confusion_rows(report, setting) if row[1] != "the same"]
        if mistaken:
            output.line()
            output.table(evaluation_reports.CONFUSION_HEADER, mistaken)
        if wrong := evaluation_reports.wrong_argument_rows(report, setting):
            output.line()
            output.table(evaluation_reports.WRONG_HEADER, wrong)
        for case, verdict, faults in evaluation_reports.failed_attempt_rows(report, setting):
            output.line(f"{case}: {verdict}: {faults}")
    if compared:
        output.line()
        output.table(("difference", "points (95 %)", "questions", "beyond chance"), compared)


def check_case_quality(
    workspace: Workspace, server: WorkspaceServer, cases: Sequence[EvaluationCase], request: EvaluateOptions
) -> None:
    """Print the quality of each case, rated by a model or the search index. Exit with 1 if any case is worthless."""
    from mcpfactory_pipeline.checks.evaluation.case_quality import LISTS, rate_cases_by_search, rate_cases_from_report
    from mcpfactory_pipeline.checks.evaluation.offered_tools import read_server_tools

    if request.model and (request.modes != ["full"] or len(request.profiles) > 1):
        output.usage_error(
            "--check-cases cannot be combined with --mode or a second --profile",
            "leave out --mode, and give one --profile",
        )
    report = None
    if request.model:
        report = evaluate_model(workspace, server, cases, request)
        found = rate_cases_from_report(cases, report)
    else:
        with progress(quiet=request.as_json) as step:
            step(f"the tools of {server.name}")
            found = rate_cases_by_search(cases, asyncio.run(read_server_tools(server, request.profiles[0])))
    if request.as_json:
        asked = {"asked": request.model or "the search index", "report": report and report.to_json()}
        output.data({**asked, "cases": [one.to_json() for one in found]})
    else:
        output.table(
            ("case", *LISTS, "is worth"),
            [(one.case, *(f"{one.passed[name]:.0%}" for name in LISTS), one.words) for one in found],
        )
    if worthless := [one.case for one in found if one.worth == "worthless"]:
        output.error(
            f"worthless cases: {', '.join(worthless)}",
            "use words that match only the right tool, and do not quote its name",
        )
        raise typer.Exit(Exit.NEGATIVE)


def print_confused_tools(server: WorkspaceServer, *, as_json: bool) -> None:
    """Print the tools that models confused or could confuse, with their descriptions."""
    from mcpfactory_pipeline.checks.evaluation.confusable_tools import find_confused_pairs
    from mcpfactory_pipeline.checks.evaluation.evaluation_reports import read_model_reports
    from mcpfactory_pipeline.checks.evaluation.offered_tools import read_server_tools

    with progress(quiet=as_json) as step:
        step(f"the tools of {server.name}")
        reports = read_model_reports(server.folder)
        found = find_confused_pairs(asyncio.run(read_server_tools(server)), reports)
    if as_json:
        output.data({"reports": [one.model for one in reports], "pairs": [one.to_json() for one in found]})
        return
    if not found:
        output.line("no confused_cases or competing tools")
    for one in found:
        who = f"{one.times} times by {', '.join(one.models)}" if one.times else "by their descriptions alone"
        output.line(f"{one.expected} is confused_cases with {one.chosen}, {who}")
        for question, times in one.questions.items():
            output.line(f"  asked: {question}" + (f" (× {times})" if times > 1 else ""))
        for name, text in one.texts.items():
            output.line(f"  {name}: {text or 'gone'}")
        output.line(f"  {one.advice}")
        output.line()
    if not reports:
        output.hint(f"mcpfactory evaluate {server.name} --model KIND:MODEL --report shows what a model confuses")


def write_proposed_cases(server: WorkspaceServer, *, as_json: bool) -> None:
    """Write proposed cases next to the evaluated cases, and print the path of the new file."""
    from mcpfactory_pipeline.base.files import read_json, replace_file
    from mcpfactory_pipeline.checks.evaluation.case_quality import (
        example_arguments_by_tool,
        proposals_text,
        propose_cases,
    )
    from mcpfactory_pipeline.checks.evaluation.evaluation_reports import PROPOSALS, read_model_reports
    from mcpfactory_pipeline.checks.evaluation.offered_tools import read_server_tools
    from mcpfactory_pipeline.workspace.evaluation_case import read_evaluation_cases

    with progress(quiet=as_json) as step:
        step(f"the tools of {server.name}")
        tools = asyncio.run(read_server_tools(server))
    found = propose_cases(
        tools,
        read_evaluation_cases(server.folder),
        examples=example_arguments_by_tool(read_json(server.cases)),
        workflows=[str(one["name"]) for one in read_json(server.report).get("workflows", ())],
        reports=read_model_reports(server.folder),
    )
    replace_file(server.folder / PROPOSALS, proposals_text(found).encode())
    if as_json:
        output.data({"file": PROPOSALS.as_posix(), "proposals": [asdict(one) for one in found]})
        return
    output.table(("proposal", "from", "to decide"), [(one.name, one.origin, one.doubt) for one in found])
    output.hint(
        f"move accepted cases from {PROPOSALS} of {server.name} to `cases:` of a file in evals/; proposals are "
        "not evaluated"
    )


def evaluate(**values: Any) -> None:
    """Check that questions select the right tools.

    The questions are in evals/*.yaml of the server. The command also makes the tool calls that answer the questions.
    With --model, the command checks which tools a model chooses.
    """
    request = EvaluateOptions(**values)
    for one in request.modes:
        if one not in MODES:
            output.usage_error(f"unknown value {one!r} for --mode", f"use one of {', '.join(MODES)}")
    if not request.model and (request.baseline or len(request.profiles) > 1 or request.mode):
        output.usage_error(
            "--baseline, --mode and a second --profile have no effect without --model",
            "add --model openai:NAME or anthropic:NAME",
        )
    workspace = selected_workspace()
    server = workspace.server(request.name)
    if request.suggest or request.propose:
        (print_confused_tools if request.suggest else write_proposed_cases)(server, as_json=request.as_json)
        return
    cases = _cases(server)
    if request.check_cases:
        check_case_quality(workspace, server, cases, request)
    elif request.model:
        print_or_write_report(server, evaluate_model(workspace, server, cases, request), request)
    else:
        _show(server, _without_model(server, cases, request), request)


# Typer reads the options from the signature.
evaluate.__signature__ = inspect.signature(EvaluateOptions, eval_str=True)  # type: ignore[attr-defined] # functions accept this attribute


def _cases(server: WorkspaceServer) -> Sequence[EvaluationCase]:
    from mcpfactory_pipeline.workspace.evaluation_case import read_evaluation_cases

    cases = read_evaluation_cases(server.folder)
    if not cases:
        output.fail(
            f"{server.name} has no evaluation cases",
            f"write servers/{server.name}/evals/cases.yaml: docs/how-to/evaluate.md",
            Exit.NOT_FOUND,
        )
    return cases


def _without_model(server: WorkspaceServer, cases: Sequence[EvaluationCase], request: EvaluateOptions) -> Evaluation:
    from mcpfactory_pipeline.checks.evaluation.evaluation import evaluate_server

    with progress(quiet=request.as_json) as step:
        step(f"{len(cases)} questions")
        return asyncio.run(
            evaluate_server(
                server, cases, profile=request.profiles[0], on_case=lambda one: step(f"{one.case}, {one.mode}")
            )
        )


def _show(server: WorkspaceServer, found: Evaluation, request: EvaluateOptions) -> None:
    from mcpfactory_pipeline.base.files import replace_file
    from mcpfactory_pipeline.checks.evaluation.evaluation_reports import evaluation_markdown

    if request.report:
        replace_file(server.folder / _PAGE, evaluation_markdown(found).encode())
    if request.as_json:
        output.data(found.to_json())
    else:
        _print_evaluation(found)
    low = [mode for mode in found.lists if found.share(mode, _COUNTED) < request.minimum]
    if low:
        output.error(
            f"the right tool is among the first {_COUNTED} results for fewer than {request.minimum:.0%} of the "
            f"questions in mode {' and '.join(low)}"
        )
    if found.faults or low:
        raise typer.Exit(Exit.NEGATIVE)


def _print_evaluation(found: Evaluation) -> None:
    from mcpfactory_pipeline.checks.evaluation.evaluation_reports import case_rows, retrieval_rate_rows
    from mcpfactory_pipeline.checks.evaluation.offered_tools import WITHIN

    output.table(("case", *(f"place ({mode})" for mode in found.lists), "calls"), case_rows(found))
    output.line()
    output.table(("mode", "tools", "tokens", *(f"within {within}" for within in WITHIN)), retrieval_rate_rows(found))
    for pair in found.competing:
        output.line(f"{' and '.join(pair.tools)} compete: {pair.why}; {pair.advice}")
    for one in found.expensive:
        output.line(f"{one.tool} takes {one.tokens} tokens, {one.share:.0%} of the list")
    for fault in found.faults:
        output.error(fault)
