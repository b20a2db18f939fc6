"""`mcpfactory.toml` of a server: what the person decided. Written once, then the person's."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.credentials import CredentialOptions
from mcpfactory_codegen.describe.tools import ApiTool, ResponseOptions, ToolCuration, read_responses, read_tools
from mcpfactory_codegen.describe.workflows import WorkflowConfig, read_workflows
from mcpfactory_codegen.ir import Api, Problem, Problems
from mcpfactory_codegen.select import Selection, marked, select
from mcpfactory_codegen.servers.answers import Answer, read_answers
from mcpfactory_codegen.servers.documents import ApiConfig, read_apis, render_apis
from mcpfactory_codegen.servers.values import (
    SERVER_FIELDS,
    ServerConfigError,
    quoted,
    table_of,
    text_of,
    texts_of,
    unread,
    written,
)
from mcpfactory_codegen.text import unknown_field
from mcpfactory_runtime.server.generated.catalogue import DIALECTS, MODES

CONFIG: Final = "mcpfactory.toml"
_FULL: Final = "full"
NAME: Final = re.compile(r"[a-z][a-z0-9-]*\Z")
_PACKAGE: Final = re.compile(r"[a-z_][a-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Configuration of a server. `apis` are the API documents, empty for servers without one.

    `names` maps operations ("GET /books/{id}") to their required tool names; `tools` has the curation of each tool,
    by its name; `responses` the curation of all responses, `workflows` the tools that combine others. `credentials`
    declares which parameters are credentials, and which are not. `mode`, `profile` and `dialect` are the server's
    defaults, "" for the runtime's default; `profiles` are the user-defined profiles; `answers` are those to the
    template's questions.
    """

    name: str
    package: str
    template: str
    apis: tuple[ApiConfig, ...] = ()
    credentials: CredentialOptions = field(default_factory=CredentialOptions)
    mode: str = ""
    profile: str = ""
    dialect: str = ""
    profiles: Mapping[str, Selection] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, ToolCuration] = field(default_factory=dict)
    responses: ResponseOptions = field(default_factory=ResponseOptions)
    workflows: Mapping[str, WorkflowConfig] = field(default_factory=dict)
    answers: Mapping[str, Answer] = field(default_factory=dict)

    @property
    def document(self) -> str:
        """Return the path of the first API document, or "" if the server has no document."""
        return next((api.document for api in self.apis), "")

    @property
    def allow_private(self) -> tuple[str, ...]:
        """The hosts (`host` or `host:port`) that may be called although their addresses are private."""
        return tuple(dict.fromkeys(host for api in self.apis for host in api.allow_private))


def read_config(folder: Path) -> ServerConfig:
    """Return the configuration in a server's directory.

    Raises:
        ConfigError: it is missing, it is not TOML, or it has an invalid value.
    """
    path = folder / CONFIG
    try:
        text = path.read_text("utf-8-sig")  # editors on Windows put a mark before the text
    except FileNotFoundError:
        raise ServerConfigError(
            f"{path} does not exist", "check that this is the folder of a server; mcpfactory inspect lists the servers"
        ) from None
    except UnicodeDecodeError as error:
        raise ServerConfigError(f"{path}: {error}", "save it as UTF-8") from None
    return parse_config(text, path)


def parse_config(text: str, path: Path) -> ServerConfig:
    """Return the configuration in the text of a file; `path` is what errors name.

    Raises:
        ConfigError: it is not TOML, or a value cannot be used.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ServerConfigError(f"{path}: {error}", "correct that line") from None
    if found := unread(data, SERVER_FIELDS):
        raise ServerConfigError(f"{path}: {found[0]}", found[1])
    server = table_of(data, "server", path)
    name, package = text_of(server, "name", path), text_of(server, "package", path)
    if not NAME.match(name) or not _PACKAGE.match(package):
        expected = "server.name is [a-z][a-z0-9-]*, server.package a Python package name"
        raise ServerConfigError(f"{path}: name {name!r} or package {package!r} cannot be used", expected)
    names, credentials = table_of(data, "names", path), table_of(data, "credentials", path)
    try:
        tools = read_tools(table_of(data, "tools", path))
        responses = read_responses(table_of(data, "responses", path))
        workflows = read_workflows(table_of(data, "workflows", path))
    except ValueError as error:
        raise ServerConfigError(
            f"{path}: {error}",
            "see docs/reference/generated-server.md for the keys of [tools.<name>], [workflows.<name>] and [responses]",
        ) from None
    return ServerConfig(
        name=name,
        package=package,
        template=text_of(server, "template", path),
        apis=read_apis(data, path),
        credentials=CredentialOptions(
            **{key: texts_of(credentials, key, path, "credentials") for key in ("parameters", "arguments")}
        ),
        mode=_one_of(server, "mode", MODES, path),
        dialect=_one_of(server, "dialect", DIALECTS, path),
        profile=text_of(server, "profile", path),
        profiles=_profiles(data, path),
        names={key: text_of(names, key, path) for key in names},
        tools=tools,
        responses=responses,
        workflows=workflows,
        answers=read_answers(table_of(data, "answers", path), str(path)),
    )


def _one_of(server: dict[str, Any], key: str, known: tuple[str, ...], path: Path) -> str:
    value = text_of(server, key, path)
    if value and value not in known:
        raise ServerConfigError(f"{path}: unknown {key} {value!r}", f"set server.{key} to {' or '.join(known)}")
    return value


def _profiles(data: dict[str, Any], path: Path) -> dict[str, Selection]:
    found = {}
    for name in (tables := table_of(data, "profiles", path)):
        table, where = table_of(tables, name, path), f"profiles.{name}"
        if not NAME.match(name) or name == _FULL:
            hint = f"a name is [a-z][a-z0-9-]*, and {_FULL} always means all tools"
            raise ServerConfigError(f"{path}: {name!r} cannot be the name of a profile", hint)
        if wrong := unknown_field(table, tuple(Selection.model_fields), where):
            raise ServerConfigError(f"{path}: {wrong[0]}", wrong[1])
        found[name] = Selection(**{key: texts_of(table, key, path, where) for key in Selection.model_fields})
    return found


def render_config(config: ServerConfig) -> str:
    """Return the file's text."""
    lines = ["[server]"]
    lines += [f"{key} = {quoted(getattr(config, key))}" for key in ("name", "package", "template")]
    lines += [f"{key} = {quoted(value)}" for key in ("mode", "profile", "dialect") if (value := getattr(config, key))]
    lines += render_apis(config.apis)
    decided = {key: getattr(config.credentials, key) for key in ("parameters", "arguments")}
    if any(decided.values()):
        lines += ["", "[credentials]", *(f"{key} = {written(value)}" for key, value in decided.items() if value)]
    if config.names:
        lines += ["", "[names]"]
        lines += [f"{quoted(key)} = {quoted(value)}" for key, value in sorted(config.names.items())]
    return "\n".join(lines) + "\n"


# --- profiles: named choices among a server's tools, worked out from the configuration and recorded in the manifest ---


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
    if config.mode:
        offer["mode"] = config.mode
    if config.dialect:
        offer["dialect"] = config.dialect
    if config.profile in {*_PROFILES, *members}:
        offer["profile"] = config.profile
    elif config.profile:
        message = f"unknown profile {config.profile!r}: the server offers all its tools"
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
