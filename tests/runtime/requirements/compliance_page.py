"""The page `docs/reference/compliance.md`, generated from the table of requirements when the site is built."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

from mcpfactory_runtime.revisions import LATEST, R2024_11_05, REVISIONS
from tests.runtime.requirements.marks import RUNTIME, marked
from tests.runtime.requirements.model import Row
from tests.runtime.requirements.table import ROWS
from tests.runtime.requirements.validate_rules import GATES, NO_GATE

_FOLDER = RUNTIME.parents[1] / "docs" / "reference"

HEAD = """\
# Protocol compliance: what each revision demands, and what shows that it is met

The table is in `tests/runtime/requirements`. The suite fails if a requirement has neither a test nor a reason, and if a gap turns out to
be closed.

- **met**: the tests named show it.
- **gap**: not met; the reason stands beside it.
- **author**: nobody but the author of a server (or who deploys it) can meet it; the runtime gives the means.

Requirements are in our own words, with the server as subject; sections are those of the newest revision that has them.

The column *gates* has the [rules](rules.md) of `mcpfactory validate` that close a gate if a server violates the requirement.
Milder forms of a violation, such as another error code, may only cost points. For the other MUST requirements, see [the reasons](#must-requirements-that-close-no-gate).
"""


def draw() -> str:
    """Return the page."""
    tests: dict[str, list[tuple[Path, str]]] = defaultdict(list)
    for test in marked():
        for name in test.rows:
            tests[name].append((test.file, test.name))
    areas: dict[str, list[Row]] = defaultdict(list)
    for row in ROWS:
        areas[row.id.partition(".")[0]].append(row)
    parts = [HEAD, _counts(), _gaps(), *(_area(name, rows, tests) for name, rows in areas.items()), _no_gates()]
    return "\n".join(parts)


def _counts() -> str:
    lines = ["| revision | requirements | MUST | SHOULD | met | gap | author |", "|---|---|---|---|---|---|---|"]
    lines += [_count(f"`{it}`", [row for row in ROWS if it in row.revisions]) for it in REVISIONS.values()]
    lines.append(_count("all", list(ROWS)))
    return "\n".join(lines) + "\n"


def _count(name: str, rows: list[Row]) -> str:
    gaps, authors = sum(bool(row.gap) for row in rows), sum(bool(row.author) for row in rows)
    musts = sum(row.level == "MUST" for row in rows)
    return (
        f"| {name} | {len(rows)} | {musts} | {len(rows) - musts} | {len(rows) - gaps - authors} | {gaps} | {authors} |"
    )


def _gaps() -> str:
    if not any(row.gap for row in ROWS):
        return "## Gaps\n\nNone.\n"
    lines = ["## Gaps", "", "| requirement | the server … | why not |", "|---|---|---|"]
    lines += [f"| [`{row.id}`](#{_anchor(row)}) | {row.text} | {row.gap} |" for row in ROWS if row.gap]
    return "\n".join(lines) + "\n"


def _area(name: str, rows: list[Row], tests: dict[str, list[tuple[Path, str]]]) -> str:
    lines = [
        f"## {name}",
        "",
        "| id | the server … | level | revisions | section | shown by | gates |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        text = row.text + (f" ({row.note})" if row.note else "")
        span = "all" if (row.since, row.until) == (R2024_11_05, LATEST) else _span(row)
        where = f"{span}; {', '.join(row.on)}" if row.on else span
        gates = "<br>".join(f"`{rule}`" for rule in GATES.get(row.id, ()))
        shown = _shown(row, tests[row.id])
        lines.append(f"| `{row.id}` | {text} | {row.level} | {where} | {row.section} | {shown} | {gates} |")
    return "\n".join(lines) + "\n"


def _no_gates() -> str:
    rows: dict[str, list[str]] = defaultdict(list)
    for name, reason in NO_GATE.items():
        rows[reason].append(f"`{name}`")
    head = f"{len(GATES)} MUST requirements close a gate of `mcpfactory validate`, {len(NO_GATE)} close none.\n"
    lines = ["## MUST requirements that close no gate", "", head, "| why | requirements |", "|---|---|"]
    lines += [f"| {reason} | {', '.join(names)} |" for reason, names in rows.items()]
    return "\n".join(lines) + "\n"


def _span(row: Row) -> str:
    if row.since is row.until:
        return f"{row.since}"
    if row.until is LATEST:
        return f"since {row.since}"
    return f"until {row.until}" if row.since is R2024_11_05 else f"{row.since} to {row.until}"


def _shown(row: Row, tests: list[tuple[Path, str]]) -> str:
    if row.gap:
        return f"**gap**: {row.gap}"
    if row.author:
        return f"**author**: {row.author}"
    links = (f"[{name.removeprefix('test_')}]({_relative(file)})" for file, name in tests)
    return "<br>".join(links)


def _relative(file: Path) -> str:
    return Path(os.path.relpath(file, _FOLDER)).as_posix()


def _anchor(row: Row) -> str:
    return row.id.partition(".")[0]
