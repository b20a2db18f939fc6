"""Every problem code that reading and selecting can report, and the collector that gathers problems as values.

A code is stable: people filter on it and docs/reference/problems.md explains it (a test compares the two lists).
A new code is one line here and one section there.
"""

from __future__ import annotations

from typing import Final, Literal

from mcpfactory_codegen.ir import Problem

__all__ = ["CODES", "Problems", "escape"]

Level = Literal["error", "warning"]

CODES: Final[dict[str, Level]] = {
    # the document
    "document-encoding": "warning",
    "document-syntax": "warning",
    "document-duplicate-key": "warning",
    "document-tag": "warning",
    "document-many": "warning",
    "document-text": "warning",
    "document-key": "warning",
    "version-unknown": "warning",
    "version-unsupported": "error",
    "info-invalid": "warning",
    "text-invalid": "warning",
    "webhooks-ignored": "warning",
    "too-many-operations": "error",
    # references
    "reference-dangling": "error",
    "reference-cycle": "error",
    "reference-refused": "error",
    "reference-siblings": "warning",
    "reference-mended": "warning",
    # paths and operations
    "paths-invalid": "error",
    "path-invalid": "error",
    "path-slash": "warning",
    "path-odd": "warning",
    "path-method": "warning",
    "operation-invalid": "error",
    "operation-duplicate": "error",
    "operation-unreadable": "error",
    "operation-reference": "warning",
    "operation-id": "warning",
    "operation-tags": "warning",
    "callbacks-ignored": "warning",
    # parameters
    "parameter-invalid": "error",
    "parameter-header": "error",
    "parameter-duplicate": "warning",
    "parameter-ignored": "warning",
    "parameter-undeclared": "warning",
    "parameter-unused": "warning",
    "parameter-required": "warning",
    "parameter-style": "warning",
    "parameter-schema": "warning",
    "parameter-shape": "warning",
    "parameter-place": "warning",
    # bodies and responses
    "body-invalid": "error",
    "body-empty": "warning",
    "body-media": "warning",
    "body-encoding": "warning",
    "body-shape": "warning",
    "body-xml": "warning",
    "workflow-invalid": "error",
    "response-invalid": "warning",
    "media-invalid": "warning",
    # schemas
    "schema-invalid": "warning",
    "schema-keyword": "warning",
    "schema-unknown-keyword": "warning",
    "schema-dialect": "warning",
    "schema-default": "warning",
    "schema-required": "warning",
    "schema-type": "warning",
    "schema-enum": "warning",
    "schema-pattern": "warning",
    "schema-deep": "error",
    "schema-cycle": "warning",
    "schema-budget": "error",
    # servers and security
    "server-invalid": "warning",
    "server-relative": "warning",
    "server-none": "warning",
    "security-invalid": "error",
    "security-undefined": "error",
    "security-unsupported": "error",
    "security-shape": "warning",
    "security-unapplied": "warning",
    # overlays
    "overlay-invalid": "error",
    "overlay-unmatched": "warning",
    # selection
    "selection-unmatched": "warning",
    "profile-empty": "warning",
    "profile-unknown": "warning",
}

_MOST: Final[dict[Level, int]] = {"error": 1000, "warning": 50}
"""Problems listed per code. A document with one habit a thousand times is told once a page, not a thousand times."""


def escape(token: str) -> str:
    """One reference token of a JSON pointer (RFC 6901 section 3)."""
    return token.replace("~", "~0").replace("/", "~1") if "~" in token or "/" in token else token


class Problems:
    """Gathers problems in the order in which they are met; each (code, pointer) once, each code a bounded number of times."""

    def __init__(self) -> None:
        self._listed: list[Problem] = []
        self._seen: set[tuple[str, str]] = set()
        self._count: dict[str, int] = {}

    def add(self, code: str, pointer: str, message: str, hint: str = "") -> None:
        """Report one problem. `code` is a key of CODES (KeyError otherwise), which also gives the level."""
        level = CODES[code]
        if (code, pointer) in self._seen:
            return
        count = self._count[code] = self._count.get(code, 0) + 1
        if count > _MOST[level]:
            return
        self._seen.add((code, pointer))
        self._listed.append(Problem(level, code, pointer, message, hint))

    def extend(self, problems: tuple[Problem, ...]) -> None:
        """Take over problems that another part has found."""
        for problem in problems:
            self.add(problem.code, problem.pointer, problem.message, problem.hint)

    def all(self) -> tuple[Problem, ...]:
        """Return what was gathered, errors first; a last line per code says how many more there were."""
        listed = list(self._listed)
        for code, count in self._count.items():
            level = CODES[code]
            if count > _MOST[level]:
                listed.append(
                    Problem(level, code, "", f"{count - _MOST[level]} more problems of this kind are not listed")
                )
        return tuple(sorted(listed, key=lambda problem: problem.level != "error"))
