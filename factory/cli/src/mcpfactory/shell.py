"""What `install` takes over from the shell: asked on a terminal, by a switch elsewhere, and never silently."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import typer

from mcpfactory import output

if TYPE_CHECKING:
    from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

__all__ = ["for_entry"]


def for_entry(server: WorkspaceServer, given: list[str], *, take: bool, ask: bool) -> list[str]:
    """Return the variables of an entry: those that were given, and of the shell's what the person wants.

    Args:
        server: whose entry it is.
        given: `NAME` or `NAME=VALUE`.
        take: everything that may be written.
        ask: for each, where a person is at a terminal; else it is only said.
    """
    from mcpfactory_pipeline.checks.calls import required_variables
    from mcpfactory_pipeline.clients.environment import shell_variables, with_settings

    found = shell_variables(server, required_variables(server.folder), os.environ, given)
    settings = dict(found.settings)
    if not take and ask and sys.stdin.isatty() and sys.stderr.isatty():
        settings = {name: value for name, value in settings.items() if _yes(name, value)}
    elif not take and settings:
        output.note(f"note: set in this shell and not written: {', '.join(settings)}; hint: --env-from-shell writes it")
        settings = {}
    if found.shared:
        output.note(
            f"note: MCPFACTORY_BASE_URL is set in this shell and not written; hint: {_own(server, found.shared)}"
        )
    return with_settings(given, settings)


def _own(server: WorkspaceServer, url: str) -> str:
    from mcpfactory_pipeline.workspace.address import address_variable

    return f"--env {address_variable(server)}={url}"


def _yes(name: str, value: str) -> bool:
    return typer.confirm(f"Write {name}={value} into the configuration?", default=True, err=True)
