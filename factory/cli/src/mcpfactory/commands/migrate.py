from __future__ import annotations

import ast
import asyncio
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcpfactory import output
from mcpfactory.exits import Exit
from mcpfactory.migrated import call_permission, print_likeness, print_migration
from mcpfactory.options import AllTools, AsJson, Calls

if TYPE_CHECKING:
    from mcpfactory_pipeline.migration import CallPermission, Likeness, Migration


def migrate(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="A server written with FastMCP or the official Python SDK.")
    ],
    write: Annotated[bool, typer.Option("--write", help="Write what is shown into the file.")] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="With --write: also where something is left to do by hand.")
    ] = False,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Start both versions, make the same calls, and say what callers would notice."),
    ] = False,
    python: Annotated[
        str,
        typer.Option(
            metavar="PROGRAM",
            help="With --compare: the interpreter of the server's environment; by default the one that runs this.",
        ),
    ] = "",
    calls: Calls = None,
    all_tools: AllTools = False,
    timeout: Annotated[float, typer.Option(help="With --compare: seconds for each version.", min=0.1)] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Bring a Python server to the runtime: a report by line, and a diff that is shown before it is written."""
    found = _migrated(path)
    alike = (
        asyncio.run(
            _compared(
                found,
                path.resolve().parent,
                python or sys.executable,
                timeout,
                call_permission(calls, all_tools=all_tools),
            )
        )
        if compare and found.moved
        else None
    )
    if as_json:
        output.data(_data(found, alike))
    else:
        _print(found, alike, path)
    if write and found.moved:
        _write(path, found, partial=partial)
    if not found.complete or (alike is not None and not alike.same):
        raise typer.Exit(Exit.NO)


def _migrated(path: Path) -> Migration:
    from mcpfactory_pipeline.migration import migrate_source

    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        output.fail(f"there is no file {path}", "name the file that makes the server", Exit.NOT_FOUND)
    except (OSError, UnicodeDecodeError) as error:
        output.fail(f"{path} cannot be read: {error}", "name a file of Python in UTF-8", Exit.BAD_INPUT)
    try:
        found = migrate_source(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        output.fail(f"{path} is not Python: {error}", "mend it first", Exit.BAD_INPUT)
    if not found.moved and not found.left and _is_of_the_runtime(text):
        output.fail(
            f"{path} is written with the runtime already: there is nothing to migrate",
            "mcpfactory adopt FOLDER takes its project into the workspace",
            Exit.BAD_INPUT,
        )
    if not found.moved and not found.left:
        output.fail(
            f"{path} imports neither FastMCP nor the official SDK",
            "name the file that makes the server",
            Exit.BAD_INPUT,
        )
    return found


def _is_of_the_runtime(text: str) -> bool:
    """Whether a file imports the runtime; it can be parsed."""
    names: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and not node.level:
            names.append(node.module or "")
        elif isinstance(node, ast.Import):
            names += [one.name for one in node.names]
    return any(name.partition(".")[0] == "mcpfactory_runtime" for name in names)


async def _compared(
    found: Migration, folder: Path, python: str, timeout: float, permission: CallPermission
) -> Likeness:
    from mcpfactory_pipeline.migration import compare_versions

    return await compare_versions(
        found.before, found.after, folder=folder, python=python, seconds=timeout, permission=permission
    )


def _data(found: Migration, alike: Likeness | None) -> dict[str, object]:
    return {
        "complete": found.complete,
        "moved": [asdict(one) for one in found.moved],
        "left": [asdict(one) for one in found.left],
        "noted": [asdict(one) for one in found.noted],
        "after": found.after,
        "compared": alike.to_json() if alike is not None else None,
    }


def _print(found: Migration, alike: Likeness | None, path: Path) -> None:
    print_migration(found, str(path))
    if alike is not None:
        print_likeness(alike)
    elif found.moved:
        output.note(
            "note: nothing was compared: results may be of another type, or said in other words; --compare starts both versions"
            " and says what callers would notice"
        )


def _write(path: Path, found: Migration, *, partial: bool) -> None:
    from mcpfactory_pipeline.base.files import replace_file

    if found.left and not partial:
        output.fail(
            f"{path} was not written: {len(found.left)} places are left to do by hand",
            "add --partial to write the rest",
            Exit.NO,
        )
    try:
        file = path.resolve()  # a link stays one
        replace_file(file, found.after.encode(), mode=file.stat().st_mode & 0o777)
    except OSError as error:
        output.fail(f"{path} cannot be written: {error.strerror}", "make it writable", Exit.BROKEN)
    output.note(f"wrote {path}")
