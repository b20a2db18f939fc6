"""`mcpfactory.toml` of a server: the decisions of its owner."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, WrapValidator, model_validator

from mcpfactory_codegen.curation import CredentialOptions, ResponseOptions, Selection, ToolCuration, WorkflowConfig
from mcpfactory_codegen.settings import (
    CONFIG,
    Names,
    OneOf,
    Settings,
    SettingsError,
    Strings,
    quoted,
    read_settings,
    read_toml_text,
    to_toml,
    validation_error,
)
from mcpfactory_codegen.text import describe_unknown_key
from mcpfactory_runtime.schemas.client_limits import DIALECTS
from mcpfactory_runtime.server.generated.catalog import MODES

NAME: Final = re.compile(r"[a-z][a-z0-9-]*\Z")
LABEL: Final = re.compile(r"[a-z][a-z0-9-]{0,29}\Z")
SHARED_CREDENTIALS: Final = "shared"
Answer = str | int | float | bool | list[str]
_FULL: Final = "full"
_PACKAGE: Final = re.compile(r"[a-z_][a-z0-9_]*\Z")


class ServerTable(Settings):
    """The server, and the defaults for clients."""

    name: str = Field(
        default="", description="[a-z][a-z0-9-]*; change it with `mcpfactory rename`", examples=["bookshop"]
    )
    package: str = Field(default="", description="import package below src/", examples=["bookshop_mcp"])
    template: str = Field(default="", description="template that the server was made from", examples=["openapi"])
    mode: Annotated[str, OneOf(("", *MODES))] = Field(
        default="", description="list every tool, or only three tools for searching"
    )
    profile: str = Field(default="", description="profile that clients see by default", examples=["read-only"])
    dialect: Annotated[str, OneOf(("", *DIALECTS))] = Field(
        default="", description="clients whose limits the list of tools satisfies"
    )
    environment: Strings = Field(
        default=(), description="environment variables that your own code reads", examples=[["DATABASE_URL"]]
    )


_HOST: Final = r"^([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$"


class ApiConfig(Selection):
    """An API document of the server, and the selection of its operations."""

    document: str = Field(default="", description="path in the server's folder", examples=["api/openapi.yaml"])
    source: str = Field(default="", description="origin of the document; relative references are resolved against it")
    label: str = Field(
        default="",
        pattern=r"^([a-z][a-z0-9-]{0,29})?$",
        description="distinguishes several documents; one document may lack it",
        examples=["messaging"],
    )
    credentials: Annotated[str, OneOf(("", "own", SHARED_CREDENTIALS))] = Field(
        default="", description="`shared`: share security schemes with the other shared documents [default: own]"
    )
    allow_private: tuple[Annotated[str, Field(pattern=_HOST)], ...] = Field(
        default=(),
        description="private hosts (host or host:port, in lower case) that may be called",
        examples=[["127.0.0.1:8000"]],
    )
    overlays: tuple[str, ...] = Field(
        default=(), description="OpenAPI overlays in the server's folder, applied in order", examples=[["api/fix.json"]]
    )

    @property
    def named(self) -> str:
        """Return the document's name for messages: its label, or its file."""
        return self.label or self.document


def _apis(value: Any, read: Callable[[Any], tuple[ApiConfig, ...]]) -> tuple[ApiConfig, ...]:
    """Return the documents of `[api]` or `[[api]]`, or () for a single table without a document."""
    apis = read([value] if isinstance(value, Mapping) else value)
    if isinstance(value, Mapping):
        return apis if apis[0].document else ()
    for index, api in enumerate(apis):
        before = apis[:index]
        if not api.document:
            hint = 'document = "api/openapi.yaml"; mcpfactory update NAME --from-openapi LABEL=FILE adds one'
            raise validation_error(f"[[api]] table number {index + 1} has no document", hint)
        if api.label in (one.label for one in before):
            what = f"the label {api.label!r}" if api.label else "no label"
            raise validation_error(
                f"two [[api]] tables have {what}", 'label = "…": each but the first needs a unique label'
            )
        if api.document in (one.document for one in before):
            raise validation_error(f"two [[api]] tables have the same document {api.document}", "remove one of them")
    return apis


def _profile_name(name: str) -> str:
    if not NAME.match(name) or name == _FULL:
        raise validation_error(
            f"{name!r} is not a valid profile name",
            f"use [a-z][a-z0-9-]*, but not {_FULL}, which always means all tools",
        )
    return name


@dataclass(frozen=True, slots=True)
class AdoptedKindFields:
    """Required and optional fields of `[adopted]` for one kind."""

    says: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


