"""Changelogs and changelog fragments.

Each fragment is a separate file, so that branches with new fragments never conflict. The next release moves all
fragments into the changelog.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.servers.manifest_diff import Change
from mcpfactory_codegen.text import did_you_mean
from mcpfactory_pipeline.base.errors import ReleaseError
from mcpfactory_pipeline.base.text import escape_markdown
from mcpfactory_pipeline.base.versions import STEPS, Step

FOLDER: Final = "changes"
# Kind of change → version step; a file name can set another step.
KINDS: Final[dict[str, Step]] = {
    "added": "minor",
    "changed": "patch",
    "fixed": "patch",
    "removed": "major",
    "security": "patch",
}
_STATED: Final = tuple(step for step in STEPS if step != "none")
_NAME: Final = re.compile(r"(?P<words>[^.]+)\.(?P<kind>[a-z]+)(?:\.(?P<step>[a-z]+))?\.md")
_LONGEST: Final = 40  # maximum number of characters for the text in a file name


@dataclass(frozen=True, slots=True)
class ChangelogFragment:
    """A changelog fragment. `stated` is the version step in the file name."""

    file: str
    kind: str
    text: str
    stated: Step | None = None

    @property
    def step(self) -> Step:
        """Return the required version step."""
        return self.stated or KINDS[self.kind]

    def to_json(self) -> dict[str, Any]:
        """Return JSON-compatible data."""
        return {**asdict(self), "step": self.step}


def read_changelog_fragments(folder: Path) -> tuple[ChangelogFragment, ...]:
    """Return the fragments of the server in `folder`, sorted by kind and file name."""
    order = list(KINDS)
    found = [_read(file) for file in sorted((folder / FOLDER).glob("*.md")) if file.name.lower() != "readme.md"]
    return tuple(sorted(found, key=lambda note: (order.index(note.kind), note.file)))


def write_changelog_fragment(folder: Path, text: str, kind: str) -> ChangelogFragment:
    """Write a fragment for the server in `folder`."""
    text = text.strip()
    if not text:
        raise ReleaseError("note", "the note is empty", hint='mcpfactory release note NAME "what changed"')
    _check(kind, "", "the note")
    try:
        data = f"{text}\n".encode()
    except UnicodeEncodeError as error:  # the shell's input was not UTF-8
        raise ReleaseError("note", "the text is not in UTF-8", hint="set the terminal's encoding to UTF-8") from error
    stem = re.sub(r"[^a-z0-9]+", "-", text.lower())[:_LONGEST].strip("-") or "note"
    place, number = folder / FOLDER, 1
    while (file := place / f"{stem}{'' if number == 1 else f'-{number}'}.{kind}.md").exists():
        number += 1
    place.mkdir(exist_ok=True)
    file.write_bytes(data)
    return _read(file)


def _read(file: Path) -> ChangelogFragment:
    path, found = f"{FOLDER}/{file.name}", _NAME.fullmatch(file.name)
    if found is None:
        raise ReleaseError(
            "note",
            f"{path} is not a valid name for a note",
            hint=f"rename the file to WORDS.KIND.md; kinds: {', '.join(KINDS)}",
        )
    _check(found["kind"], found["step"] or "", path)
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ReleaseError("note", f"{path} cannot be read: {error}", hint="save the file as UTF-8 text") from error
    if not text:
        raise ReleaseError("note", f"{path} is empty", hint="write what changed, or delete the file")
    return ChangelogFragment(path, found["kind"], text, next((step for step in _STATED if step == found["step"]), None))


def _check(kind: str, step: str, what: str) -> None:
    if kind not in KINDS:
        raise ReleaseError("note", f"{what} has the unknown kind {kind!r}", hint=did_you_mean(kind, KINDS, "kinds"))
    if step and step not in _STATED:
        raise ReleaseError("note", f"{what} has the unknown step {step!r}", hint=did_you_mean(step, _STATED, "steps"))


FILE: Final = "CHANGELOG.md"
_TITLE: Final = "# Changelog\n"
_HEADING: Final = re.compile(r"^## .*$", re.MULTILINE)
_UNRELEASED: Final = re.compile(r"## \[?unreleased\b", re.IGNORECASE)
_MOST: Final = 50  # maximum number of tool changes in a section


def changelog_section(
    version: str, day: date, notes: Sequence[ChangelogFragment], changes: Iterable[Change], *, first: bool = False
) -> str:
    """Return the changelog section of a release: fragments by kind, then changes that affect callers."""
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


def insert_release_section(text: str, new: str) -> str:
    """Insert a release section after the unreleased changes, but before all older releases."""
    if not text.strip():
        return f"{_TITLE}\n{new}"
    for found in _HEADING.finditer(text):
        if not _UNRELEASED.match(found[0]):
            return f"{text[: found.start()]}{new}\n{text[found.start() :]}"
    return f"{text.rstrip()}\n\n{new}"


def section_of(text: str, version: str) -> str:
    """Return the section of a release without its heading, or ""."""
    headings = list(_HEADING.finditer(text))
    for number, found in enumerate(headings):
        if re.match(rf"## \[?{re.escape(version)}\b(?!\.)", found[0]):
            end = headings[number + 1].start() if number + 1 < len(headings) else len(text)
            return text[found.end() : end].strip()
    return ""


def unreleased_of(text: str) -> str:
    """Return the text below the heading `Unreleased`, or ""."""
    found, after = _unreleased(text)
    return text[found.end() : after].strip() if found else ""


def release_unreleased_section(text: str, version: str, day: date) -> str:
    """Replace the heading `Unreleased` with version and day."""
    found, _ = _unreleased(text)
    if found is None:
        raise ValueError("the changelog has no unreleased section")
    end = "\r" if found[0].endswith("\r") else ""
    return f"{text[: found.start()]}## {version} - {day.isoformat()}{end}{text[found.end() :]}"


def _unreleased(text: str) -> tuple[re.Match[str] | None, int]:
    headings = list(_HEADING.finditer(text))
    for number, found in enumerate(headings):
        if _UNRELEASED.match(found[0]):
            return found, headings[number + 1].start() if number + 1 < len(headings) else len(text)
    return None, 0


def _item(text: str) -> str:
    return "- " + "\n  ".join(line.rstrip() for line in text.splitlines()).replace("\n  \n", "\n\n")
