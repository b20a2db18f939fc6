"""Tools that a model gets, and tools that a question finds in a search."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_pipeline.checks.call_plan import required_variables
from mcpfactory_pipeline.checks.elicitation import SimulatedPerson
from mcpfactory_pipeline.launch.server_connection import (
    SimulatedApi,
    connect_server,
    has_simulated_api,
    serve_simulated_api,
)
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.server.generated.search_index import IndexedTool, SearchIndex
from mcpfactory_runtime.server.generated.search_mode import CALLS

Tools = Sequence[Mapping[str, Any]]

_PATIENCE: Final = 60.0  # seconds; timeout of one answer


@dataclass(frozen=True, slots=True)
class OfferedServer:
    """A server, the tools that it offers, and the timeout of requests."""

    server: WorkspaceServer
    profile: str
    timeout: float

    @property
    def callable(self) -> bool:
        """Return True if calls are possible: the API can be simulated, or the server needs no API."""
        return has_simulated_api(self.server.folder) or not self.server.documents

    async def tools(self, mode: str, dialect: str = "standard") -> Tools:
        """Return the tool list that clients get."""
        async with self.opened(mode, dialect) as (client, _):
            return await client.list_tools()

    @asynccontextmanager
    async def opened(
        self, mode: str, dialect: str = "standard", person: SimulatedPerson | None = None
    ) -> AsyncIterator[tuple[Client, SimulatedApi]]:
        """Start the API and the server; fake credentials replace the real ones of the user's environment.

        `person` answers the tools' questions.
        """
        async with serve_simulated_api(self.server.folder) as api:
            environ = {
                **dict.fromkeys(required_variables(self.server.folder), "dummy"),
                **api.environment,
                "MCPFACTORY_MODE": mode,
                "MCPFACTORY_PROFILE": self.profile,
                "MCPFACTORY_DIALECT": dialect,
            }
            async with connect_server(self.server, environ, timeout=self.timeout, elicitation=person) as client:
                yield client, api


async def read_server_tools(server: WorkspaceServer, profile: str = "full") -> Tools:
    """Return all tools of a server's sources, regardless of the default profile.

    Raises:
        ConfigError: a simulated API does not start.
        ServerError, StageError: the server does not start, or ends.
    """
    return await OfferedServer(server, profile, _PATIENCE).tools("full")


WITHIN: Final = (1, 3, 5, 10)
"""Search ranks in reports: the number of cases whose tools are among the first 1, 3, 5 or 10 results."""

DIRECT: Final = 1
"""Rank of a tool that search mode lists directly: a model sees the tool without a search."""

_LINE: Final = re.compile(r"^- ([A-Za-z0-9_-]+)\(", re.MULTILINE)
_BESIDE: Final = re.compile(r"^Perhaps: (.+)$", re.MULTILINE)


class SearchModeTools:
    """Tools of a server in search mode: the search tool, the call tool, and the directly listed tools."""

    def __init__(self, tools: Sequence[Mapping[str, Any]]) -> None:
        calls = [tool["name"] for tool in tools if (tool.get("_meta") or {}).get(CALLS) is True]
        self.call: str | None = calls[0] if calls else None
        """Name of the call tool; None without search mode."""
        # The three names have a common scheme: call_tool, search_tools, describe_tools.
        kind = self.call.removeprefix("call_").removesuffix("tool") if self.call else ""
        self.search: str | None = f"search_{kind}tools" if self.call else None
        """Name of the search tool."""
        names = (self.call, self.search, f"describe_{kind}tools") if self.call else ()
        self.machinery = frozenset(name for name in names if name)
        """Names of the three search mode tools; empty without search mode."""
        self.direct = frozenset(tool["name"] for tool in tools) - self.machinery
        """Tools that a client sees without a search."""


def rank_tools(tools: Sequence[Mapping[str, Any]], question: str) -> list[str]:
    """Return the names of listed tools; the best match for the question is first."""
    index = SearchIndex([IndexedTool.from_wire(dict(tool)) for tool in tools])
    return [tools[number]["name"] for number, _ in index.search(question, len(tools))]


def parse_found_tools(answer: str) -> list[str]:
    """Return the tool names in an answer of the search tool, in order."""
    beside = _BESIDE.search(answer)
    return [*_LINE.findall(answer), *(beside[1].split(", ") if beside else [])]


def case_rank(ways: Sequence[Sequence[str]], ranked: Sequence[str], direct: frozenset[str] = frozenset()) -> int | None:
    """Return the smallest rank within which all tools of an accepted sequence are found, or None."""
    places = {name: number for number, name in reversed(list(enumerate(ranked, 1)))} | dict.fromkeys(direct, DIRECT)
    whole = [max(places[name] for name in way) for way in ways if all(name in places for name in way)]
    return min(whole, default=None)


def random_hit_probability(tools: int, within: int) -> float:
    """Return the probability that a random order of all `tools` has the right tool among the first `within`."""
    return min(1.0, within / tools) if tools else 0.0
