"""Arguments and options that several commands share, under one name and one help text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcpfactory import complete

if TYPE_CHECKING:
    from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["AsJson", "Factory", "Name", "Names", "Root", "workspace_in"]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Factory = Annotated[
    str,
    typer.Option(
        metavar="ORIGIN",
        help="Where CI jobs and uv take mcpfactory from: `vendored` (its wheels in tools/mcpfactory/) or a folder with a slash at "
        "its end, `git` (the repository that it was installed from) or git+https://…@REF, or `index`. By default the repository, "
        "where anybody can read it, else vendored.",
        autocompletion=complete.origins,
    ),
]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A server of this workspace.", autocompletion=complete.servers)
]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...", help="Servers of this workspace; none means all.", autocompletion=complete.servers
    ),
]
Root = Annotated[
    Path | None,
    typer.Option("--workspace", metavar="FOLDER", help="The workspace; by default the one around the current folder."),
]


def workspace_in(folder: Path | None) -> Workspace:
    """Return the workspace that `--workspace` names, or the one around the current folder. Raises `WorkspaceError`."""
    from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceError

    if folder is not None and not folder.is_dir():  # its parents are not searched: what was meant is not there
        raise WorkspaceError(f"--workspace {folder} is no folder", hint="name the folder of a workspace")
    return Workspace.find(folder or Path.cwd())