_OWN_TESTS: Final = ("test", "report")
KINDS: Final[Mapping[str, AdoptedKindFields]] = {
    "python": AdoptedKindFields("a Python project", ("path", "start"), _OWN_TESTS),
    "node": AdoptedKindFields("a project of Node.js", ("path", "start"), ("build", *_OWN_TESTS)),
    "command": AdoptedKindFields(
        "a command with the files that it runs", ("start",), ("path", "files", "version", *_OWN_TESTS)
    ),
    "pypi": AdoptedKindFields("a package of a Python index", ("package", "version", "hash", "start"), ("constraints",)),
    "npm": AdoptedKindFields("a package of an npm registry", ("package", "version", "hash", "start")),
    "url": AdoptedKindFields("a server at a URL", ("url",)),
}


def require_workspace_path(path: str) -> str:
    """Return a path of a settings file, or refuse a path outside the workspace."""
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or "\\" in path:
        raise validation_error(f"{path!r} is outside the workspace", "use a path below its root")
    return path


class AdoptedSettings(Settings):
    """Settings to build, start and test an adopted server, written by `mcpfactory adopt`."""

    kind: Annotated[str, OneOf(KINDS)] = Field(description="what was adopted; each kind has its own fields")
    start: Names = Field(
        default=(), description="command line: a program of the package or a file below path, and arguments"
    )
    path: Annotated[str, AfterValidator(require_workspace_path)] = Field(
        default="", description="folder of its files, below the workspace"
    )
    files: tuple[Annotated[str, AfterValidator(require_workspace_path)], ...] = Field(
        default=(), strict=False, description="the files below path that a command needs"
    )
    package: str = Field(default="", description="name of the package")
    version: str = Field(default="", description="its version")
    hash: str = Field(default="", description="hash of its file")
    constraints: Names = Field(default=(), description="pinned versions of its dependencies")
    url: str = Field(default="", description="address of a server that runs elsewhere")
    test: Names = Field(default=(), description="command of its tests")
    report: Annotated[str, AfterValidator(require_workspace_path)] = Field(
        default="", description="file that its tests write"
    )
    build: Names = Field(default=(), description="build command of a Node.js project")

    @model_validator(mode="after")
    def _of_kind(self) -> Self:
        kind = KINDS[self.kind]
        given = dict.fromkeys(self.model_fields_set)
        if found := describe_unknown_key(given, ("kind", *kind.required, *kind.optional), f"kind {self.kind}"):
            raise validation_error(*found)
        if missing := [name for name in kind.required if not getattr(self, name)]:
            raise validation_error(
                f"{missing[0]!r} is missing: kind {self.kind!r} requires this field",
                "run 'mcpfactory adopt' to write this field",
            )
        return self

    @property
    def origin(self) -> str:
        """Return the origin in readable form: the argument given to `mcpfactory adopt`."""
        if self.package:
            return f"{self.kind}:{self.package}{'==' if self.kind == 'pypi' else '@'}{self.version}"
        return self.url or self.path or " ".join(self.start)

    @property
    def again(self) -> str:
        """Return the argument of `mcpfactory adopt` for the newest version. A `--command` must run in `folder`."""
        if self.package:
            return f"{self.kind}:{self.package}"
        return f"--command {shlex.quote(shlex.join(self.start))}" if self.kind == "command" else self.origin

    def folder(self, root: Path) -> Path | None:
        """Return the folder of the server's files, or None for files outside the workspace."""
        return root / self.path if self.path else None


class BuildSettings(Settings):
    """The wheel of the server."""

    allow: Strings = Field(
        default=(),
        description='further files that the wheel may install: patterns of paths, or of entry points ("group:name")',
        examples=[["bookshop_models/*"]],
    )
    direct_references: Strings = Field(
        default=(),
        description="dependencies that the wheel may require from a URL (`name @ git+https://…`), not from an index",
        examples=[["bookshop-models"]],
    )


class VariableSettings(Settings):
    """An environment variable, for packages and the registry. The values of unset fields come from the code."""

    description: str = Field(default="", description="what it is for")
    required: bool = Field(default=False, description="the server does not start without it")
    secret: bool = Field(default=False, description="clients must hide its value")
    default: str = Field(default="", description="value that clients suggest")


Tables = Annotated[tuple[dict[str, Any], ...], Field(strict=False)]


class PublishSettings(Settings):
    """Settings for publishing: the targets, and the metadata in the MCP registry."""

    targets: Strings = Field(default=(), description="targets of `mcpfactory publish`", examples=[["pypi", "registry"]])
    mcp_name: str = Field(default="", description="name in the MCP registry", examples=["io.github.octocat/bookshop"])
    title: str = Field(default="", description="title for people [default: that of the server]")
    description: str = Field(default="", description="one sentence [default: that of the package]")
    website: str = Field(default="", description="page about the server [default: the package's]")
    repository: str = Field(default="", description="source repository [default: the package's]")
    subfolder: str = Field(default="", description="folder in the repository [default: servers/NAME]")
    icons: Tables = Field(default=(), description="icons, as in server.json")
    packages: Tables = Field(
        default=(), description="further packages, as in server.json; `{version}` and `{bundle}` are filled in"
    )
    remotes: Tables = Field(default=(), description="addresses at which the server runs, as in server.json")
    environment: Mapping[Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")], VariableSettings] = Field(
        default={}, description="environment variables, by name"
    )


