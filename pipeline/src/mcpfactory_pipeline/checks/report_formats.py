"""Formats of a report: text, JSON, JUnit, SARIF, Markdown, HTML, badge.

Every format escapes the server's texts, so that these texts cannot control a terminal, a CI system or a reader.

JUnit XML: each rule is a test case. A rule with findings is a failure; the failure's type is `gate`, or the severity of
the rule. An unchecked rule is an error. A waived or inapplicable rule is skipped, with the reason. A rule passes if all
its findings have severity 1; the output contains these findings.

SARIF 2.1.0 (OASIS): § numbers refer to the standard. The subject of a finding, such as a tool, is a logical location
(§3.33). The physical location (§3.29) is the line from `ValidationReport.locations`. The other fields and limits follow
GitHub's "SARIF support for code scanning".
"""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote
from xml.etree import ElementTree as ET

from mcpfactory_pipeline.base.text import pluralize, printable, printable_json
from mcpfactory_pipeline.checks.report import (
    PLACES_SHOWN,
    Finding,
    ValidationReport,
    WaivedFinding,
    WaiverState,
    describe_first_locations,
    effect_lines,
    finding_lines,
    format_measurements,
    group_findings,
)
from mcpfactory_pipeline.checks.rule import Rule
from mcpfactory_pipeline.checks.rule_evaluation import tool_in_location
from mcpfactory_pipeline.checks.rules import RULES

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


def to_html(report: ValidationReport) -> str:
    """Return the report as an HTML page.

    The server's texts are escaped; the content security policy allows only styles.
    """
    title = _escape_html(f"{report.server.get('name') or report.target}: {report.score}/100")
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body><main>\n"
        + "\n".join(_html_body(report))
        + "\n</main></body></html>\n"
    )


def _html_body(report: ValidationReport) -> Iterator[str]:
    style = {"passed": "good", "not shown": "open", "refused": "bad"}[report.verdict]
    verdict = f'<strong class="{style}">{report.verdict_words}</strong>'
    yield f"<h1>{_escape_html(str(report.server.get('name') or 'MCP server'))}: {report.score}/100, {verdict}</h1>"
    yield f'<p class="dim">{_escape_html(report.target)}</p>'
    if report.failed_gates:
        yield f"<p>Closed gates: {', '.join(f'<code>{_escape_html(gate)}</code>' for gate in report.failed_gates)}</p>"
    spoken = ", ".join(report.revisions) or "none"
    yield (
        f"<p>{report.lost:g} points lost, rules version {report.rules_version}. "
        f"{pluralize(report.tools, 'tool')}, {pluralize(len(report.called), 'call')} made. Protocol revisions: {_escape_html(spoken)}.</p>"
    )
    if report.measured:
        yield f"<p>Measured: {_escape_html(format_measurements(report.measured))}.</p>"
    groups = group_findings(report.findings)
    yield f"<h2>Findings ({len(report.findings)})</h2>" + ("" if groups else "<p>None.</p>")
    yield from (_html_finding(alike) for alike in groups)
    if report.not_checked:
        rows = ((f"{one.rule}{' (gate)' if one.gate else ''}", one.reason) for one in report.not_checked)
        yield "<h2>Not checked</h2><p>These rules apply, but could not be checked: they count as not passed.</p>"
        yield _html_table(("rule", "reason"), rows)
    if report.uncalled:
        yield "<h2>Tools not called, or given up</h2>" + _html_table(("tool", "reason"), report.uncalled.items())
    if report.waivers:
        cells = ((one.waiver.rule, one.waiver.tool or "all", *_waiver_cells(one)) for one in report.waivers)
        yield "<h2>Waivers</h2>" + _html_table(("rule", "tool", "state", "person", "until", "reason"), cells)
    if report.waivers and report.waived:
        waived = ((one.rule, one.where, one.message) for one in report.waived)
        yield "<h3>Waived findings</h3>" + _html_table(("rule", "location", "finding"), waived)
    yield (
        "<h2>Passed rules</h2><p>" + ", ".join(f"<code>{_escape_html(rule)}</code>" for rule in _kept(report)) + "</p>"
    )
    if report.not_applicable:
        yield "<h2>Not applicable</h2>" + _html_table(("rule", "reason"), report.not_applicable.items())


