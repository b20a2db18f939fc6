"""The forms in which a report is given: a table, one writer each. All pure: a report in, a text out.

What a server said is printable in all of them: it acts on no terminal, no CI and no reader.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from mcpfactory_pipeline.base.text import printable, printable_json
from mcpfactory_pipeline.checks.formats.badge import to_badge
from mcpfactory_pipeline.checks.formats.html import to_html
from mcpfactory_pipeline.checks.formats.junit import to_junit
from mcpfactory_pipeline.checks.formats.markdown import to_markdown
from mcpfactory_pipeline.checks.formats.sarif import to_sarif
from mcpfactory_pipeline.checks.report import Report

__all__ = ["FORMATS", "Format", "format_of"]


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
