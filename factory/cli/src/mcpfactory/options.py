"""Arguments and options that several commands share, under one name and one help text."""

from __future__ import annotations

from typing import Annotated

import typer

from mcpfactory import complete

__all__ = ["AsJson", "Factory", "Name", "Names"]

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
