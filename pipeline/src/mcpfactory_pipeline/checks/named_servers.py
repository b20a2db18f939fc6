"""Find the file in a repository that contains or names a server outside of a workspace."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.git import git_text
from mcpfactory_pipeline.checks.exchange import ValidationTarget
from mcpfactory_pipeline.checks.report import ValidationReport
from mcpfactory_pipeline.checks.source_validation import Place

_MANIFESTS: Final = ("server.json", "pyproject.toml", "package.json")


def with_named_location(
    report: ValidationReport, target: ValidationTarget, folder: Path, configs: Iterable[str]
) -> ValidationReport:
    """Return the report with a location for all findings, if `folder` has a file for the server.

    The location is the first file in the command, else the line with the server in a client's configuration, else the
    project's manifest. `configs` are the paths of client configurations, relative to `folder`.
    """
    prefix = git_text(folder, "rev-parse", "--show-prefix")
    places = [*_files_in_command(target, folder), *_config_lines(target, folder, configs)]
    places += [(name, 1) for name in _MANIFESTS if (folder / name).is_file()]
    if not places:
        return report
    file, line = places[0]
    return replace(report, locations={"": (prefix + file, line)})


def _files_in_command(target: ValidationTarget, folder: Path) -> Iterator[Place]:
    root = folder.resolve()
    for word in target.command or ():
        with suppress(OSError, ValueError):  # a word that cannot be a path, such as the code after `-c`
            file = (root / word).resolve()  # code scanning shows no alerts for symbolic links
            if file.is_file() and file.is_relative_to(root):
                yield file.relative_to(root).as_posix(), 1


def _config_lines(target: ValidationTarget, folder: Path, configs: Iterable[str]) -> Iterator[Place]:
    words = [json.dumps(word) for word in target.command or (target.name,)]
    for name in configs:
        file = folder / name
        text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
        if all(word in text for word in words):
            at = text.find(words[-1], text.index(words[0]))
            yield name, 1 + text[: max(at, 0)].count("\n")
