"""A server of the workspace as its clients are offered it, with a model of its API behind it, for one question at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_pipeline.checks.calls import required_variables
from mcpfactory_pipeline.checks.person import Person
from mcpfactory_pipeline.launch.connection import connect_server
from mcpfactory_pipeline.launch.modelled import ModelledApi, has_model, modelled_api
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer
from mcpfactory_runtime.client import Client

__all__ = ["ServerOffer", "Tools", "server_tools"]

Tools = Sequence[Mapping[str, Any]]

_PATIENCE: Final = 60.0  # seconds for one answer


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """A server, which of its tools are offered, and how long a request may take."""

    server: WorkspaceServer
    profile: str
    timeout: float

    @property
    def callable(self) -> bool:
        """Whether calls lead somewhere: to a model of the API, or to a server that needs none."""
        return has_model(self.server.folder) or not self.server.documents

    async def tools(self, mode: str, dialect: str = "standard") -> Tools:
        """Return the list that a client gets."""
        async with self.opened(mode, dialect) as (client, _):
            return await client.list_tools()

    @asynccontextmanager
    async def opened(
        self, mode: str, dialect: str = "standard", person: Person | None = None
    ) -> AsyncIterator[tuple[Client, ModelledApi]]:
        """Start the API and the server; its own credentials are not real ones, whatever the person's environment has.

        `person` answers what tools ask.
        """
        async with modelled_api(self.server.folder) as api:
            environ = {
                **dict.fromkeys(required_variables(self.server.folder), "dummy"),
                **api.environment,
                "MCPFACTORY_MODE": mode,
                "MCPFACTORY_PROFILE": self.profile,
                "MCPFACTORY_DIALECT": dialect,
            }
            async with connect_server(self.server, environ, timeout=self.timeout, elicitation=person) as client:
                yield client, api


async def server_tools(server: WorkspaceServer, profile: str = "full") -> Tools:
    """Return the whole list of a server as it is in its folder, whatever it offers by default.

    Raises:
        ConfigError: for a modelled API that does not start.
        ServerError, StageError: when the server does not start, or ends.
    """
    return await ServerOffer(server, profile, _PATIENCE).tools("full")
