"""The examples of FastMCP's and of the Python SDK's own repositories: migrated, and both versions asked the same, as real processes.

The examples are in the source distributions, and stay there: they are fetched, and not kept here. `--folder` names a checkout instead.
A line for each file. An example that needs a key, a device or a package that is not installed says so; that is no fault, and what
callers would notice is one.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.exam.migration_page import MigratedFile, drawn, summary
from benchmarks.exam.outcome import Outcome, judged, unavailable
from benchmarks.exam.places import ROOT
from benchmarks.features.model import PEERS
from benchmarks.peers.outsiders import environment, source_of
from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.migration import CallPermission, compare_versions, migrate_source

__all__ = ["PAGE", "examine_example", "examples", "migration"]

PAGE: Final = ROOT / "docs/reference/migration.md"
HINT: Final = "hint: --folder names a checkout of FastMCP's or of the SDK's repository (git clone), or a source distribution, unpacked"
_FOLDERS: Final = ("examples", "docs_src")
_MAKES_A_SERVER: Final = re.compile(r"\b(FastMCP|MCPServer)(\[[^\n]*\])?\(")
_BESIDE: Final = ("pillow==12.*",)  # what examples import besides, and what runs without a key or a device
_PATIENCE: Final = 300.0  # seconds for each start with all its calls; it ends what hangs, and judges no speed


def migration(folders: Sequence[str] = (), only: str = "", *, page: bool = False) -> Outcome:
    """A line for each example, of the source distributions or of these folders; `only` is a part of their paths."""
    try:
        python = environment("migration", [*(one.requirement for one in PEERS), *_BESIDE])
        roots = [Path(folder).resolve() for folder in folders] or [_distribution(one.requirement) for one in PEERS]
    except subprocess.CalledProcessError:
        return unavailable(f"FastMCP and the SDK cannot be had from the index\n{HINT}")
    if not any(path for root in roots for path in examples(root, only)):
        return unavailable(f"no example that makes a server is below {', '.join(map(str, roots))}\n{HINT}")
    found: dict[str, list[MigratedFile]] = {}
    print("example", "migrated", "calls", "came to", sep="\t")
    for root in roots:
        rows = found.setdefault(_called(root), [])
        with TemporaryDirectory(prefix="mcpfactory-examples-") as work:
            copy = Path(work, root.name)
            shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".git", ".venv", "node_modules", "docs", "tests"))
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                for one in pool.map(lambda path, copy=copy: examine_example(copy, path, python), examples(copy, only)):
                    told = "fully" if one.fully else f"{len(one.left)} left"
                    print(one.path, told, one.calls, _came_to(one), sep="\t", flush=True)
                    rows.append(one)
    for name, rows in found.items():
        print(f"{name}: {summary(rows)}", flush=True)
    if page:
        PAGE.write_text(
            drawn(PAGE.read_text(encoding="utf-8"), found, f"{datetime.now(UTC):%Y-%m-%d}", only), encoding="utf-8"
        )
    every = [one for rows in found.values() for one in rows]
    return judged(summary(every), good=not any(one.differs for one in every))


def examples(root: Path, only: str = "") -> Iterator[Path]:
    """The files that make a server, below the folders of examples; of a folder that has none of these, all of its files."""
    within = [root / name for name in _FOLDERS if (root / name).is_dir()] or [root]
    for path in sorted(path for folder in within for path in folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if only in path.relative_to(root).as_posix() and _MAKES_A_SERVER.search(text) and _imports_a_framework(text):
            yield path


def examine_example(root: Path, path: Path, python: str) -> MigratedFile:
    """What comes of one example: migrated, and compared where nothing is left to do by hand. `root` is a copy that may be written into."""
    name = path.relative_to(root).as_posix()
    try:
        found = migrate_source(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        return MigratedFile(name, (f"it is no Python of this version: {error}",))
    if not found.complete:
        return MigratedFile(
            name, tuple(step.what for step in found.left) or ("nothing that is known",), len(found.noted)
        )
    try:
        alike = asyncio.run(
            compare_versions(
                found.before,
                found.after,
                folder=path.parent,
                python=python,
                seconds=_PATIENCE,
                permission=CallPermission(all_tools=True),  # of a copy, as examples are there to be tried
            )
        )
    except PipelineError as error:
        told = str(error)
        if told.startswith("the migrated server"):  # the original answered before
            return MigratedFile(name, noted=len(found.noted), differs=(f"it does not start any more: {_last(told)}",))
        return MigratedFile(name, noted=len(found.noted), silent=_last(told))
    return MigratedFile(name, (), len(found.noted), alike.made, (*alike.contract, *alike.calls))


def _imports_a_framework(text: str) -> bool:
    return re.search(r"^\s*(from|import) (fastmcp|mcp\.server)\b", text, re.MULTILINE) is not None


def _distribution(requirement: str) -> Path:
    package, _, version = requirement.partition("==")
    return source_of(package.partition("[")[0], version)


def _called(root: Path) -> str:
    """The name that its project has, and its version where that is said."""
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    except (OSError, ValueError, KeyError):
        return root.name
    version = project.get("version") or _version(root)
    return f"{project.get('name', root.name)} {version}".strip()


def _version(root: Path) -> str:
    """From the metadata of a source distribution, else the commit of a checkout; "" for neither."""
    if (root / "PKG-INFO").is_file():
        said = re.search(r"^Version: (\S+)", (root / "PKG-INFO").read_text(encoding="utf-8"), re.MULTILINE)
        return said[1] if said else ""
    command = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _came_to(one: MigratedFile) -> str:
    if not one.fully:
        return ", ".join(one.left[:3])
    return one.silent or ("; ".join(one.differs) if one.differs else "equal")


def _last(told: str) -> str:
    """The exception that a traceback ends with, else all of it."""
    named = re.findall(r"\b(?:\w+\.)*\w*(?:Error|Exception|Exit)\b: .*", told)
    return named[-1] if named else told
