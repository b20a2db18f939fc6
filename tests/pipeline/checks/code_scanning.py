"""What GitHub requires of a SARIF file: "SARIF support for code scanning" and the limits of uploads.

Some requirements are stricter here: our paths are never absolute, and a fingerprint names one result only.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

LEVELS = {"note", "warning", "error"}
PRECISIONS = {"very-high", "high", "medium", "low"}
PROBLEMS = {"error", "warning", "recommendation"}


def upload_faults(log: Any, root: Path | None = None) -> list[str]:
    """Return the reasons for which GitHub would refuse or not show a file; `root` is the folder of the repository."""
    return list(_faults(log, root))


def _faults(log: Any, root: Path | None) -> Iterator[str]:
    if log.get("version") != "2.1.0" or not str(log.get("$schema")).startswith("https://"):
        yield "schema and version"
    if len(gzip.compress(json.dumps(log).encode())) > 10_000_000:
        yield "size"
    (run,) = log["runs"]
    driver, results = run["tool"]["driver"], run["results"]
    rules = driver["rules"]
    if not driver["name"] or not driver["version"]:
        yield "tool"
    if len(results) > 5_000 or len(rules) > 25_000:
        yield "number of results and rules"
    if len({rule["id"] for rule in rules}) < len(rules):
        yield "ids of rules"
    order = ["error", "warning", "note"]
    open_alerts = [order.index(result["level"]) for result in results if not result["suppressions"]]
    if open_alerts != sorted(open_alerts):
        yield "the worst results are first"
    for rule in rules:
        yield from (f"{rule['id']}: {fault}" for fault in _rule_faults(rule))
    for result in results:
        yield from (f"{result.get('ruleId')}: {fault}" for fault in _result_faults(result, rules, root))
    prints = [(one.get("ruleId"), one.get("partialFingerprints", {}).get("primaryLocationLineHash")) for one in results]
    if len(set(prints)) < len(prints):
        yield "fingerprints are not unique"


def _rule_faults(rule: Any) -> Iterator[str]:
    properties = rule["properties"]
    for name in ("shortDescription", "fullDescription"):
        if not 0 < len(rule.get(name, {}).get("text", "")) <= 1024:
            yield name
    if not rule.get("help", {}).get("text"):
        yield "help"
    if not 0 < len(rule.get("name", "")) <= 255:
        yield "name"
    if rule["defaultConfiguration"]["level"] not in LEVELS:
        yield "level"
    if properties.get("precision") not in PRECISIONS or properties.get("problem.severity") not in PROBLEMS:
        yield "precision and problem.severity"
    tags = properties.get("tags", [])
    if not tags or len(tags) > 10 or len(set(tags)) < len(tags):  # 20 are accepted, 10 are shown
        yield "tags"
    score = properties.get("security-severity")
    if (
        (score is not None) != ("security" in tags)
        or not 0 < float(score or 1) <= 10
        or not isinstance(score or "", str)
    ):
        yield "security-severity"


def _result_faults(result: Any, rules: Any, root: Path | None) -> Iterator[str]:
    if result["level"] not in LEVELS or not result["message"]["text"]:
        yield "level and message"
    if rules[result["ruleIndex"]]["id"] != result["ruleId"]:
        yield "ruleIndex"
    if not re.fullmatch(
        "[0-9a-f]{16,}:[1-9][0-9]*", result.get("partialFingerprints", {}).get("primaryLocationLineHash", "")
    ):
        yield "primaryLocationLineHash"
    if len(result.get("locations", [])) != 1 or "physicalLocation" not in result["locations"][0]:
        yield "location"
        return
    place = result["locations"][0]["physicalLocation"]
    uri, region = place["artifactLocation"]["uri"], place["region"]
    if not re.fullmatch(r"[A-Za-z0-9._~%@+-][A-Za-z0-9._~%@+/-]*", uri) or ".." in uri.split("/"):
        yield f"uri {uri}"
    if place["artifactLocation"].get("uriBaseId") != "%SRCROOT%":
        yield "uriBaseId"
    if root is not None:
        file = root / unquote(uri)
        if not file.is_file() or file.resolve() != root.resolve() / unquote(uri):
            yield f"{uri} is no file of the repository"
        elif region["startLine"] > max(1, len(file.read_text(encoding="utf-8").splitlines())):
            yield f"{uri} has no line {region['startLine']}"
    lines, columns = ([region.get(f"{at}{what}", 0) for at in ("start", "end")] for what in ("Line", "Column"))
    if not 1 <= lines[0] <= lines[1] or not 1 <= columns[0] < columns[1]:
        yield "region"
