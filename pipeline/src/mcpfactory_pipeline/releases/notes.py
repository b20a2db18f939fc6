"""Changelog fragments: one file for each change that people should read about, `servers/NAME/changes/WORDS.KIND[.STEP].md`.

A file of its own for each, so that branches which both add one never conflict. The next release gathers them.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.text import listed
from mcpfactory_pipeline.base.errors import ReleaseError
from mcpfactory_pipeline.base.semver import STEPS, Step

__all__ = ["FOLDER", "KINDS", "Note", "add_note", "read_notes"]

FOLDER: Final = "changes"
# What a kind asks for, unless its file says another step.
KINDS: Final[dict[str, Step]] = {
    "added": "minor",
    "changed": "patch",
    "fixed": "patch",
    "removed": "major",
    "security": "patch",
}
_STATED: Final = tuple(step for step in STEPS if step != "none")
_NAME: Final = re.compile(r"(?P<words>[^.]+)\.(?P<kind>[a-z]+)(?:\.(?P<step>[a-z]+))?\.md")
_LONGEST: Final = 40  # characters of a file's name that come from the text


@dataclass(frozen=True, slots=True)
class Note:
    """One fragment: its file below the server's folder, its kind, its text, and the step that the file states itself, if any."""

    file: str
    kind: str
    text: str
    stated: Step | None = None

    @property
    def step(self) -> Step:
        """The step of the version that it asks for."""
        return self.stated or KINDS[self.kind]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "step": self.step}


def read_notes(folder: Path) -> tuple[Note, ...]:
    """Return the fragments of the server in `folder`, by kind and file.

    Raises:
        ReleaseError: one cannot be used.
    """
    order = list(KINDS)
    found = [_read(file) for file in sorted((folder / FOLDER).glob("*.md")) if file.name.lower() != "readme.md"]
    return tuple(sorted(found, key=lambda note: (order.index(note.kind), note.file)))


def add_note(folder: Path, text: str, kind: str) -> Note:
    """Write a fragment for the server in `folder`.

    Raises:
        ReleaseError: the text is empty or not in UTF-8, or there is no such kind.
    """
    text = text.strip()
    if not text:
        raise ReleaseError("note", "a note without text is none", hint='mcpfactory release note NAME "what changed"')
    _check(kind, "", "the note")
    try:
        data = f"{text}\n".encode()
    except UnicodeEncodeError as error:  # the shell gave bytes of another encoding
        raise ReleaseError("note", "the text is not in UTF-8", hint="is the terminal's encoding UTF-8?") from error
    stem = re.sub(r"[^a-z0-9]+", "-", text.lower())[:_LONGEST].strip("-") or "note"
    place, number = folder / FOLDER, 1
    while (file := place / f"{stem}{'' if number == 1 else f'-{number}'}.{kind}.md").exists():
        number += 1
    place.mkdir(exist_ok=True)
    file.write_bytes(data)
    return _read(file)


def _read(file: Path) -> Note:
    path, found = f"{FOLDER}/{file.name}", _NAME.fullmatch(file.name)
    if found is None:
        raise ReleaseError("note", f"{path} is no name of a note", hint=f"WORDS.KIND.md; kinds: {', '.join(KINDS)}")
    _check(found["kind"], found["step"] or "", path)
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ReleaseError("note", f"{path} cannot be read: {error}", hint="text in UTF-8") from error
    if not text:
        raise ReleaseError("note", f"{path} is empty", hint="write what changed, or delete it")
    return Note(path, found["kind"], text, next((step for step in _STATED if step == found["step"]), None))


def _check(kind: str, step: str, what: str) -> None:
    if kind not in KINDS:
        raise ReleaseError("note", f"{what} has the kind {kind!r}, which is none", hint=listed(kind, KINDS, "kinds"))
    if step and step not in _STATED:
        raise ReleaseError(
            "note", f"{what} states the step {step!r}, which is none", hint=listed(step, _STATED, "steps")
        )
