"""Arguments and options that several commands share, with one name and one help text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcpfactory import completion, output

if TYPE_CHECKING:
    from mcpfactory_pipeline.workspace.workspace import Workspace

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text")]
Channel = Annotated[
    str, typer.Option("--channel", metavar="CHANNEL", help="Use this channel", autocompletion=completion.channels)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the planned changes after all checks; write nothing")]
Factory = Annotated[
    str,
    typer.Option(
        metavar="ORIGIN",
        help=(
            "Source of mcpfactory for CI jobs and uv: `vendored` (wheels in tools/mcpfactory/), FOLDER/, `git` (the "
            "repository of this installation), git+https://…@REF or `index` [default: vendored]"
        ),
        autocompletion=completion.origins,
    ),
]
Host = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help=(
            "Address to bind; on a non-loopback address, `run` and `serve` require authorization, and `dashboard` "
            "allows no actions"
        ),
    ),
]
Demo = Annotated[
    bool, typer.Option("--demo", help="Use the example data of the server's template instead of real data")
]
Http = Annotated[bool, typer.Option("--http", help="Serve Streamable HTTP at /mcp instead of stdio")]
Mode = Annotated[
    str,
    typer.Option(
        metavar="full|search",
        help="Offer all tools (full), or three tools that find, describe and call them (search)",
    ),
]
Profile = Annotated[
    str,
    typer.Option(metavar="PROFILE", help="Offer only the tools of this profile: full, read-only or a custom profile"),
]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Server in this workspace", autocompletion=completion.servers)
]
OptionalName = Annotated[
    str, typer.Argument(metavar="[NAME]", help="Server in this workspace", autocompletion=completion.servers)
]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...", help="Servers in this workspace [default: all]", autocompletion=completion.servers
    ),
]
Port = Annotated[int, typer.Option(metavar="PORT", help="Listen on this port (0: any free port)", min=0, max=65535)]
Provider = Annotated[
    str,
    typer.Option(
        metavar="PROVIDER", help="Use this CI provider: github or gitlab", autocompletion=completion.providers
    ),
]
Refresh = Annotated[
    bool,
    typer.Option("--refresh", help="Fetch API documents, and check adopted servers for changes"),
]
Root = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        metavar="FOLDER",
        help="Use the workspace in this folder [default: the workspace of the current folder]",
    ),
]
Show = Annotated[
    int,
    typer.Option("--show", metavar="N", min=0, help="Show at most N entries (0: all)"),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt")]


def check_provider(name: str) -> None:
    """Exit with a usage error if the provider is unknown."""
    from mcpfactory_pipeline.delivery.ci.ci_files import PROVIDERS

    if name and name not in PROVIDERS:
        output.usage_error(f"unknown provider {name!r}", f"providers: {', '.join(PROVIDERS)}")


def selected_workspace(folder: Path | None = None) -> Workspace:
    """Return the workspace of the given folder or of the current folder, or raise a WorkspaceError."""
    from mcpfactory_pipeline.base.errors import WorkspaceError
    from mcpfactory_pipeline.workspace.workspace import Workspace

    # if the given folder does not exist, do not search its parents for a workspace
    if folder is not None and not folder.is_dir():
        raise WorkspaceError(
            f"--workspace {folder} is not a folder", hint="set --workspace to the folder of a workspace"
        )
    return Workspace.find(folder or Path.cwd())
