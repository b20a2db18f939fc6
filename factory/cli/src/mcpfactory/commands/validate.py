from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import Annotated

import typer

from mcpfactory import complete, output
from mcpfactory.exits import Exit
from mcpfactory.options import AsJson


def validate(
    name: Annotated[
        str, typer.Argument(help="A server of this workspace, judged from its source.", autocompletion=complete.servers)
    ] = "",
    command: Annotated[str, typer.Option(help="A command that starts any MCP server on stdio.")] = "",
    url: Annotated[str, typer.Option(help="The URL of any MCP server over Streamable HTTP.")] = "",
    timeout: Annotated[float, typer.Option(help="Seconds for the whole examination.")] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Examine an MCP server, in any language, and say what is wrong with it, with proof."""
    from mcpfactory_pipeline.checks import Target
    from mcpfactory_pipeline.checks import validate as examine

    if sum(map(bool, (name, command, url))) != 1:
        output.fail(
            "give exactly one of NAME, --command and --url",
            "mcpfactory validate --command 'python -m my_server'",
            Exit.USAGE,
        )
    if name:
        from mcpfactory.launch import server_command, server_environ
        from mcpfactory_pipeline.workspace import Workspace

        server = Workspace.find(Path.cwd()).server(name)
        cases = server.folder / "tests" / "_generated" / "cases.json"
        target = Target(
            command=tuple(server_command(server)),
            environ=server_environ(server) | {"MCPFACTORY_PROFILE": "full"},  # there are cases for every tool
            cases=cases if cases.exists() else None,
        )
    else:
        target = Target(command=tuple(shlex.split(command)) or None, url=url or None)
    report = asyncio.run(examine(target, timeout=timeout))
    if as_json:
        output.data(report.to_json())
    else:
        output.line(report.to_text())
    if not report.passed:
        raise typer.Exit(Exit.NO)
