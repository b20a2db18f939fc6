"""What stopped a server, from the files that its stages left: the rule or test, and the line of the document behind it."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.staging.arrival import Found, Obstacle, Source
from mcpfactory_codegen.ir import escape
from mcpfactory_codegen.read.document import load
from mcpfactory_codegen.read.lines import lines_of

__all__ = ["Made", "found", "obstacles"]

_MOST = 3  # obstacles of one rule, or kind of test
_LONGEST = 300
_LEAST = 2  # the severity of findings that are told of servers that arrive, too


class Made:
    """The server of a document, and the files that its stages left."""

    def __init__(self, source: Source, workspace: Path) -> None:
        self.source = source
        self.folder = workspace / "servers" / source.name
        self.artifacts = workspace / "pipeline" / "artifacts" / source.name

    @cached_property
    def report(self) -> dict[str, Any]:
        """What generation says of the server; nothing when there is none."""
        return _json(self.folder / ".mcpfactory" / "report.json")

    @cached_property
    def validation(self) -> dict[str, Any]:
        """The report of stage validate; nothing when there is none."""
        file = next(self.artifacts.glob("*/validate/report.json"), None)
        return _json(file) if file else {}

    @property
    def tools(self) -> int:
        """How many tools it has."""
        return len(self.report.get("tools", ()))

    @property
    def operations(self) -> int:
        """How many operations the document has, by the report."""
        return self.tools + len(self.report.get("skipped", ()))

    def place(self, tool: str) -> str:
        """`line N` and the pointer of the operation behind a tool."""
        operation = next((one.get("operation") for one in self.report.get("tools", ()) if one["name"] == tool), None)
        if not operation:
            return ""
        pointer = f"/paths/{escape(operation['path'])}/{operation['method'].lower()}"
        return f"{self.source.file.name}:{self._line(pointer)} {pointer}"

    def _line(self, pointer: str) -> int:
        return lines_of(self._text, [pointer]).get(pointer, 0)

    @cached_property
    def _text(self) -> Any:
        document = load(str(self.source.file))
        return document.parts[document.main]


def obstacles(server: Made, failed: Mapping[str, str]) -> Iterator[Obstacle]:
    """What the stages that failed found; at least one for each.

    Args:
        server: with the files that its stages left.
        failed: stage → its message.
    """
    readers = {"generate": _problems, "test": _tests, "validate": _findings}
    for stage, message in failed.items():
        found = list(readers[stage](server)) if stage in readers else []
        yield from found or [Obstacle(stage, "", message[:_LONGEST])]


def found(server: Made) -> Iterator[Found]:
    """What validate found of severity 2 and more, rule by rule in the order of its report, whether it closed a gate or not."""
    rules: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for one in server.validation.get("findings", ()):
        if one["severity"] >= _LEAST:
            rules.setdefault((one["rule"], one["severity"]), []).append(one)
    for (rule, severity), all_of_it in rules.items():
        first = all_of_it[:_MOST]
        texts = tuple(_one_line(f"{one.get('where') or ''}: {one['message']}") for one in first)
        yield Found(rule, severity, len(all_of_it), texts, tuple(server.place(_tool(one)) for one in first))


def _problems(server: Made) -> Iterator[Obstacle]:
    errors = [one for one in server.report.get("problems", ()) if one["level"] == "error"]
    for one in errors[:_MOST]:
        place = f"{server.source.file.name}:{one['line']} {one['pointer']}"
        yield Obstacle("generate", one["code"], one["message"][:_LONGEST], place)


def _tests(server: Made) -> Iterator[Obstacle]:
    """The tests that failed, the first of each function."""
    file = next(server.artifacts.glob("*/test/junit.xml"), None)
    if file is None:
        return
    seen: dict[str, int] = {}
    for case in ET.parse(file).getroot().iter("testcase"):
        wrong = case.find("failure")
        wrong = case.find("error") if wrong is None else wrong
        if wrong is None:
            continue
        function, _, parameters = str(case.get("name")).partition("[")
        seen[function] = seen.get(function, 0) + 1
        if seen[function] <= _MOST:
            tool = parameters.partition("-")[0]
            text = f"{tool}: {parameters.rstrip(']').partition('-')[2]}: {wrong.get('message') or wrong.text or ''}"
            yield Obstacle("test", function, _one_line(text), server.place(tool))


def _findings(server: Made) -> Iterator[Obstacle]:
    """The findings that close a gate, the first of each rule."""
    report = server.validation
    seen: dict[str, int] = {}
    for finding in report.get("findings", ()):
        rule = finding["rule"]
        seen[rule] = seen.get(rule, 0) + 1
        if rule in report["failed_gates"] and seen[rule] <= _MOST:
            tool = _tool(finding)
            yield Obstacle("validate", rule, _one_line(f"{tool}: {finding['message']}"), server.place(tool))
    yield from _unchecked([rule for rule in report.get("failed_gates", ()) if rule not in seen], report, server)


def _unchecked(rules: Sequence[str], report: Mapping[str, Any], server: Made) -> Iterator[Obstacle]:
    """Gates that are closed as nothing could be checked: one obstacle, with the tools that could not be called."""
    if rules:
        idle: Mapping[str, str] = report.get("not_called", {})
        tool = next(iter(idle), "")
        more = f", and so {len(idle) - 1} more" if len(idle) > 1 else ""
        also = f" (and {len(rules) - 1} gates)" if len(rules) > 1 else ""
        text = f"could not be checked{also}: {tool}: {idle.get(tool, 'no tool was called')}{more}"
        yield Obstacle("validate", rules[0], _one_line(text), server.place(tool))


def _tool(finding: Mapping[str, Any]) -> str:
    return str(finding.get("where") or "").partition(".")[0]


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()[:_LONGEST]


def _json(file: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    except OSError:
        return {}
    return found
