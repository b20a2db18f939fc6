"""The factory as an MCP server: what people do by `mcpfactory …`, for agents. It calls the functions that those commands call."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.serve import prompts
from mcpfactory_pipeline.serve.acting import Acting
from mcpfactory_pipeline.serve.deciding import Deciding
from mcpfactory_pipeline.serve.floor import Floor
from mcpfactory_pipeline.serve.reading import Reading
from mcpfactory_pipeline.serve.resources import Shelf
from mcpfactory_runtime import Server

__all__ = ["make_factory"]

_INSTRUCTIONS: Final = """\
This is a factory for MCP servers: it makes them from API documents, builds, tests and validates them, and promotes them from \
channel to channel. Begin with `status` or `inbox`. `run` brings servers through their stages; `findings`, `log` and `diff` say \
what came of it. Decisions about channels ask a person, and are possible where the workspace's policy leaves them to agents. \
The prompts are playbooks. Commands in hints (`mcpfactory pipeline run NAME`) have tools of the same name; that of `unhold` is `release`."""


def make_factory(root: Path, *, local: bool = True) -> Server:
    """Return the server for the workspace at `root`. Without `local`, callers may name files of the workspace only."""
    floor = Floor(root, local)
    server = Server(
        "mcpfactory",
        version=version("mcpfactory-pipeline"),
        title="mcpfactory",
        description="Makes, tests and promotes the MCP servers of a workspace.",
        instructions=_INSTRUCTIONS,
    )
    for part in (Reading(floor), Acting(floor), Deciding(floor), Shelf(floor)):
        part.register(server)
    prompts.register(server)
    return server