def _kept(report: ValidationReport) -> list[str]:
    broken = {finding.rule for finding in report.findings} | {one.rule for one in report.waived}
    return [rule for rule in report.checked if rule not in broken]


def _waiver_cells(one: WaiverState) -> tuple[str, str, str, str]:
    waiver = one.waiver
    return one.state, waiver.person, str(waiver.until), waiver.reason + (f" ({waiver.covers})" if waiver.covers else "")


def _html_finding(alike: list[Finding]) -> str:
    one = alike[0]
    grade = f'<strong class="bad">{one.grade}</strong>' if one.gate else one.grade
    places = [finding.where for finding in alike if finding.where]
    where = _escape_html(describe_first_locations(places))
    proof = json.dumps(one.evidence, indent=2, ensure_ascii=False) if one.evidence is not None else ""
    shown = f"<details><summary>Proof</summary><pre>{_escape_html(proof)}</pre></details>" if proof else ""
    all_of_them = "".join(f"<li><code>{_escape_html(place)}</code></li>" for place in places)
    follows = "".join(f"<p>follows: {_escape_html(line)}</p>" for line in effect_lines(alike))
    more = f"<details><summary>All {len(places)} places</summary><ul>{all_of_them}</ul></details>"
    return (
        f"<article><h3>{_escape_html(one.rule)}</h3><p>{grade}{f' at <code>{where}</code>' if where else ''}</p>"
        f"{more if len(places) > PLACES_SHOWN else ''}"
        f"<p>{_escape_html(one.message)}</p><p><strong>hint:</strong> {_escape_html(one.hint)}</p>"
        f'{follows}<p class="dim">source: {_escape_html(one.source)}</p>{shown}</article>'
    )


