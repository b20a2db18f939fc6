"""`mcpfactory.toml` of a server: what the person decided. Written once, then the person's."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.describe.curation import ResponseOptions, ToolCuration, read_responses, read_tools
from mcpfactory_codegen.describe.workflows import WorkflowConfig, read_workflows
from mcpfactory_codegen.select import Selection
from mcpfactory_codegen.servers.keys import LISTS, SERVER_FIELDS, unread
from mcpfactory_codegen.text import clean, unknown_field
from mcpfactory_runtime.errors import Exit, McpfactoryError
from mcpfactory_runtime.server.generated.catalogue import DIALECTS, MODES

__all__ = [
    "CONFIG",
    "ServerConfig",
    "ServerConfigError",
    "parse_config",
    "quoted",
    "read_config",
    "render_config",
    "with_api",
]

CONFIG: Final = "mcpfactory.toml"
_FULL: Final = "full"
NAME: Final = re.compile(r"[a-z][a-z0-9-]*\Z")
_PACKAGE: Final = re.compile(r"[a-z_][a-z0-9_]*\Z")
_HOST: Final = re.compile(r"([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
_OPTIONAL: Final = ("include_methods", "overlays", "allow_private")  # written only when they say something


class ServerConfigError(McpfactoryError):
    """A server's configuration cannot be used. `hint` says what to change."""

    exit_code = Exit.BAD_INPUT


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """`document` and `source` are "" for servers that are not made from an API document.

    `allow_private` are hosts (`host` or `host:port`) that may be called although their addresses are private. `names` maps operations ("GET /books/{id}") to the tool names that they must have; `tools` has what
    was decided about each tool, by its name; `responses` what was decided about all answers, `workflows` the tools
    that are made of others. `overlays` are paths of
    files in the server's folder. `mode`, `profile` and `dialect` say what the server offers by default, "" the
    runtime's default; `profiles` are the profiles that the person defined.
    """

    name: str
    package: str
    template: str
    document: str = ""
    source: str = ""
    allow_private: tuple[str, ...] = ()
    include_tags: tuple[str, ...] = ()
    include_paths: tuple[str, ...] = ()
    include_operations: tuple[str, ...] = ()
    include_methods: tuple[str, ...] = ()
    overlays: tuple[str, ...] = ()
    mode: str = ""
    profile: str = ""
    dialect: str = ""
    profiles: Mapping[str, Selection] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, ToolCuration] = field(default_factory=dict)
    responses: ResponseOptions = field(default_factory=ResponseOptions)
    workflows: Mapping[str, WorkflowConfig] = field(default_factory=dict)

    @property
    def selection(self) -> Selection:
        """Which operations become tools."""
        return Selection(self.include_tags, self.include_paths, self.include_operations, self.include_methods)


