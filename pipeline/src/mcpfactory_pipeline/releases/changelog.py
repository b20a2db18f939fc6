"""A CHANGELOG.md, of a server or of a workspace: the section of a release, and where it goes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final

from mcpfactory_codegen.servers.diff import Change
from mcpfactory_pipeline.base.text import escape_markdown
from mcpfactory_pipeline.releases.notes import KINDS, Note

__all__ = ["FILE", "section", "section_of", "unreleased_of", "with_release", "with_section"]

FILE: Final = "CHANGELOG.md"
_TITLE: Final = "# Changelog\n"
_HEADING: Final = re.compile(r"^## .*$", re.MULTILINE)
_UNRELEASED: Final = re.compile(r"## \[?unreleased\b", re.IGNORECASE)
_MOST: Final = 50  # changes of the contract that are listed


def section(version: str, day: date, notes: Sequence[Note], changes: Iterable[Change], *, first: bool = False) -> str:
    """Return what is said of a release: the notes by their kind, then what callers of the tools meet, as the contract has it."""
    parts = [f"## {version} - {day.isoformat()}\n"]
    for kind in KINDS:
        texts = [_item(note.text) for note in notes if note.kind == kind]
        if texts:
            parts.append(f"### {kind.capitalize()}\n\n" + "\n".join(texts) + "\n")
    met = sorted((one for one in changes if one.kind != "cosmetic"), key=lambda one: one.kind != "breaking")
    if met:
        lines = [f"- {one.kind}: {escape_markdown(one.message)}" for one in met[:_MOST]]
        lines += [f"- and {len(met) - _MOST} more"] if len(met) > _MOST else []
        parts.append("### For callers\n\n" + "\n".join(lines) + "\n")
    if len(parts) == 1:
        parts.append("The first release.\n" if first else "Nothing changes for callers.\n")
    return "\n".join(parts)


def with_section(text: str, new: str) -> str:
    """Return a changelog with a section more: before those of other releases, after what is not released yet; a new one when empty."""
    if not text.strip():
        return f"{_TITLE}\n{new}"
    for found in _HEADING.finditer(text):
        if not _UNRELEASED.match(found[0]):
            return f"{text[: found.start()]}{new}\n{text[found.start() :]}"
    return f"{text.rstrip()}\n\n{new}"


def section_of(text: str, version: str) -> str:
    """Return the section of a release without its heading; "" when there is none."""
    headings = list(_HEADING.finditer(text))
    for number, found in enumerate(headings):
        if re.match(rf"## \[?{re.escape(version)}\b(?!\.)", found[0]):
            end = headings[number + 1].start() if number + 1 < len(headings) else len(text)
            return text[found.end() : end].strip()
    return ""


def unreleased_of(text: str) -> str:
    """Return what stands below the heading `Unreleased`; "" when there is none, or nothing below it."""
    found, after = _unreleased(text)
    return text[found.end() : after].strip() if found else ""


def with_release(text: str, version: str, day: date) -> str:
    """Return a changelog whose unreleased section is that of a release: its heading names the version and the day."""
    found, _ = _unreleased(text)
    if found is None:
        raise ValueError("a changelog without an unreleased section")
    end = "\r" if found[0].endswith("\r") else ""
    return f"{text[: found.start()]}## {version} - {day.isoformat()}{end}{text[found.end() :]}"


def _unreleased(text: str) -> tuple[re.Match[str] | None, int]:
    """Return the heading of the unreleased section, and where the section ends."""
    headings = list(_HEADING.finditer(text))
    for number, found in enumerate(headings):
        if _UNRELEASED.match(found[0]):
            return found, headings[number + 1].start() if number + 1 < len(headings) else len(text)
    return None, 0


def _item(text: str) -> str:
    return "- " + "\n  ".join(line.rstrip() for line in text.splitlines()).replace("\n  \n", "\n\n")