def _html_table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    head = "".join(f'<th scope="col">{_escape_html(cell)}</th>' for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{_escape_html(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _escape_html(text: str) -> str:
    """Escape a text as HTML, and remove characters that reorder or hide text."""
    return html.escape(printable(text))


# Characters that XML 1.0 (§2.2) forbids, even as character references.
_FORBIDDEN: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(report: ValidationReport) -> str:
    """Return the report as a JUnit file with one test suite."""
    cases = list(_cases(report))
    counts = {kind: sum(case.find(kind) is not None for case in cases) for kind in ("failure", "error", "skipped")}
    suite = ET.Element(
        "testsuite",
        name=_xml_text(f"mcpfactory validate {report.target}"),
        tests=str(len(cases)),
        failures=str(counts["failure"]),
        errors=str(counts["error"]),
        skipped=str(counts["skipped"]),
        time="0",
    )
    properties = ET.SubElement(suite, "properties")
    facts = {
        "score": report.score,
        "promotable": str(report.passed).lower(),
        "verdict": report.verdict,
        "rules_version": report.rules_version,
    }
    for name, value in facts.items():
        ET.SubElement(properties, "property", name=name, value=str(value))
    suite.extend(cases)
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _cases(report: ValidationReport) -> Iterator[ET.Element]:
    found: dict[str, list[Finding]] = {}
    for finding in report.findings:
        found.setdefault(finding.rule, []).append(finding)
    waived = {one.rule: f"waived by {one.waiver.person}: {one.waiver.reason}" for one in report.waived}
    for rule in report.checked:
        case = _case(rule, "" if rule in found else waived.get(rule, ""))
        if rule in found:
            _add_failure(case, found[rule])
        yield case
    for unchecked in report.not_checked:
        case = _case(unchecked.rule)
        ET.SubElement(case, "error", type="not checked", message=_xml_text(unchecked.reason))
        yield case
    others = {rule: reason for rule, reason in waived.items() if rule not in report.checked}
    yield from (_case(rule, reason) for rule, reason in (*others.items(), *report.not_applicable.items()))


def _add_failure(case: ET.Element, findings: list[Finding]) -> None:
    text = _xml_text("\n".join(line for alike in group_findings(findings) for line in finding_lines(alike)))
    worst = max(findings, key=lambda finding: (finding.gate, finding.severity))
    if worst.severity == 1 and not worst.gate:
        ET.SubElement(case, "system-out").text = text
        return
    ET.SubElement(case, "failure", type=worst.grade, message=_xml_text(worst.message)).text = text


def _case(rule: str, skipped: str = "") -> ET.Element:
    case = ET.Element("testcase", classname=f"mcpfactory.{rule.partition('.')[0]}", name=rule, time="0")
    if skipped:
        ET.SubElement(case, "skipped", message=_xml_text(skipped))
    return case


def _xml_text(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", printable(text))


# Severity → SARIF level (§3.27.10), and the properties by which GitHub ranks rules and alerts.
_LEVELS: Final = {5: "error", 3: "error", 2: "warning", 1: "note"}
_PROBLEMS: Final = {5: "error", 3: "error", 2: "warning", 1: "recommendation"}
_PRECISIONS: Final = {5: "very-high", 3: "very-high", 2: "high", 1: "medium"}
_SECURITY_SCORES: Final = {5: "9.5", 3: "8.0", 2: "5.0", 1: "2.0"}  # critical, high, medium, low
_SECURITY: Final = ("security", "authorization")  # families of rules whose findings are security alerts
_RESULTS: Final = 5_000  # GitHub rejects a run with more than 25,000 results, and stores 5,000
_SIZE: Final = 10_000_000  # bytes; GitHub rejects larger files, and measures the compressed size
_FINGERPRINT: Final = "primaryLocationLineHash"
_ROOT: Final = "%SRCROOT%"  # GitHub and other readers of SARIF use this name for the root of the repository
_ELSEWHERE: Final = ("README.md", 1)  # GitHub requires a location even if no file names the server


def to_sarif(report: ValidationReport) -> str:
    """Return the report as a SARIF log with one run."""
    findings = sorted(report.findings, key=lambda one: (one.gate, one.severity), reverse=True)
    spoken = [*(finding.rule for finding in findings), *(one.rule for one in report.waived)]
    known = {rule.id: rule for rule in RULES}
    order = list(dict.fromkeys([*report.checked, *spoken, *(one.rule for one in report.not_checked)]))
    index = {name: number for number, name in enumerate(order)}
    results = [_sarif_result(report, index, finding) for finding in findings]
    results += [_suppressed(report, index, known, one) for one in report.waived]
    _number_alike(results)
    run = {
        "tool": {
            "driver": {
                "name": "mcpfactory validate",
                "version": f"rules {report.rules_version}",
                "rules": [_sarif_rule(known[name]) for name in order],
            }
        },
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {
                        "level": "warning",
                        "message": {"text": f"{one.rule} could not be checked: {one.reason}"},
                        "associatedRule": {"id": one.rule, "index": index[one.rule]},
                    }
                    for one in report.not_checked
                ],
            }
        ],
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "columnKind": "unicodeCodePoints",
        "results": list(_within_limits(results)),
        "properties": {
            "score": report.score,
            "promotable": report.passed,
            "verdict": report.verdict,
            "target": report.target,
        },
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return printable_json(json.dumps(log, indent=2, ensure_ascii=False)) + "\n"


def _within_limits(results: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the worst results, up to the limits of GitHub."""
    left = _SIZE
    for result in islice(results, _RESULTS):
        left -= len(json.dumps(result))
        if left < 0:
            return
        yield result


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    """§3.49 reportingDescriptor."""
    secure = rule.family in _SECURITY
    tags = [rule.family, *(["security"] if secure else []), *(["gate"] if rule.gate else [])]
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in re.split(r"\W", rule.id)),
        "shortDescription": {"text": rule.statement},
        "fullDescription": {"text": f"{rule.statement} Source: {rule.source}."},
        "help": {"text": rule.hint},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {
            "tags": list(dict.fromkeys(tags)),
            "severity": rule.severity,
            "precision": _PRECISIONS[rule.severity],
            "problem.severity": _PROBLEMS[rule.severity],
            **({"security-severity": _SECURITY_SCORES[rule.severity]} if secure else {}),
        },
    }


def _sarif_result(report: ValidationReport, index: Mapping[str, int], finding: Finding) -> dict[str, Any]:
    """§3.27 result."""
    properties: dict[str, Any] = {"gate": finding.gate, "severity": finding.severity, "source": finding.source}
    if finding.evidence is not None:
        properties["evidence"] = dict(finding.evidence)
    where = f"{finding.where}: " if finding.where else ""
    follows = "".join(f"\nfollows: {line}" for line in finding.follows)
    text = f"{where}{finding.message}\nhint: {finding.hint}{follows}"
    level = "error" if finding.gate else _LEVELS[finding.severity]
    return _about(report, index, finding.rule, finding.where) | {
        "level": level,
        "message": {"text": text},
        "suppressions": [],  # either all results have this field, or none has it (§3.27.23)
        "properties": properties,
    }


def _suppressed(
    report: ValidationReport, index: Mapping[str, int], known: Mapping[str, Rule], one: WaivedFinding
) -> dict[str, Any]:
    """§3.35 suppression: a waiver.

    `status` and `state` are omitted: the schemas in use disagree on the name of this member.
    """
    waiver = one.waiver
    words = f"{waiver.person}, until {waiver.until}: {waiver.reason}"
    return _about(report, index, one.rule, one.where) | {
        "level": _LEVELS[known[one.rule].severity],
        "message": {"text": one.message},
        "suppressions": [{"kind": "external", "justification": words}],
    }


def _about(report: ValidationReport, index: Mapping[str, int], rule: str, where: str) -> dict[str, Any]:
    """Return the fields that findings and suppressions share.

    The fingerprint (§3.27.17) stays the same across runs and edits of the code. GitHub reads only the fingerprint with
    this name.
    """
    digest = hashlib.sha256(f"{rule}\n{where}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return {
        "ruleId": rule,
        "ruleIndex": index[rule],
        "locations": [_location(report, where)],
        "partialFingerprints": {_FINGERPRINT: digest},
    }


def _number_alike(results: Iterable[dict[str, Any]]) -> None:
    """Make equal fingerprints distinct, because viewers merge results of one rule with the same place."""
    seen: Counter[str] = Counter()
    for result in results:
        prints = result["partialFingerprints"]
        seen[digest := prints[_FINGERPRINT]] += 1
        prints[_FINGERPRINT] = f"{digest}:{seen[digest]}"


def _location(report: ValidationReport, where: str) -> dict[str, Any]:
    names: Iterable[str] = (part for part in (report.target, where) if part)
    listed = {str(tool.get("name")) for tool in report.listed if isinstance(tool, dict)}
    tool = tool_in_location(where, listed)
    logical = {"fullyQualifiedName": " ".join(names), "kind": "function" if tool else "resource"}
    if tool or where:
        logical["name"] = tool or where
    about = tool if tool and tool in report.locations else tool_in_location(where, report.locations.keys() - listed)
    file, line = report.locations.get(about, _ELSEWHERE)
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(file), "uriBaseId": _ROOT},
            "region": {"startLine": line, "startColumn": 1, "endLine": line, "endColumn": 2},
        },
        "logicalLocations": [logical],
    }


_WIDTH: Final = 7  # pixels per character; generous, because the viewer chooses the font
# Minimum score → color; white text on each color has a contrast of at least 4.5:1.
_COLORS: Final = ((95, "#2e7d32"), (80, "#5d7a00"), (0, "#8a5a00"))
_BAD: Final = "#b3261e"


def to_badge(report: ValidationReport) -> str:
    """Return a badge: `mcp | 97/100` (`, 2 waived`), `mcp | not shown to work` or `mcp | not promotable`."""
    waived = f", {len(report.waived)} waived" if report.waived else ""
    words = f"{report.score}/100{waived}" if report.passed else report.verdict_words
    color = _COLORS[-1][1] if report.verdict == "not shown" else _BAD
    if report.passed:
        color = next(color for least, color in _COLORS if report.score >= least)
    left, right = 4 * _WIDTH + 8, len(words) * _WIDTH + 12
    font = 'font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" fill="#fff" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="MCP: {words}">'
        f"<title>MCP: {words}</title>"
        f'<rect width="{left + right}" height="20" rx="3" fill="#444"/>'
        f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H{left}z" fill="{color}"/>'
        f'<text x="{left / 2:g}" y="14" {font}>MCP</text>'
        f'<text x="{left + right / 2:g}" y="14" {font}>{words}</text></svg>\n'
    )


_MOST: Final = 20  # maximum findings in the Markdown summary; other formats list all findings
_PROOF: Final = 1_500  # maximum characters of the evidence of one finding
_SIGNS: Final = re.compile(r"([\\`*_{}\[\]<>|#@!~])")


def to_markdown(report: ValidationReport) -> str:
    """Return the report as a pull request comment; the server's texts are escaped and cannot mention users."""
    return "\n".join(_markdown_lines(report)) + "\n"


def _markdown_lines(report: ValidationReport) -> Iterator[str]:
    verdict = report.verdict_words if report.passed else f"**{report.verdict_words}**"
    yield f"### {_escape_markdown(report.server.get('name') or report.target)}: {report.score}/100, {verdict}"
    yield ""
    if report.failed_gates:
        yield f"Closed gates: {', '.join(f'`{gate}`' for gate in report.failed_gates)}."
    yield (
        f"{pluralize(report.tools, 'tool')}, {pluralize(len(report.called), 'call')}, revisions {', '.join(report.revisions) or 'none'}; "
        f"{pluralize(len(report.findings), 'finding')}, {pluralize(len(report.not_checked), 'rule')} not checked, {len(report.waived)} waived."
    )
    groups = group_findings(report.findings)
    if groups:
        yield from ("", "| rule | grade | finding | location | hint |", "|---|---|---|---|---|")
    for alike in groups[:_MOST]:
        one = alike[0]
        where = _escape_markdown(describe_first_locations([finding.where for finding in alike]))
        follows = "".join(f"; follows: {_escape_markdown(line)}" for line in effect_lines(alike))
        yield f"| `{one.rule}` | {one.grade} | {_escape_markdown(one.message)}{follows} | {where} | {_escape_markdown(one.hint)} |"
    if len(groups) > _MOST:
        yield f"\n… and {len(groups) - _MOST} more."
    for alike in (alike for alike in groups[:_MOST] if alike[0].evidence):
        proof = printable_json(json.dumps(alike[0].evidence, indent=1, ensure_ascii=False))[:_PROOF].replace(
            "```", "'''"
        )
        yield f"\n<details><summary>Proof: {alike[0].rule}</summary>\n\n```json\n{proof}\n```\n</details>"
    if report.not_checked:
        yield from ("", "Not checked (counts as not passed):", "")
        yield from (f"- `{one.rule}`: {_escape_markdown(one.reason)}" for one in report.not_checked)
    if report.waivers:
        yield from ("", "| waiver | state | person | until | reason |", "|---|---|---|---|---|")
    for state in report.waivers:
        about = _escape_markdown(f" ({state.waiver.tool})") if state.waiver.tool else ""
        yield f"| `{state.waiver.rule}`{about} | {' | '.join(map(_escape_markdown, _waiver_cells(state)))} |"


def _escape_markdown(text: object) -> str:
    escaped = _SIGNS.sub(r"\\\1", " ".join(printable(str(text)).split()))
    return escaped.replace("\\@", "&#64;").replace("\\<", "&lt;").replace("\\#", "&#35;").replace("://", "&#58;//")


@dataclass(frozen=True, slots=True)
class ReportFormat:
    """A report format: its purpose, default file name and writer."""

    purpose: str
    file: str
    write: Callable[[ValidationReport], str]


def _json(report: ValidationReport) -> str:
    data = {**report.to_json(), "measured": dict(report.measured)}
    return printable_json(json.dumps(data, indent=2, ensure_ascii=False)) + "\n"


FORMATS: Final[Mapping[str, ReportFormat]] = {
    "text": ReportFormat("a person at a terminal", "report.txt", lambda report: printable(report.to_text())),
    "json": ReportFormat("programs: everything that is known", "report.json", _json),
    "junit": ReportFormat("test reports of a CI: each rule is a test case", "junit.xml", to_junit),
    "sarif": ReportFormat("code scanning (SARIF 2.1.0): each finding with its place", "report.sarif", to_sarif),
    "markdown": ReportFormat("a pull request: verdict, table, what to do", "report.md", to_markdown),
    "html": ReportFormat("a browser: one file that needs nothing else", "report.html", to_html),
    "badge": ReportFormat("a README: the score as a picture (SVG)", "badge.svg", to_badge),
}

_SUFFIXES: Final = {PurePath(form.file).suffix: name for name, form in FORMATS.items()}


def report_format_of(file: str) -> str | None:
    """Return the report format for a file name (`report.sarif` → sarif), or None."""
    return _SUFFIXES.get(PurePath(file).suffix.lower())