def read_config(folder: Path) -> ServerConfig:
    """Return the configuration in a server's folder.

    Raises:
        ConfigError: there is none, it is not TOML, or a value cannot be used.
    """
    path = folder / CONFIG
    try:
        text = path.read_text("utf-8-sig")  # editors on Windows put a mark before the text
    except FileNotFoundError:
        raise ServerConfigError(
            f"{path} does not exist", "is this the folder of a server? see: mcpfactory list"
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
        raise ServerConfigError(f"{path}: {error}", "mend the line that is named") from None
    if found := unread(data, SERVER_FIELDS):
        raise ServerConfigError(f"{path}: {found[0]}", found[1])
    server, api = _table(data, "server", path), _table(data, "api", path)
    name, package = _text(server, "name", path), _text(server, "package", path)
    if not NAME.match(name) or not _PACKAGE.match(package):
        expected = "server.name is [a-z][a-z0-9-]*, server.package a Python package name"
        raise ServerConfigError(f"{path}: name {name!r} or package {package!r} cannot be used", expected)
    names = _table(data, "names", path)
    try:
        tools = read_tools(_table(data, "tools", path))
        responses = read_responses(_table(data, "responses", path))
        workflows = read_workflows(_table(data, "workflows", path))
    except ValueError as error:
        raise ServerConfigError(
            f"{path}: {error}",
            "docs/reference/generated-server.md lists what [tools.<name>], [workflows.<name>] and [responses] take",
        ) from None
    return ServerConfig(
        name=name,
        package=package,
        template=_text(server, "template", path),
        document=_text(api, "document", path),
        source=_text(api, "source", path),
        allow_private=_hosts(api, path),
        overlays=_texts(api, "overlays", path, "api"),
        mode=_one_of(server, "mode", MODES, path),
        dialect=_one_of(server, "dialect", DIALECTS, path),
        profile=_text(server, "profile", path),
        profiles=_profiles(data, path),
        names={key: _text(names, key, path) for key in names},
        tools=tools,
        responses=responses,
        workflows=workflows,
        **{key: _texts(api, key, path, "api") for key in LISTS},
    )


def _table(data: dict[str, Any], key: str, path: Path) -> dict[str, Any]:
    value = data.get(key, {})
    if not isinstance(value, dict):
        raise ServerConfigError(f"{path}: {key} is not a table", f"write [{key}]")
    return value


def _text(table: dict[str, Any], key: str, path: Path) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise ServerConfigError(f"{path}: {key} is not a text", f'write {key} = "…"')
    return value


def _texts(table: dict[str, Any], key: str, path: Path, where: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ServerConfigError(f"{path}: {where}.{key} is not a list of texts", f'write {key} = ["…"]')
    return tuple(value)


def _hosts(api: dict[str, Any], path: Path) -> tuple[str, ...]:
    found = _texts(api, "allow_private", path, "api")
    for one in found:
        if not _HOST.fullmatch(one):
            hint = 'write a host or host:port in small letters, such as allow_private = ["127.0.0.1:8000"]'
            raise ServerConfigError(f"{path}: api.allow_private: {one!r} is no host", hint)
    return found


def _one_of(server: dict[str, Any], key: str, known: tuple[str, ...], path: Path) -> str:
    value = _text(server, key, path)
    if value and value not in known:
        raise ServerConfigError(f"{path}: there is no {key} {value!r}", f"server.{key} is {' or '.join(known)}")
    return value


def _profiles(data: dict[str, Any], path: Path) -> dict[str, Selection]:
    """Return the tables `[profiles.<name>]`."""
    found = {}
    for name in (tables := _table(data, "profiles", path)):
        table, where = _table(tables, name, path), f"profiles.{name}"
        if not NAME.match(name) or name == _FULL:
            hint = f"a name is [a-z][a-z0-9-]*, and {_FULL} always means all tools"
            raise ServerConfigError(f"{path}: {name!r} cannot be the name of a profile", hint)
        if wrong := unknown_field(table, LISTS, where):
            raise ServerConfigError(f"{path}: {wrong[0]}", wrong[1])
        found[name] = Selection(**{key: _texts(table, key, path, where) for key in LISTS})
    return found


def render_config(config: ServerConfig) -> str:
    """Return the file's text."""
    lines = ["[server]"]
    lines += [f"{key} = {quoted(getattr(config, key))}" for key in ("name", "package", "template")]
    lines += [f"{key} = {quoted(value)}" for key in ("mode", "profile", "dialect") if (value := getattr(config, key))]
    if config.document:
        lines += ["", "[api]", f"document = {quoted(config.document)}"]
        lines += [f"source = {quoted(config.source)}"] if config.source else []
        for key in ("allow_private", *LISTS, "overlays"):
            if getattr(config, key) or key not in _OPTIONAL:
                lines.append(f"{key} = {_written(getattr(config, key))}")
    if config.names:
        lines += ["", "[names]"]
        lines += [f"{quoted(key)} = {quoted(value)}" for key, value in sorted(config.names.items())]
    return "\n".join(lines) + "\n"


def with_api(text: str, *, document: str, source: str, allow_private: Sequence[str] = ()) -> str:
    """Return the text of a configuration with other values in `[api]`; all else stays as the person wrote it.

    Raises:
        ConfigError: the values do not stand on lines of their own.
    """
    expected: dict[str, str | list[str]] = {
        "document": document,
        "source": source,
        "allow_private": list(allow_private),
    }
    now = _api_of(text)
    start = re.search(r"^\[api\][^\n]*\n", text, re.M)
    changed = {key: value for key, value in expected.items() if now.get(key, type(value)()) != value}
    if start and changed:
        following = re.search(r"^\[", text[start.end() :], re.M)
        end = start.end() + following.start() if following else len(text)
        table = text[start.end() : end]
        for key, value in changed.items():
            line = f"{key} = {_written(value)}\n"
            found_line = re.search(rf"^{key}[ \t]*=[^\n]*\n?", table, re.M)
            table = table[: found_line.start()] + line + table[found_line.end() :] if found_line else line + table
        text = text[: start.end()] + table + text[end:]
    try:
        done = _api_of(text)
    except tomllib.TOMLDecodeError:
        done = {}
    if any(done.get(key, type(value)()) != value for key, value in expected.items()):
        lines_ = " and ".join(f"{key} = {_written(value)}" for key, value in expected.items() if value)
        raise ServerConfigError(f"{CONFIG}: [api] could not be brought up to date", f"write {lines_} below [api]")
    return text


def _api_of(text: str) -> dict[str, Any]:
    found = tomllib.loads(text).get("api", {})
    return found if isinstance(found, dict) else {}


def _written(value: str | Sequence[str]) -> str:
    """Return a value as TOML."""
    return quoted(value) if isinstance(value, str) else f"[{', '.join(quoted(item) for item in value)}]"


def quoted(text: str) -> str:
    """Return a string literal of TOML and of Python: what JSON escapes, both read alike; what only they would is cleaned away."""
    return json.dumps(clean(text), ensure_ascii=False)
