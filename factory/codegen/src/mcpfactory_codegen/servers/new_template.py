"""Initial files of a custom template: the shipped `minimal`, with a question added."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from mcpfactory_codegen.servers.scaffold import find_template
from mcpfactory_codegen.servers.templates import TemplateSourceError

_FIRST: Final = "minimal"


def new_template(folder: Path) -> tuple[str, ...]:
    """Write a template that passes `mcpfactory template check` into a new folder, and return its files.

    Args:
        folder: must not exist; its name is the template's.

    Raises:
        TemplateSourceError: the folder exists.
    """
    if folder.exists() or folder.is_symlink():
        raise TemplateSourceError(f"{folder} exists already", "choose another name, or remove it")
    shutil.copytree(find_template(_FIRST).folder, folder, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    settings = folder / "copier.yml"
    _, _, rest = settings.read_text("utf-8").partition("\n")
    settings.write_text(f"# Servers as {folder.name} makes them.\n{rest}", "utf-8")
    return tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))
