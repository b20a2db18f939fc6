"""An evaluation as text: rows for a terminal, and a page in Markdown that can be kept beside the cases. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcpfactory_codegen.text import markdown_text
from mcpfactory_pipeline.evaluation.evaluation import CaseOutcome, Evaluation
from mcpfactory_pipeline.evaluation.retrieval import WITHIN, chance_within

__all__ = ["case_rows", "found_rows", "markdown_page", "markdown_table"]


def case_rows(found: Evaluation) -> list[tuple[str, ...]]:
    """Return a row for each case: its name, the place of its tools in each mode, and whether its calls did what it says."""
    rows = []
    for name in dict.fromkeys(one.case for one in found.outcomes):
        own = {one.mode: one for one in found.outcomes if one.case == name}
        places = [_place(own[mode].rank, bool(own[mode].ways)) for mode in found.lists]
        rows.append((name, *places, _calls(list(own.values()))))
    return rows


def found_rows(found: Evaluation) -> list[tuple[str, ...]]:
    """Return a row for each mode: what it lists, and how many cases were found within so many places, and by chance."""
    rows = []
    for mode, listed in found.lists.items():
        judged = len(found.judged(mode))
        shares = [f"{found.found(mode, within)}/{judged}" for within in WITHIN]
        rows.append((mode, str(listed.tools), str(listed.tokens), *shares))
    tools = found.lists["full"].tools
    rows.append(("by chance", "", "", *(f"{chance_within(tools, within):.0%}" for within in WITHIN)))
    return rows


def markdown_page(found: Evaluation) -> str:
    """Return the page: the same bytes for the same server and cases."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Evaluation) -> Iterator[str]:
    yield f"# Evaluation of {found.server}"
    yield ""
    yield f"Written by `mcpfactory evaluate {found.server} --report`; no model was asked. Profile `{found.profile}`."
    yield ""
    yield from markdown_table(
        ("mode", "tools", "tokens", *(f"within {within}" for within in WITHIN)), found_rows(found)
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
        yield f"\n- {markdown_text(fault)}"
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
        yield "| " + " | ".join(markdown_text(cell) for cell in row) + " |"
