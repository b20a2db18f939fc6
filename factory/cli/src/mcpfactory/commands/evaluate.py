from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mcpfactory import output
from mcpfactory.exits import Exit
from mcpfactory.options import AsJson, Name, workspace_in
from mcpfactory.progress import progress

if TYPE_CHECKING:
    from mcpfactory_pipeline.evaluation import Evaluation

_COUNTED: Final = 5  # places within which --min-found counts
_PAGE: Final = Path("evals", "report.md")


def evaluate(
    name: Name,
    profile: Annotated[
        str, typer.Option(help="Which tools of a generated server: full, read-only or your own.")
    ] = "full",
    report: Annotated[
        bool, typer.Option("--report", help=f"Keep what was found as {_PAGE} beside the cases of the server.")
    ] = False,
    min_found: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help=f"Fail when fewer of the questions, from 0 to 1, lead to their tools within {_COUNTED} places.",
            min=0,
            max=1,
        ),
    ] = 0.0,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for one answer.", min=0.001)] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Ask the questions of evals/*.yaml of a server: which tools they lead to, and whether the calls that are said to answer them do."""
    from mcpfactory_pipeline.base.files import replace_file
    from mcpfactory_pipeline.evaluation import evaluate_server, markdown_page, read_cases

    server = workspace_in().server(name)
    cases = read_cases(server.folder)
    if not cases:
        output.fail(
            f"{name} has no evaluation cases",
            f"write servers/{name}/evals/cases.yaml: docs/how-to/evaluate.md",
            Exit.NOT_FOUND,
        )
    with progress(quiet=as_json) as step:
        step(f"{len(cases)} questions")
        found = asyncio.run(
            evaluate_server(
                server, cases, profile=profile, timeout=timeout, on_case=lambda one: step(f"{one.case}, {one.mode}")
            )
        )
    if report:
        replace_file(server.folder / _PAGE, markdown_page(found).encode())
    if as_json:
        output.data(found.to_json())
    else:
        _print_evaluation(found)
    low = [mode for mode in found.lists if found.share(mode, _COUNTED) < min_found]
    if low:
        output.error(f"fewer than {min_found:.0%} are found within {_COUNTED} places in mode {' and '.join(low)}")
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
