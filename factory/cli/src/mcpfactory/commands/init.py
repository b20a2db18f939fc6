from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpfactory import output
from mcpfactory.options import AsJson


def init(
    folder: Annotated[Path, typer.Argument(help="Where the workspace goes; made if it is not there.")] = Path(),
    name: Annotated[str, typer.Option(help="Name of the workspace; the folder's name by default.")] = "",
    git: Annotated[
        bool, typer.Option("--git/--no-git", help="Run `git init` when the folder is in no repository.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Make a workspace: a repository that keeps many MCP servers and their state."""
    from mcpfactory_pipeline.init import init_workspace

    workspace = init_workspace(folder.resolve(), name, git=git)
    if as_json:
        output.data({"workspace": workspace.name, "path": str(workspace.root)})
        return
    output.line(f"workspace {workspace.name} is ready in {workspace.root}")
    output.note(f"next: cd {folder} && mcpfactory new --from-openapi FILE")