class ServerConfig(Settings):
    """`mcpfactory.toml` of a server."""

    server: ServerTable = Field(description="the server, and the defaults for clients")
    apis: Annotated[
        tuple[ApiConfig, ...],
        Field(strict=False),
        WrapValidator(_apis, json_schema_input_type=ApiConfig | list[ApiConfig]),
    ] = Field(default=(), validation_alias="api", description="`[api]`, or `[[api]]` for each of several API documents")
    credentials: CredentialOptions = Field(
        default=CredentialOptions.model_construct(), description="parameters that are credentials"
    )
    profiles: Mapping[Annotated[str, AfterValidator(_profile_name)], Selection] = Field(
        default={}, description="named selections of tools"
    )
    names: Mapping[str, str] = Field(
        default={},
        description="tool names that you choose, by operation",
        examples=[{'"GET /books/{id}"': "read_book"}],
    )
    tools: Mapping[str, ToolCuration] = Field(default={}, description="decisions about tools, by original name")
    responses: ResponseOptions = Field(
        default=ResponseOptions.model_construct(), description="decisions about all answers"
    )
    workflows: Mapping[str, WorkflowConfig] = Field(default={}, description="tools that combine other tools, by name")
    answers: Mapping[str, Answer] = Field(default={}, description="answers to the questions of the template, by name")
    adopted: AdoptedSettings | None = Field(
        default=None, description="for an adopted server: how to build, start and test it"
    )
    build: BuildSettings = Field(default=BuildSettings.model_construct(), description="what the wheel may contain")
    publish: PublishSettings = Field(
        default=PublishSettings.model_construct(), description="publish targets, and what the MCP registry shows"
    )

    @property
    def name(self) -> str:
        """Return the name of the server."""
        return self.server.name

    @property
    def package(self) -> str:
        """Return the import package."""
        return self.server.package

    @property
    def template(self) -> str:
        """Return the name or source of the template."""
        return self.server.template

    @property
    def document(self) -> str:
        """Return the path of the first API document, or "" if the server has no document."""
        return next((api.document for api in self.apis), "")

    @property
    def allow_private(self) -> tuple[str, ...]:
        """Return the private hosts (`host` or `host:port`) that the server may call."""
        return tuple(dict.fromkeys(host for api in self.apis for host in api.allow_private))

    def with_server(self, **changes: str) -> Self:
        """Return the configuration with other values in `[server]`."""
        return self.model_copy(update={"server": self.server.model_copy(update=changes)})


def read_config(folder: Path) -> ServerConfig:
    """Return the configuration in a server's directory, or raise a SettingsError."""
    path = folder / CONFIG
    if not path.exists():
        raise SettingsError(
            f"{path} does not exist", "check that this is the folder of a server; mcpfactory inspect lists the servers"
        )
    return parse_config(read_toml_text(path), path)


def parse_config(text: str, path: Path) -> ServerConfig:
    """Return the configuration in the text of a file, or raise a SettingsError about `path`."""
    config = read_settings(ServerConfig, text, path)
    if not NAME.match(config.name) or not _PACKAGE.match(config.package):
        expected = "server.name is [a-z][a-z0-9-]*, server.package a Python package name"
        raise SettingsError(f"{path}: name {config.name!r} or package {config.package!r} cannot be used", expected)
    return config


# --- the text of a new file ---


# write these keys even if they are empty
_ALWAYS: Final = ("document", "include_tags", "include_paths", "include_operations")
_API_KEYS: Final = ("label", "document", "source", "credentials", "allow_private", *Selection.model_fields, "overlays")


def render_config(config: ServerConfig) -> str:
    """Return the configuration as text."""
    lines = ["[server]"]
    lines += [f"{key} = {quoted(getattr(config, key))}" for key in ("name", "package", "template")]
    chosen = ((key, getattr(config.server, key)) for key in ("mode", "profile", "dialect"))
    lines += [f"{key} = {quoted(value)}" for key, value in chosen if value]
    lines += render_apis(config.apis)
    decided = [(key, value) for key, value in config.credentials if value]
    if decided:
        lines += ["", "[credentials]", *(f"{key} = {to_toml(value)}" for key, value in decided)]
    if config.names:
        lines += ["", "[names]"]
        lines += [f"{quoted(key)} = {quoted(value)}" for key, value in sorted(config.names.items())]
    return "\n".join(lines) + "\n"


def render_apis(apis: Sequence[ApiConfig]) -> list[str]:
    """Return the lines of the `[[api]]` tables, or of `[api]` for a single document without a label."""
    lines: list[str] = []
    for api in apis:
        lines += ["", "[[api]]" if len(apis) > 1 or api.label else "[api]"]
        rows = ((key, getattr(api, key)) for key in _API_KEYS)
        lines += [f"{key} = {to_toml(value)}" for key, value in rows if value or key in _ALWAYS]
    return lines
