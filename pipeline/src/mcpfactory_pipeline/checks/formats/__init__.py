"""Formats of a report: badge, HTML, JUnit, Markdown, SARIF.

What a server said is printable in all of them: it acts on no terminal, no CI and no reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from mcpfactory_pipeline.base.text import pluralize, printable, printable_json
from mcpfactory_pipeline.checks.formats.html import to_html
from mcpfactory_pipeline.checks.formats.junit import to_junit
from mcpfactory_pipeline.checks.formats.sarif import to_sarif
from mcpfactory_pipeline.checks.report import Report, following, group_findings, join_locations

__all__ = ["FORMATS", "Format", "format_of"]


_WIDTH: Final = 7  # of one character in pixels, with room to spare: the viewer's font decides
_COLOURS: Final = (
    (95, "#2e7d32"),
    (80, "#5d7a00"),
    (0, "#8a5a00"),
)  # white text on each has a contrast of at least 4.5
_BAD: Final = "#b3261e"


def to_badge(report: Report) -> str:
    """`mcp | 97/100` (`, 2 waived`), `mcp | not shown to work` or `mcp | not promotable`; the colour says the same as the words."""
    waived = f", {len(report.waived)} waived" if report.waived else ""
    words = f"{report.score}/100{waived}" if report.passed else report.verdict_words
    colour = _COLOURS[-1][1] if report.verdict == "not shown" else _BAD
    if report.passed:
        colour = next(colour for least, colour in _COLOURS if report.score >= least)
    left, right = 4 * _WIDTH + 8, len(words) * _WIDTH + 12
    font = 'font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" fill="#fff" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="MCP: {words}">'
        f"<title>MCP: {words}</title>"
        f'<rect width="{left + right}" height="20" rx="3" fill="#444"/>'
        f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H{left}z" fill="{colour}"/>'
        f'<text x="{left / 2:g}" y="14" {font}>MCP</text>'
        f'<text x="{left + right / 2:g}" y="14" {font}>{words}</text></svg>\n'
    )


_MOST: Final = 20  # findings that a summary shows; the others are in the other formats
_PROOF: Final = 1_500  # characters of one proof
_SIGNS: Final = re.compile(r"([\\`*_{}\[\]<>|#@!~])")


def to_markdown(report: Report) -> str:
    """Return the report as a comment on a pull request; texts of the server are escaped and mention no users."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    verdict = report.verdict_words if report.passed else f"**{report.verdict_words}**"
    yield f"### {_escape(report.server.get('name') or report.target)}: {report.score}/100, {verdict}"
    yield ""
    if report.failed_gates:
        yield f"Closed gates: {', '.join(f'`{gate}`' for gate in report.failed_gates)}."
    yield (
        f"{pluralize(report.tools, 'tool')}, {pluralize(len(report.called), 'call')}, revisions {', '.join(report.revisions) or 'none'}; "
        f"{pluralize(len(report.findings), 'finding')}, {pluralize(len(report.not_checked), 'rule')} not checked, {len(report.waived)} waived."
    )
    groups = group_findings(report.findings)
    if groups:
        yield from ("", "| rule | grade | what | where | what to do |", "|---|---|---|---|---|")
    for alike in groups[:_MOST]:
        one = alike[0]
        grade = "gate" if one.gate else f"severity {one.severity}"
        where = _escape(join_locations([finding.where for finding in alike]))
        follows = "".join(f"; follows: {_escape(line)}" for line in following(alike))
        yield f"| `{one.rule}` | {grade} | {_escape(one.message)}{follows} | {where} | {_escape(one.hint)} |"
    if len(groups) > _MOST:
        yield f"\n… and {len(groups) - _MOST} more."
    for alike in (alike for alike in groups[:_MOST] if alike[0].evidence):
        proof = printable_json(json.dumps(alike[0].evidence, indent=1, ensure_ascii=False))[:_PROOF].replace(
            "```", "'''"
        )
        yield f"\n<details><summary>Proof: {alike[0].rule}</summary>\n\n```json\n{proof}\n```\n</details>"
    if report.not_checked:
        yield from ("", "Not checked, which counts as not passed:", "")
        yield from (f"- `{one.rule}`: {_escape(one.reason)}" for one in report.not_checked)
    if report.waivers:
        yield from ("", "| waiver | state | person | until | reason |", "|---|---|---|---|---|")
    for state in report.waivers:
        waiver = state.waiver
        reason = waiver.reason + (f" ({waiver.covers})" if waiver.covers else "")
        about = _escape(f" ({waiver.tool})") if waiver.tool else ""
        cells = (f"`{waiver.rule}`{about}", state.state, _escape(waiver.person), waiver.until, _escape(reason))
        yield f"| {' | '.join(map(str, cells))} |"


def _escape(text: object) -> str:
    """Text that cannot be markup, a mention or the end of a table's cell."""
    escaped = _SIGNS.sub(r"\\\1", " ".join(printable(str(text)).split()))
    return escaped.replace("\\@", "&#64;").replace("\\<", "&lt;").replace("\\#", "&#35;").replace("://", "&#58;//")


@dataclass(frozen=True, slots=True)
class Format:
    """One form: what it is for, the file name that it has when none is given, and what writes it."""

    purpose: str
    file: str
    write: Callable[[Report], str]


def _json(report: Report) -> str:
    data = {**report.to_json(), "measured": dict(report.measured)}
    return printable_json(json.dumps(data, indent=2, ensure_ascii=False)) + "\n"


def _text(report: Report) -> str:
    return printable(report.to_text())


FORMATS: Final[Mapping[str, Format]] = {
    "text": Format("a person at a terminal", "report.txt", _text),
    "json": Format("programs: everything that is known", "report.json", _json),
    "junit": Format("test reports of a CI: each rule is a test case", "junit.xml", to_junit),
    "sarif": Format("code scanning (SARIF 2.1.0): each finding with its place", "report.sarif", to_sarif),
    "markdown": Format("a pull request: verdict, table, what to do", "report.md", to_markdown),
    "html": Format("a browser: one file that needs nothing else", "report.html", to_html),
    "badge": Format("a README: the score as a picture (SVG)", "badge.svg", to_badge),
}

_SUFFIXES: Final = {PurePath(form.file).suffix: name for name, form in FORMATS.items()}


def format_of(file: str) -> str | None:
    """Return the format that a file's name speaks of (`report.sarif` → sarif); None when it speaks of none."""
    return _SUFFIXES.get(PurePath(file).suffix.lower())
