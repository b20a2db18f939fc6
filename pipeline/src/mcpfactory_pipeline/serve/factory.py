"""The factory as an MCP server: what people do by `mcpfactory …`, for agents. It calls the functions that those commands call."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.serve import prompts
from mcpfactory_pipeline.serve.access import WorkspaceAccess
from mcpfactory_pipeline.serve.decision_tools import DecisionTools
from mcpfactory_pipeline.serve.pipeline_tools import PipelineTools
from mcpfactory_pipeline.serve.read_tools import ReadTools
from mcpfactory_pipeline.serve.resources import FactoryResources
from mcpfactory_runtime import Server

__all__ = ["make_factory"]

_INSTRUCTIONS: Final = """\
This is a factory for MCP servers: it makes them from API documents, builds, tests and validates them, and promotes them from \
channel to channel. Begin with `status` or `inbox`. `run` brings servers through their stages; `findings`, `log` and `diff` say \
what came of it. Decisions about channels ask a person, and are possible where the workspace's policy leaves them to agents. \
The prompts are playbooks. Commands in hints (`mcpfactory pipeline run NAME`) have tools of the same name; that of `unhold` is `release`."""


def make_factory(root: Path, documents: Sequence[str] = (), *, local: bool = True) -> Server:
    """Return the server for the workspace at `root`; `documents` are places elsewhere that API documents may come from.

    Without `local`, it is reached over HTTP: decisions are for callers that are known.
    """
    access = WorkspaceAccess(root, tuple(documents), local)
    server = Server(
        "mcpfactory",
        version=version("mcpfactory-pipeline"),
        title="mcpfactory",
        description="Makes, tests and promotes the MCP servers of a workspace.",
        instructions=_INSTRUCTIONS,
    )
    for part in (ReadTools(access), PipelineTools(access), DecisionTools(access), FactoryResources(access)):
        part.register(server)
    prompts.register(server)
    return server
