"""`mcpfactory evaluate --check-cases` and `--suggest`: what the cases are worth, and which tools to rewrite."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mcpfactory import output
from mcpfactory.asked import AskWish, ask_model
from mcpfactory.exits import Exit
from mcpfactory.progress import progress

if TYPE_CHECKING:
    from mcpfactory_pipeline.evaluation import CaseWorth, EvaluationCase
    from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

__all__ = ["show_suggestions", "show_worth", "write_proposals"]


def show_worth(workspace: Workspace, server: WorkspaceServer, cases: Sequence[EvaluationCase], wish: AskWish) -> None:
    """Show what each case is worth, by a model or by the search index, and end with 1 where one is worth nothing."""
    from mcpfactory_pipeline.evaluation import LISTS, found_worth, model_worth, server_tools

    if wish.model and (list(wish.modes) != ["full"] or len(wish.profiles) > 1):
        output.fail("--check-cases swaps words in one list", "leave --mode out, and name one --profile", Exit.USAGE)
    report = None
    if wish.model:
        report = ask_model(workspace, server, cases, wish)
        found = model_worth(cases, report)
    else:
        with progress(quiet=wish.as_json) as step:
            step(f"the tools of {server.name}")
            found = found_worth(cases, asyncio.run(server_tools(server, wish.profiles[0])))
    if wish.as_json:
        asked = {"asked": wish.model or "the search index", "report": report and report.to_json()}
        output.data({**asked, "cases": [one.to_json() for one in found]})
    else:
        output.table(("case", *LISTS, "is worth"), [_row(one, LISTS) for one in found])
    if worthless := [one.case for one in found if one.worth == "worthless"]:
        output.error(
            f"worth nothing: {', '.join(worthless)}",
            "ask in words that only the right tool answers to, and do not quote its name",
        )
        raise typer.Exit(Exit.NO)


def _row(one: CaseWorth, lists: Sequence[str]) -> tuple[str, ...]:
    return (one.case, *(f"{one.passed[name]:.0%}" for name in lists), one.words)


def show_suggestions(server: WorkspaceServer, *, as_json: bool) -> None:
    """Show the tools that were confused, or compete, with what each says of itself."""
    from mcpfactory_pipeline.evaluation import confused_pairs, read_reports, server_tools

    with progress(quiet=as_json) as step:
        step(f"the tools of {server.name}")
        reports = read_reports(server.folder)
        found = confused_pairs(asyncio.run(server_tools(server)), reports)
    if as_json:
        output.data({"reports": [one.model for one in reports], "pairs": [one.to_json() for one in found]})
        return
    if not found:
        output.line("no two tools were confused, and none compete")
    for one in found:
        who = f"{one.times} times by {', '.join(one.models)}" if one.times else "by their texts alone"
        output.line(f"{one.expected} taken for {one.chosen}, {who}")
        for question, times in one.questions.items():
            output.line(f"  asked: {question}" + (f" (× {times})" if times > 1 else ""))
        for name, text in one.texts.items():
            output.line(f"  {name}: {text or 'gone'}")
        output.line(f"  {one.advice}")
        output.line()
    if not reports:
        output.hint(f"mcpfactory evaluate {server.name} --model KIND:MODEL --report shows what a model confuses")


def write_proposals(server: WorkspaceServer, *, as_json: bool) -> None:
    """Write cases that a person could accept beside those that are asked, and say where."""
    from dataclasses import asdict

    from mcpfactory_pipeline.base.files import replace_file
    from mcpfactory_pipeline.evaluation import (
        PROPOSALS,
        example_calls,
        proposals_text,
        propose_cases,
        read_cases,
        read_reports,
        server_tools,
    )

    with progress(quiet=as_json) as step:
        step(f"the tools of {server.name}")
        tools = asyncio.run(server_tools(server))
    found = propose_cases(
        tools,
        read_cases(server.folder),
        examples=example_calls(_json(server.cases)),
        workflows=[str(one["name"]) for one in _json(server.folder / ".mcpfactory/report.json").get("workflows", ())],
        reports=read_reports(server.folder),
    )
    file = server.folder / PROPOSALS
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, proposals_text(found).encode())
    if as_json:
        output.data({"file": PROPOSALS.as_posix(), "proposals": [asdict(one) for one in found]})
        return
    output.table(("proposal", "from", "to decide"), [(one.name, one.origin, one.doubt) for one in found])
    output.hint(
        f"{PROPOSALS} of {server.name}: move what you accept below `cases:` of a file in evals/; nothing there is asked"
    )


def _json(file: Path) -> Any:
    return json.loads(file.read_bytes()) if file.is_file() else {}
