"""Docstrings in Google's style → a description and a sentence for each parameter."""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import Final

__all__ = ["read_docstring"]

_SECTION: Final = re.compile(
    r"^(args|arguments|parameters|params|returns?|yields?|raises|attributes|examples?|notes?|see also|todo|warnings?)"
    r":\s*$",
    re.IGNORECASE,
)
_ARGUMENT_SECTIONS: Final = {"args", "arguments", "parameters", "params"}
_KEPT_SECTIONS: Final = {"example", "examples", "note", "notes", "warning", "warnings"}  # the model profits from these
_ARGUMENT: Final = re.compile(r"^\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?\s*:\s*(?P<text>.*)$")


def read_docstring(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Return the description (sections on arguments, results and errors taken out), and parameter → its sentence."""
    if not docstring:
        return "", {}
    description: list[str] = []
    arguments: list[str] = []
    target: list[str] | None = description
    for line in cleandoc(docstring).splitlines():
        section = _SECTION.match(line)
        if section:
            name = section[1].lower()
            target = arguments if name in _ARGUMENT_SECTIONS else description if name in _KEPT_SECTIONS else None
            if target is description:
                description.append(line)
            continue
        if target is not None:
            target.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(description)).strip(), _read_arguments(arguments)


def _read_arguments(lines: list[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    name, indent = "", None
    for line in lines:
        stripped = line.strip()
        depth = len(line) - len(line.lstrip())
        if not stripped:
            continue
        indent = depth if indent is None else indent
        match = _ARGUMENT.match(stripped) if depth <= indent else None
        if match:
            name = match["name"]
            texts[name] = match["text"].strip()
        elif name:
            texts[name] = f"{texts[name]} {stripped}".strip()
    return texts
