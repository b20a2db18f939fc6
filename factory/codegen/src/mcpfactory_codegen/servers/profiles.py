"""Profiles: named choices among a server's tools, worked out from the configuration and recorded in the manifest. Pure.

The runtime knows `full` and `read-only` itself (docs/reference/generated-server.md, "Modes and profiles"). `curated` is what the
person defines, or else the operations that the document itself marks as made for models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mcpfactory_codegen.describe.tools import ApiTool
from mcpfactory_codegen.ir import Api, Problem, Problems
from mcpfactory_codegen.select import Selection, marked, select
from mcpfactory_codegen.servers.config import ServerConfig

CURATED: Final = "curated"
_KNOWN: Final = ("full", "read-only")


@dataclass(frozen=True, slots=True)
class Profiles:
    """Modes and profiles: for the manifest (`offer`), as numbers for the report (`summary`), and their problems."""

    offer: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def resolve(api: Api, tools: Sequence[ApiTool], config: ServerConfig) -> Profiles:
    """Return the tools of each profile by name; a default profile that does not exist is a problem, and not set."""
    problems = Problems()
    members: dict[str, list[str]] = {}
    for name, selection in config.profiles.items():
        members[name] = _chosen(api, tools, selection, name, problems)
    if CURATED not in members:
        keys = {operation.key for operation in api.operations if marked(operation.extensions) is True}
        if found := [tool.name for tool in tools if tool.key in keys]:
            members[CURATED] = found
    offer: dict[str, Any] = {}
    if config.mode:
        offer["mode"] = config.mode
    if config.dialect:
        offer["dialect"] = config.dialect
    if config.profile in {*_KNOWN, *members}:
        offer["profile"] = config.profile
    elif config.profile:
        message = f"there is no profile {config.profile!r}: the server offers all its tools"
        problems.add("profile-unknown", "server.profile", message, f"one of {', '.join([*_KNOWN, *members])}")
    if members:
        offer["profiles"] = members
    return Profiles(offer, _summary(tools, offer), problems.all())


def _summary(tools: Sequence[ApiTool], offer: dict[str, Any]) -> dict[str, Any]:
    """Mode, profile, and how many tools and tokens each profile has."""
    members: dict[str, set[str]] = {
        "full": {tool.name for tool in tools},
        "read-only": {tool.name for tool in tools if tool.annotations.get("readOnlyHint") is True},
    }
    members |= {name: set(names) for name, names in offer.get("profiles", {}).items()}
    return {
        "mode": offer.get("mode", "full"),
        "profile": offer.get("profile", "full"),
        "profiles": {
            name: {"tools": len(names), "tokens": sum(tool.tokens for tool in tools if tool.name in names)}
            for name, names in members.items()
        },
    }


def _chosen(api: Api, tools: Sequence[ApiTool], selection: Selection, name: str, problems: Problems) -> list[str]:
    chosen = select(replace(api, problems=(), skipped=()), selection)
    for problem in chosen.problems:
        problems.add(problem.code, f"profiles.{name}: {problem.pointer}", problem.message, problem.hint)
    keys = {operation.key for operation in chosen.operations}
    members = [tool.name for tool in tools if tool.key in keys]
    if not members:
        problems.add("profile-empty", f"profiles.{name}", f"no tool is in the profile {name!r}", "widen its selection")
    return members
