"""One HTML page that needs nothing else: no script, nothing fetched, dark and light, readable from the keyboard."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mcpfactory_pipeline.base.text import pluralize, printable
from mcpfactory_pipeline.checks.report import (
    PLACES_SHOWN,
    Finding,
    Report,
    following,
    format_measurements,
    group_findings,
    join_locations,
)

_STYLE: Final = """
:root{color-scheme:light dark;--line:#8885;--bad:#b3261e;--good:#2e7d32;--open:#8a5a00;--dim:#666}
@media(prefers-color-scheme:dark){:root{--bad:#ff8a80;--good:#81c784;--open:#ffcc80;--dim:#aaa}}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}
h1{margin-bottom:0}.dim{color:var(--dim)}.bad{color:var(--bad)}.good{color:var(--good)}.open{color:var(--open)}
article{border:1px solid var(--line);border-radius:.5rem;padding:.5rem 1rem;margin:1rem 0}
article h3{margin:.2rem 0;font-family:ui-monospace,monospace;font-size:1rem}
pre{overflow:auto;background:#8881;padding:.5rem;max-height:24rem}
table{border-collapse:collapse}td,th{text-align:left;padding:.2rem .8rem .2rem 0;border-bottom:1px solid var(--line)}
"""


def to_html(report: Report) -> str:
    """Return the whole report as a page; every text of the server is escaped, and the page's policy allows nothing but its style."""
    title = _escape(f"{report.server.get('name') or report.target}: {report.score}/100")
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body><main>\n"
        + "\n".join(_body(report))
        + "\n</main></body></html>\n"
    )


def _body(report: Report) -> Iterator[str]:
    style = {"passed": "good", "not shown": "open", "refused": "bad"}[report.verdict]
    verdict = f'<strong class="{style}">{report.verdict_words}</strong>'
    yield f"<h1>{_escape(str(report.server.get('name') or 'MCP server'))}: {report.score}/100, {verdict}</h1>"
    yield f'<p class="dim">{_escape(report.target)}</p>'
    if report.failed_gates:
        yield f"<p>Closed gates: {', '.join(f'<code>{_escape(gate)}</code>' for gate in report.failed_gates)}</p>"
    spoken = ", ".join(report.revisions) or "none"
    yield (
        f"<p>{report.earned:g} of {report.applicable} points, rules version {report.rules_version}. "
        f"{pluralize(report.tools, 'tool')}, {pluralize(len(report.called), 'call')} made. Protocol revisions: {_escape(spoken)}.</p>"
    )
    if report.measured:
        yield f"<p>Measured: {_escape(format_measurements(report.measured))}.</p>"
    groups = group_findings(report.findings)
    yield f"<h2>Findings ({len(report.findings)})</h2>" + ("" if groups else "<p>None.</p>")
    yield from (_finding(alike) for alike in groups)
    if report.not_checked:
        rows = ((f"{one.rule}{' (gate)' if one.gate else ''}", one.reason) for one in report.not_checked)
        yield "<h2>Not checked</h2><p>What applies and could not be checked counts as not passed.</p>"
        yield _table(("rule", "reason"), rows)
    if report.uncalled:
        yield "<h2>Tools that were not called, or given up</h2>" + _table(("tool", "reason"), report.uncalled.items())
    if report.waivers:
        cells = (
            (w.rule, w.tool or "all", one.state, w.person, w.until, w.reason + (f" ({w.covers})" if w.covers else ""))
            for one in report.waivers
            for w in [one.waiver]
        )
        yield "<h2>Waivers</h2>" + _table(("rule", "tool", "state", "person", "until", "reason"), cells)
        yield from _waived(report)
    yield (
        "<h2>Rules that were kept</h2><p>"
        + ", ".join(f"<code>{_escape(rule)}</code>" for rule in _kept(report))
        + "</p>"
    )
    if report.not_applicable:
        yield "<h2>Rules that do not apply</h2>" + _table(("rule", "reason"), report.not_applicable.items())


def _kept(report: Report) -> list[str]:
    broken = {finding.rule for finding in report.findings} | {one.rule for one in report.waived}
    return [rule for rule in report.checked if rule not in broken]


def _waived(report: Report) -> Iterator[str]:
    if report.waived:
        rows = ((one.rule, one.where, one.message) for one in report.waived)
        yield "<h3>What was waived</h3>" + _table(("rule", "where", "what"), rows)


def _finding(alike: list[Finding]) -> str:
    one = alike[0]
    grade = '<strong class="bad">gate</strong>' if one.gate else f"severity {one.severity}"
    places = [finding.where for finding in alike if finding.where]
    where = _escape(join_locations(places))
    proof = json.dumps(one.evidence, indent=2, ensure_ascii=False) if one.evidence is not None else ""
    shown = f"<details><summary>Proof</summary><pre>{_escape(proof)}</pre></details>" if proof else ""
    all_of_them = "".join(f"<li><code>{_escape(place)}</code></li>" for place in places)
    follows = "".join(f"<p>follows: {_escape(line)}</p>" for line in following(alike))
    more = f"<details><summary>All {len(places)} places</summary><ul>{all_of_them}</ul></details>"
    return (
        f"<article><h3>{_escape(one.rule)}</h3><p>{grade}{f' at <code>{where}</code>' if where else ''}</p>"
        f"{more if len(places) > PLACES_SHOWN else ''}"
        f"<p>{_escape(one.message)}</p><p><strong>hint:</strong> {_escape(one.hint)}</p>"
        f'{follows}<p class="dim">source: {_escape(one.source)}</p>{shown}</article>'
    )


def _table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    head = "".join(f'<th scope="col">{_escape(cell)}</th>' for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{_escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _escape(text: str) -> str:
    """Return the text escaped as HTML, without characters that reorder or hide text."""
    return html.escape(printable(text))
