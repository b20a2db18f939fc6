"""Profiles: named selections of a server's tools, resolved from its configuration and recorded in the manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mcpfactory_codegen.describe.tools import ApiTool
from mcpfactory_codegen.ir import Api, Problem, Problems
from mcpfactory_codegen.select import Selection, marked, select
from mcpfactory_codegen.servers.config import ServerConfig

CURATED: Final = "curated"
_PROFILES: Final = ("full", "read-only")


@dataclass(frozen=True, slots=True)
class Profiles:
    """Modes and profiles: for the manifest (`offer`), as numbers for the report (`summary`), and their problems."""

    offer: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def resolve_profiles(api: Api, tools: Sequence[ApiTool], config: ServerConfig) -> Profiles:
    """Return the tools of each profile by name; a default profile that does not exist is a problem, and not set."""
    problems = Problems()
    members: dict[str, list[str]] = {}
    for name, selection in config.profiles.items():
        members[name] = _profile_members(api, tools, selection, name, problems)
    if CURATED not in members:
        keys = {operation.key for operation in api.operations if marked(operation.extensions) is True}
        if found := [tool.name for tool in tools if tool.key in keys]:
            members[CURATED] = found
    offer: dict[str, Any] = {}
    if config.server.mode:
        offer["mode"] = config.server.mode
    if config.server.dialect:
        offer["dialect"] = config.server.dialect
    if config.server.profile in {*_PROFILES, *members}:
        offer["profile"] = config.server.profile
    elif config.server.profile:
        message = f"unknown profile {config.server.profile!r}: the server offers all its tools"
        problems.add("profile-unknown", "server.profile", message, f"one of {', '.join([*_PROFILES, *members])}")
    if members:
        offer["profiles"] = members
    return Profiles(offer, _profile_summary(tools, offer), problems.all())


def _profile_summary(tools: Sequence[ApiTool], offer: dict[str, Any]) -> dict[str, Any]:
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


def _profile_members(
    api: Api, tools: Sequence[ApiTool], selection: Selection, name: str, problems: Problems
) -> list[str]:
    chosen = select(replace(api, problems=(), skipped=()), selection)
    for problem in chosen.problems:
        problems.add(problem.code, f"profiles.{name}: {problem.pointer}", problem.message, problem.hint)
    keys = {operation.key for operation in chosen.operations}
    members = [tool.name for tool in tools if tool.key in keys]
    if not members:
        problems.add("profile-empty", f"profiles.{name}", f"the profile {name!r} has no tools", "widen its selection")
    return members
