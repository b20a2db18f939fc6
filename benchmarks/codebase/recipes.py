"""The recipes of CONTRIBUTING.md as data: for each change that a newcomer makes, the files that it touches and what to run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SECTION: Final = re.compile(r"^## Recipes$(.*?)(?=^## )", re.MULTILINE | re.DOTALL)
_RECIPE: Final = re.compile(r"^### (.+?)$(.*?)(?=^### |\Z)", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"^- `([^`]+)`", re.MULTILINE)
_BLOCK: Final = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one kind of change is made.

    Attributes:
        name: what is new then, such as "stage".
        files: the files that are touched, in order; `<name>` stands for a name, and a folder for all that is in it.
        commands: what to run then.
    """

    name: str
    files: tuple[str, ...]
    commands: str

    def covers(self, path: str) -> list[str]:
        """Return those of `files` that a path of the tree is."""
        return [file for file in self.files if _pattern(file).fullmatch(path)]


def _pattern(file: str) -> re.Pattern[str]:
    name = re.sub(r"<[a-z]+>", r"[^/]+", re.escape(file))
    return re.compile(name + ".+" if file.endswith("/") else name)


def read_recipes(root: Path) -> dict[str, Recipe]:
    """Return the recipes that CONTRIBUTING.md of a tree has, by name; none where there is no such section."""
    page = root / "CONTRIBUTING.md"
    section = _SECTION.search(page.read_text(encoding="utf-8")) if page.is_file() else None
    found = _RECIPE.findall(section[1]) if section else []
    return {
        name: Recipe(name, tuple(_FILE.findall(text)), "".join(_BLOCK.findall(text)).strip()) for name, text in found
    }
