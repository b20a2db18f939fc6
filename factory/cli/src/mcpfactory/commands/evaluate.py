from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mcpfactory import output
from mcpfactory.asked import AskWish, ask_model, show_report
from mcpfactory.doubted import show_suggestions, show_worth, write_proposals
from mcpfactory.exits import Exit
from mcpfactory.options import AsJson, Name, workspace_in
from mcpfactory.progress import progress

if TYPE_CHECKING:
    from mcpfactory_pipeline.evaluation import Evaluation, EvaluationCase
    from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

_COUNTED: Final = 5  # places within which a question must find its tool
_PAGE: Final = Path("evals", "report.md")
_REPORTS: Final = Path("evals", "reports")
_MODES: Final = ("full", "search")

_Model = Annotated[
    str,
    typer.Option(
        metavar="KIND:MODEL", help="Ask a model: openai:MODEL or anthropic:MODEL, and whatever speaks as they do."
    ),
]
_Endpoint = Annotated[
    str,
    typer.Option(metavar="URL", help="Where the model is; by default what the workspace says, or its vendor's own."),
]
_Repeat = Annotated[int, typer.Option(metavar="N", help="How often the model is asked each question.", min=1)]
_Modes = Annotated[
    list[str] | None,
    typer.Option(metavar="full|search", help="How a model is offered the tools; repeatable, one after the other."),
]
_Profiles = Annotated[
    list[str] | None, typer.Option(help="Which tools of a generated server: full, read-only or your own.")
]
_MaxCost = Annotated[
    float | None,
    typer.Option(metavar="AMOUNT", help="Ask no more once so much was spent, by the prices of the workspace.", min=0),
]
_Min = Annotated[
    float,
    typer.Option(
        "--min",
        metavar="SHARE",
        help=f"Fail when fewer of the questions, from 0 to 1, lead to their tools within {_COUNTED} places; "
        "with --model when the lower bound of the pass rate is less.",
        min=0,
        max=1,
    ),
]
_Baseline = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="An earlier report of a model: show the difference with its interval."),
]
_Report = Annotated[
    bool,
    typer.Option(
        "--report",
        help=f"Keep what was found beside the cases: {_PAGE}, and of a model {_REPORTS}/KIND-MODEL.md and .json.",
    ),
]
_CheckCases = Annotated[
    bool,
    typer.Option(
        "--check-cases",
        help="Ask with descriptions and with names swapped between tools, too: a case that passes all the same is worthless.",
    ),
]
_Suggest = Annotated[
    bool,
    typer.Option(
        "--suggest",
        help=f"Ask nobody: list the tools that models confused, by {_REPORTS}, with both texts and the questions.",
    ),
]
_Propose = Annotated[
    bool,
    typer.Option(
        "--propose",
        help="Ask nobody: write cases that a person could accept, from descriptions, examples, workflows and reports.",
    ),
]
_Timeout = Annotated[float, typer.Option(help="Seconds to wait for one answer.", min=0.001)]


def evaluate(
    name: Name,
    model: _Model = "",
    endpoint: _Endpoint = "",
    repeat: _Repeat = 1,
    mode: _Modes = None,
    profile: _Profiles = None,
    max_cost: _MaxCost = None,
    minimum: _Min = 0.0,
    baseline: _Baseline = None,
    report: _Report = False,
    check_cases: _CheckCases = False,
    suggest: _Suggest = False,
    propose: _Propose = False,
    timeout: _Timeout = 60.0,
    as_json: AsJson = False,
) -> None:
    """Ask the questions of evals/*.yaml of a server: which tools they lead to, whether the calls that are said to answer them do, and what a model makes of them."""
    wish = AskWish(
        model=model,
        endpoint=endpoint,
        repeat=repeat,
        modes=_chosen("--mode", mode, _MODES),
        profiles=profile or ["full"],
        check=check_cases,
        timeout=timeout,
        max_cost=max_cost,
        minimum=minimum,
        against=baseline,
        keep=report,
        as_json=as_json,
    )
    if not model and (baseline or endpoint or (profile and len(profile) > 1) or mode):
        output.fail("without --model no model is asked", "add --model openai:NAME or anthropic:NAME", Exit.USAGE)
    workspace = workspace_in()
    server = workspace.server(name)
    if suggest or propose:
        (show_suggestions if suggest else write_proposals)(server, as_json=as_json)
        return
    cases = _cases(server)
    if check_cases:
        show_worth(workspace, server, cases, wish)
    elif model:
        show_report(server, ask_model(workspace, server, cases, wish), wish)
    else:
        _show(server, _without_model(server, cases, wish), wish)


def _chosen(option: str, typed: list[str] | None, known: Sequence[str]) -> list[str]:
    """Return what was typed for an option that may be given several times; the first of the known where nothing was."""
    for one in typed or ():
        if one not in known:
            output.fail(f"{option} {one}: there is none", f"one of {', '.join(known)}", Exit.USAGE)
    return list(dict.fromkeys(typed or known[:1]))


def _cases(server: WorkspaceServer) -> Sequence[EvaluationCase]:
    from mcpfactory_pipeline.evaluation import read_cases

    cases = read_cases(server.folder)
    if not cases:
        output.fail(
            f"{server.name} has no evaluation cases",
            f"write servers/{server.name}/evals/cases.yaml: docs/how-to/evaluate.md",
            Exit.NOT_FOUND,
        )
    return cases


def _without_model(server: WorkspaceServer, cases: Sequence[EvaluationCase], wish: AskWish) -> Evaluation:
    from mcpfactory_pipeline.evaluation import evaluate_server

    with progress(quiet=wish.as_json) as step:
        step(f"{len(cases)} questions")
        return asyncio.run(
            evaluate_server(
                server,
                cases,
                profile=wish.profiles[0],
                timeout=wish.timeout,
                on_case=lambda one: step(f"{one.case}, {one.mode}"),
            )
        )


def _show(server: WorkspaceServer, found: Evaluation, wish: AskWish) -> None:
    from mcpfactory_pipeline.base.files import replace_file
    from mcpfactory_pipeline.evaluation import markdown_page

    if wish.keep:
        replace_file(server.folder / _PAGE, markdown_page(found).encode())
    if wish.as_json:
        output.data(found.to_json())
    else:
        _print_evaluation(found)
    low = [mode for mode in found.lists if found.share(mode, _COUNTED) < wish.minimum]
    if low:
        output.error(f"fewer than {wish.minimum:.0%} are found within {_COUNTED} places in mode {' and '.join(low)}")
    if found.faults or low:
        raise typer.Exit(Exit.NO)


def _print_evaluation(found: Evaluation) -> None:
    from mcpfactory_pipeline.evaluation import case_rows, found_rows
    from mcpfactory_pipeline.evaluation.retrieval import WITHIN

    output.table(("case", *(f"place ({mode})" for mode in found.lists), "calls"), case_rows(found))
    output.line()
    output.table(("mode", "tools", "tokens", *(f"within {within}" for within in WITHIN)), found_rows(found))
    for pair in found.competing:
        output.line(f"{' and '.join(pair.tools)} compete: {pair.why}; {pair.advice}")
    for one in found.expensive:
        output.line(f"{one.tool} takes {one.tokens} tokens, {one.share:.0%} of the list")
    for fault in found.faults:
        output.error(fault)
