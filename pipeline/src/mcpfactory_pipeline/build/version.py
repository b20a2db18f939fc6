"""Where a server keeps its version: `project.version` of its pyproject.toml, or `__version__` of its package."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import ReleaseError

__all__ = ["with_version"]

_PROJECT: Final = re.compile(r"^\[project\][^\n]*\n(?P<table>(?:(?!^\[).*\n?)*)", re.MULTILINE)
_STATIC: Final = re.compile(r"""^(?P<key>version\s*=\s*)(?P<quote>["'])[^"'\n]*(?P=quote)""", re.MULTILINE)
_DYNAMIC: Final = re.compile(r"""^(?P<key>__version__\s*=\s*)(?P<quote>["'])[^"'\n]*(?P=quote)""", re.MULTILINE)


def with_version(folder: Path, package: str, version: str) -> tuple[str, str]:
    """Return the file of the server in `folder` that states its version, by its path there, and its text with another version.

    Raises:
        ReleaseError: it is in neither.
    """
    path = "pyproject.toml"
    text = _text(folder / path)
    if (table := _PROJECT.search(text)) and _STATIC.search(table["table"]):
        start, end = table.span("table")
        return path, text[:start] + _replace(_STATIC, table["table"], version) + text[end:]
    path = f"src/{package.replace('.', '/')}/__init__.py"
    text = _text(folder / path)
    if _DYNAMIC.search(text):
        return path, _replace(_DYNAMIC, text, version)
    raise ReleaseError(
        "version",
        f"neither pyproject.toml nor {path} states the version",
        hint='write version = "0.1.0" below [project] of pyproject.toml',
    )


def _replace(pattern: re.Pattern[str], text: str, version: str) -> str:
    return pattern.sub(lambda found: f"{found['key']}{found['quote']}{version}{found['quote']}", text, count=1)


def _text(file: Path) -> str:
    """Return the text with its line ends as they are; "" when there is no such file."""
    try:
        return file.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return ""
