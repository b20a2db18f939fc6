"""Markdown, for a pull request: the verdict, one line for each thing to do, and the proof folded away."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from mcpfactory_pipeline.base.text import pluralize, printable, printable_json
from mcpfactory_pipeline.checks.report import Report, following, group_findings, join_locations

__all__ = ["to_markdown"]

_MOST: Final = 20  # findings that a summary shows; the others are in the other formats
_PROOF: Final = 1_500  # characters of one proof
_SIGNS: Final = re.compile(r"([\\`*_{}\[\]<>|#@!~])")


def to_markdown(report: Report) -> str:
    """Return the report as a comment on a pull request; texts of the server are escaped, and mention nobody."""
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
