from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from mcpfactory import output


class SettingsKind(StrEnum):
    """A kind of `mcpfactory.toml`."""

    ROOT = "root"
    SERVER = "server"


def schema(
    kind: Annotated[
        SettingsKind | None, typer.Argument(help="File at the root of a workspace, or of a server [default: either]")
    ] = None,
) -> None:
    """Print the JSON Schema of mcpfactory.toml, for editors.

    They complete keys from it. Name the schema in the first line of the file: `#:schema ./mcpfactory.schema.json`.
    """
    from mcpfactory_pipeline.workspace.schema import settings_schema

    output.data(settings_schema(kind.value if kind else ""))
