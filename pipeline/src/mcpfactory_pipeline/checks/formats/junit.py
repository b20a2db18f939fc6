"""JUnit XML, as CI servers read it: the rules are the test cases.

A rule with findings is a failure (its type says `gate` or the severity), one that could not be checked is an error, one that
is waived or does not apply is skipped, with the reason. Findings of severity 1 recommend: their rule passes, and its output has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree as ET

from mcpfactory_pipeline.base.text import printable
from mcpfactory_pipeline.checks.report import Finding, Report, finding_lines, group_findings

# XML 1.0 §2.2: these characters cannot be in a document, not even as references.
_FORBIDDEN: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(report: Report) -> str:
    """Return the report as one test suite."""
    cases = list(_cases(report))
    counts = {kind: sum(case.find(kind) is not None for case in cases) for kind in ("failure", "error", "skipped")}
    suite = ET.Element(
        "testsuite",
        name=_plain(f"mcpfactory validate {report.target}"),
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


def _cases(report: Report) -> Iterator[ET.Element]:
    found: dict[str, list[Finding]] = {}
    for finding in report.findings:
        found.setdefault(finding.rule, []).append(finding)
    waived = {one.rule: one for one in report.waived}
    for rule in report.checked:
        case = _case(rule)
        if findings := found.get(rule):
            _told(case, findings)
        elif rule in waived:
            _skipped(case, f"waived by {waived[rule].waiver.person}: {waived[rule].waiver.reason}")
        yield case
    for unchecked in report.not_checked:
        case = _case(unchecked.rule)
        ET.SubElement(case, "error", type="not checked", message=_plain(unchecked.reason))
        yield case
    for rule, one in waived.items():
        if rule not in report.checked:
            case = _case(rule)
            _skipped(case, f"waived by {one.waiver.person}: {one.waiver.reason}")
            yield case
    for rule, reason in report.not_applicable.items():
        case = _case(rule)
        _skipped(case, reason)
        yield case


def _told(case: ET.Element, findings: list[Finding]) -> None:
    text = _plain("\n".join(line for alike in group_findings(findings) for line in finding_lines(alike)))
    worst = max(findings, key=lambda finding: (finding.gate, finding.severity))
    if worst.severity == 1 and not worst.gate:
        ET.SubElement(case, "system-out").text = text
        return
    grade = "gate" if worst.gate else f"severity {worst.severity}"
    ET.SubElement(case, "failure", type=grade, message=_plain(worst.message)).text = text


def _case(rule: str) -> ET.Element:
    return ET.Element("testcase", classname=f"mcpfactory.{rule.partition('.')[0]}", name=rule, time="0")


def _skipped(case: ET.Element, reason: str) -> None:
    ET.SubElement(case, "skipped", message=_plain(reason))


def _plain(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", printable(text))
