"""The workspace as the tools of the factory's server see it, and who it is that calls them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, TypeVar

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.ids import actor
from mcpfactory_pipeline.serve.background import aside
from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime import Context

__all__ = ["Floor", "agent", "person"]

_NAME: Final = 60  # characters of a client's name in the history

Options = ParamSpec("Options")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Floor:
    """A workspace. With `local`, who calls may name any file of this machine: it is theirs; else those of the workspace."""

    root: Path
    local: bool = True

    def space(self) -> Workspace:
        """Return the workspace as its configuration is now. Raises `ConfigError`, `WorkspaceError`."""
        return Workspace.find(self.root)

    async def read(
        self,
        function: Callable[Concatenate[Workspace, Options], Made],
        *arguments: Options.args,
        **options: Options.kwargs,
    ) -> Made:
        """Return what a function of the workspace returns, off the event loop. Raises `ToolError`."""
        return await aside(lambda: function(self.space(), *arguments, **options))

    def document(self, name: str) -> str:
        """Return a URL as it is; a path from the root of the workspace. Raises `ConfigError` for one that is not to be read."""
        if re.match(r"https?://", name):
            return name
        path = (self.root / name).resolve()
        if not self.local and not path.is_relative_to(self.root.resolve()):
            raise ConfigError(
                f"{name} is not in the workspace", hint="over HTTP, give a URL or a file below the workspace"
            )
        return str(path)

    def template(self, name: str) -> str:
        """Return the name of a template that is shipped, or the path of a folder, as `document`."""
        return self.document(name) if re.search(r"[/\\.]", name) else name


def agent(ctx: Context) -> str:
    """`agent:` and the client's name as it introduced itself; nobody has verified it."""
    name = str(ctx.client_info.get("name") or "unknown")
    return f"agent:{re.sub(r'[^A-Za-z0-9 ._/@-]', '_', name)[:_NAME]}"


def person(ctx: Context) -> str:
    """Who sits before the client: whom its token names, else whoever acts at this machine."""
    principal = ctx.principal
    return actor() if principal is None else principal.subject or principal.client
