from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mcpfactory import complete, output
from mcpfactory.exits import Exit
from mcpfactory.options import AsJson
from mcpfactory.reports import FORMATS, give, wanted

if TYPE_CHECKING:
    from mcpfactory_pipeline.checks import Target
    from mcpfactory_pipeline.waivers import Waiver


_Limits = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=NUMBER",
        help="What the server may cost: max_start_ms, max_call_ms or max_memory_mb; repeatable. "
        "For a server of this workspace the strictest limits of its channels apply, too.",
    ),
]


def validate(
    name: Annotated[
        str, typer.Argument(help="A server of this workspace, judged from its source.", autocompletion=complete.servers)
    ] = "",
    command: Annotated[str, typer.Option(help="A command that starts any MCP server on stdio.")] = "",
    url: Annotated[str, typer.Option(help="The URL of any MCP server over Streamable HTTP.")] = "",
    timeout: Annotated[float, typer.Option(help="Seconds for the whole examination.")] = 60.0,
    format_: Annotated[
        list[str] | None,
        typer.Option("--format", "-f", help=f"The form of the report; repeatable. One of {', '.join(FORMATS)}."),
    ] = None,
    to: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|FOLDER",
            help="Where it goes: one for each --format, or a folder for all; without --format the file's name says the form.",
        ),
    ] = None,
    matrix: Annotated[
        bool, typer.Option("--matrix", help="Also print what each tool did while its API failed, failure by failure.")
    ] = False,
    api_timeout: Annotated[
        float, typer.Option(help="Seconds that the server is told to give its API while that fails.")
    ] = 1.5,
    limit: _Limits = None,
    as_json: AsJson = False,
) -> None:
    """Examine an MCP server, in any language, and say what is wrong with it, with proof."""
    from mcpfactory_pipeline.checks import validate as examine

    if sum(map(bool, (name, command, url))) != 1:
        output.fail(
            "give exactly one of NAME, --command and --url",
            "mcpfactory validate --command 'python -m my_server'",
            Exit.USAGE,
        )
    limits = _limits(limit or [])
    places = wanted(format_ or [], to or [], as_json=as_json)
    target, server = _target(name, command, url)
    if matrix and target.cases is None:
        output.fail(
            "there are no cases, so nobody can make the server's API fail",
            "give the NAME of a generated server",
            Exit.USAGE,
        )
    target = replace(target, api_timeout=api_timeout, limits={**target.limits, **limits})
    report = asyncio.run(examine(target, timeout=timeout, waivers=server.waivers))
    give(replace(report, places=server.places(report.listed)), places)
    if matrix and not as_json:
        from mcpfactory_pipeline.checks.matrix import matrix_text

        output.line(matrix_text(report.matrix).rstrip("\n"))
    if not report.passed:
        raise typer.Exit(Exit.NO)


def _limits(words: Sequence[str]) -> dict[str, float]:
    """The limits that were typed."""
    from mcpfactory_pipeline.gates import COSTS

    found: dict[str, float] = {}
    for word in words:
        name, _, number = word.partition("=")
        try:
            found[name] = float(number)
        except ValueError:
            found[name] = -1
        if name not in COSTS or not 0 <= found[name] < float("inf"):
            output.fail(f"--limit {word}: {', '.join(COSTS)} with a number", "--limit max_start_ms=500", Exit.USAGE)
    return found


@dataclass(frozen=True)
class _Beside:
    """What a workspace knows of a server, and nothing of a stranger."""

    root: Path | None = None
    folder: Path | None = None
    waivers: tuple[Waiver, ...] = ()

    def places(self, tools: Sequence[Any]) -> dict[str, tuple[str, int]]:
        """Where its tools are written."""
        from mcpfactory_pipeline.checks.places import find_places

        if self.root is None or self.folder is None:
            return {}
        return find_places(
            self.root, self.folder, [str(t["name"]) for t in tools if isinstance(t, dict) and "name" in t]
        )


def _target(name: str, command: str, url: str) -> tuple[Target, _Beside]:
    from mcpfactory_pipeline.checks import Target

    if not name:
        return Target(command=tuple(shlex.split(command)) or None, url=url or None), _Beside()
    from mcpfactory.launch import server_command, server_environ
    from mcpfactory_pipeline.policy import cost_limits, read_channels
    from mcpfactory_pipeline.waivers import read_waivers
    from mcpfactory_pipeline.workspace import Workspace

    workspace = Workspace.find(Path.cwd())
    server = workspace.server(name)
    target = Target(
        command=tuple(server_command(server)),
        environ=server_environ(server) | {"MCPFACTORY_PROFILE": "full"},  # there are cases for every tool
        cases=server.cases if server.cases.exists() else None,
        package=server.folder,
        limits=cost_limits(read_channels(workspace)),
    )
    return target, _Beside(workspace.root, server.folder, read_waivers(server.folder))
