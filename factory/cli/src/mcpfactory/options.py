"""Arguments and options that several commands share, under one name and one help text."""

from __future__ import annotations

from typing import Annotated

import typer

from mcpfactory import complete

__all__ = ["AsJson", "Name", "Names"]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A server of this workspace.", autocompletion=complete.servers)
]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...", help="Servers of this workspace; none means all.", autocompletion=complete.servers
    ),
]
