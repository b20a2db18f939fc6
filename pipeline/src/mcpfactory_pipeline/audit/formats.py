"""The forms of an audit's report: a table, one writer each. All pure: a report in, a text out, and nothing of it acts on who shows it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from mcpfactory_pipeline.audit.report import AuditFinding, AuditReport, InventoryRow
from mcpfactory_pipeline.audit.rule import AuditRule
from mcpfactory_pipeline.base.text import escape_markdown, pluralize, printable, printable_json, table_lines

__all__ = ["FORMATS", "headline"]

_LEVELS: Final = {5: "error", 3: "error", 2: "warning", 1: "note"}  # SARIF §3.27.10
_HEADER: Final = ("CLIENT", "SCOPE", "NAME", "STARTS", "VERSION", "REACHES")


def headline(report: AuditReport) -> str:
    """Return the report in one line."""
    unread = sum(bool(row.problem) for row in report.files)
    counts = Counter(one.severity for one in report.findings)
    grades = ", ".join(f"{counts[severity]} of severity {severity}" for severity in (5, 3, 2, 1) if counts[severity])
    found = f"{pluralize(len(report.findings), 'finding')}{f': {grades}' if grades else ''}"
    lost = f" ({unread} could not be read)" if unread else ""
    return f"{pluralize(len(report.servers), 'server')} in {pluralize(len(report.files), 'file')}{lost}, {found}"


def to_text(report: AuditReport, width: int | None = None) -> str:
    """Return the report for a person at a terminal."""
    return "\n".join(map(printable, _text(report, width))) + "\n"


def _text(report: AuditReport, width: int | None) -> Iterator[str]:
    yield headline(report)
    if report.servers:
        yield ""
        rows = [_HEADER, *(tuple(map(_one_line, _cells(one))) for one in report.servers)]
        for lines in table_lines(rows, width):
            yield from lines
    for row in report.files:
        if row.problem:
            yield from ("", f"{_one_line(row.file)} ({row.client or 'no client'}): {_one_line(row.problem)}")
    for one in report.findings:
        yield from ("", f"{one.rule} [severity {one.severity}] {_one_line(_where(one))}", f"  {_one_line(one.message)}")
        yield f"  hint: {one.hint}"


def _one_line(text: str) -> str:
    return printable(text.replace("\x1b", "\\x1b")).replace("\n", "\\n").replace("\t", "\\t")


def _cells(one: InventoryRow) -> tuple[str, ...]:
    version = one.version or {"floating": "any", "branch": "a branch"}.get(one.pin, "-")
    state = "" if one.enabled else " (off)"
    tools = f"{len(one.tools)} tools; " if one.tools is not None else ""
    return (
        one.client or "-",
        one.scope,
        f"{one.name}{state}",
        f"{one.starts}: {one.target}",
        version,
        f"{tools}{one.reach}" or "-",
    )


def _where(one: AuditFinding) -> str:
    place = f"{one.file}:{one.line}" if one.file else ""
    return f"{one.server} in {place}" if one.server and place else one.server or place


def _json(report: AuditReport) -> str:
    return printable_json(json.dumps(report.to_json(), indent=2, ensure_ascii=False)) + "\n"


def _markdown(report: AuditReport) -> str:
    return "\n".join(_markdown_lines(report)) + "\n"


def _markdown_lines(report: AuditReport) -> Iterator[str]:
    yield f"### {headline(report)}"
    if report.servers:
        yield from ("", f"| {' | '.join(cell.lower() for cell in _HEADER)} |", "|---|---|---|---|---|---|")
    for one in report.servers:
        yield f"| {' | '.join(map(_cell, _cells(one)))} |"
    if report.findings:
        yield from ("", "| rule | severity | where | what | what to do |", "|---|---|---|---|---|")
    for found in report.findings:
        yield f"| `{found.rule}` | {found.severity} | {_cell(_where(found))} | {_cell(found.message)} | {_cell(found.hint)} |"


def _cell(text: str) -> str:
    return escape_markdown(_one_line(text))


def _sarif(report: AuditReport) -> str:
    """SARIF 2.1.0 (OASIS). Sections are those of the standard; places are files below the home folder, or of the project."""
    order = {rule.id: number for number, rule in enumerate(report.rules)}
    results = [_result(order, one) for one in report.findings]
    seen: Counter[str] = Counter()
    for result in results:  # §3.27.17: equal fingerprints would be one result to who compares runs
        digest = result["partialFingerprints"]["ruleAndPlace/v1"]
        seen[digest] += 1
        if seen[digest] > 1:
            result["partialFingerprints"]["ruleAndPlace/v1"] = f"{digest}/{seen[digest]}"
    unread = [row for row in report.files if row.problem]
    run = {
        "tool": {
            "driver": {"name": "mcpfactory audit", "version": "1", "rules": [_rule(rule) for rule in report.rules]}
        },
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {"level": "warning", "message": {"text": f"{row.file} was not read: {row.problem}"}}
                    for row in unread
                ],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {"servers": len(report.servers), "started": report.started},
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return printable_json(json.dumps(log, indent=2, ensure_ascii=False)) + "\n"


def _rule(rule: AuditRule) -> dict[str, Any]:
    """§3.49 reportingDescriptor."""
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.statement},
        "fullDescription": {"text": f"{rule.statement} Reason: {rule.reason}."},
        "help": {"text": rule.hint},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.family], "severity": rule.severity},
    }


def _result(order: Mapping[str, int], one: AuditFinding) -> dict[str, Any]:
    """§3.27 result."""
    name = "/".join(part for part in (one.client, one.scope, one.server) if part) or "audit"
    digest = hashlib.sha256(f"{one.rule}\n{one.file}\n{name}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": name, "kind": "resource"}]}
    if one.file:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": quote(one.file, safe="/~:")},
            "region": {"startLine": max(one.line, 1)},
        }
    return {
        "ruleId": one.rule,
        "ruleIndex": order[one.rule],
        "level": _LEVELS[one.severity],
        "message": {"text": f"{one.message}\nhint: {one.hint}"},
        "locations": [location],
        "partialFingerprints": {"ruleAndPlace/v1": digest},
        "properties": {"severity": one.severity},
    }


FORMATS: Final[Mapping[str, Callable[[AuditReport], str]]] = {
    "text": to_text,
    "json": _json,
    "markdown": _markdown,
    "sarif": _sarif,
}
