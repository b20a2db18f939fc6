"""What commands say about where the API of a server lives, when that is private, or nobody knows it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mcpfactory import output

__all__ = ["tell"]


def tell(
    server: str, address: Mapping[str, Any], environ: Mapping[str, str] | None = None, setting: str = "export"
) -> None:
    """Note on stderr about each address that is worth one.

    Args:
        server: its name.
        address: of its report; empty for servers that are not made from a document, or by an older mcpfactory.
        environ: what the server will be started with; ours by default.
        setting: how variables are set there, for hints.
    """
    from mcpfactory_pipeline.workspace.upstream import api_addresses

    if not address:
        return
    for place in api_addresses(address, os.environ if environ is None else environ, server=server, setting=setting):
        if not place.works:
            output.note(f"{output.styled('warning:', 'warn', err=True)} {place.message}")
            output.note(f"  hint: {place.hint}")
        elif place.nature:
            output.note(f"note: {place.message}")
