"""SARIF 2.1.0 (OASIS), for code scanning: rules, findings with places, waivers as suppressions.

Sections in this file are those of the standard. What a finding is about is a logical location (§3.33: the tool of the server);
in a workspace it also has a physical one (§3.29): the line where the tool is declared.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from mcpfactory_pipeline.base.text import printable_json
from mcpfactory_pipeline.checks.report import Finding, Report, Waived
from mcpfactory_pipeline.checks.root_cause import tool_of
from mcpfactory_pipeline.checks.rule import Rule
from mcpfactory_pipeline.checks.rules import RULES

_LEVELS: Final = {5: "error", 3: "error", 2: "warning", 1: "note"}  # §3.27.10


def to_sarif(report: Report) -> str:
    """Return the report as a SARIF log with one run."""
    spoken = [*(finding.rule for finding in report.findings), *(one.rule for one in report.waived)]
    known = {rule.id: rule for rule in RULES}
    order = list(dict.fromkeys([*report.checked, *spoken, *(one.rule for one in report.not_checked)]))
    index = {name: number for number, name in enumerate(order)}
    results = [_result(report, index, finding) for finding in report.findings]
    results += [_suppressed(report, index, known, one) for one in report.waived]
    _number_alike(results)
    run = {
        "tool": {
            "driver": {
                "name": "mcpfactory validate",
                "version": f"rules {report.rules_version}",
                "rules": [_rule(name, known.get(name)) for name in order],
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
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {
            "score": report.score,
            "promotable": report.passed,
            "verdict": report.verdict,
            "target": report.target,
        },
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return printable_json(json.dumps(log, indent=2, ensure_ascii=False)) + "\n"


def _rule(name: str, rule: Rule | None) -> dict[str, Any]:
    """§3.49 reportingDescriptor."""
    if rule is None:
        return {"id": name}
    return {
        "id": name,
        "shortDescription": {"text": rule.statement},
        "fullDescription": {"text": f"{rule.statement} Source: {rule.source}."},
        "help": {"text": rule.hint},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.family, *(["gate"] if rule.gate else [])], "severity": rule.severity},
    }


def _result(report: Report, index: Mapping[str, int], finding: Finding) -> dict[str, Any]:
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
        "suppressions": [],  # §3.27.23: all results have some, or none has
        "properties": properties,
    }


def _suppressed(report: Report, index: Mapping[str, int], known: Mapping[str, Rule], one: Waived) -> dict[str, Any]:
    """§3.35 suppression: a waiver of a person.

    Without `status`, which means accepted: the schemas that are in use call it `status` or `state`.
    """
    waiver = one.waiver
    words = f"{waiver.person}, until {waiver.until}: {waiver.reason}"
    severity = known[one.rule].severity if one.rule in known else 3
    return _about(report, index, one.rule, one.where) | {
        "level": _LEVELS[severity],
        "message": {"text": one.message},
        "suppressions": [{"kind": "external", "justification": words}],
    }


def _about(report: Report, index: Mapping[str, int], rule: str, where: str) -> dict[str, Any]:
    """Return the common fields of findings and suppressions; the fingerprint (§3.27.17) is the same in every run."""
    digest = hashlib.sha256(f"{rule}\n{where}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return {
        "ruleId": rule,
        "ruleIndex": index[rule],
        "locations": [_location(report, where)],
        "partialFingerprints": {"ruleAndPlace/v1": digest},
    }


def _number_alike(results: Iterable[dict[str, Any]]) -> None:
    """Make fingerprints of a rule's repeated results at one place distinct, because viewers merge equal ones."""
    seen: Counter[str] = Counter()
    for result in results:
        prints = result["partialFingerprints"]
        seen[digest := prints["ruleAndPlace/v1"]] += 1
        if seen[digest] > 1:
            prints["ruleAndPlace/v1"] = f"{digest}/{seen[digest]}"


def _location(report: Report, where: str) -> dict[str, Any]:
    names: Iterable[str] = (part for part in (report.target, where) if part)
    listed = {str(tool.get("name")) for tool in report.listed if isinstance(tool, dict)}
    tool = tool_of(where, listed)
    logical = {"fullyQualifiedName": " ".join(names), "kind": "function" if tool else "resource"}
    if tool or where:
        logical["name"] = tool or where
    location: dict[str, Any] = {"logicalLocations": [logical]}
    about = tool if tool and tool in report.locations else tool_of(where, report.locations.keys() - listed)
    place = report.locations.get(about)
    if place:
        file, line = place
        location["physicalLocation"] = {"artifactLocation": {"uri": quote(file)}, "region": {"startLine": line}}
    return location
