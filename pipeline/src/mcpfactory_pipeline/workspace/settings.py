"""Settings of a workspace: the models of the root `mcpfactory.toml`.

Secrets are only in environment variables; the settings contain the names of these variables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from mcpfactory_codegen.servers.config import require_workspace_path
from mcpfactory_codegen.settings import Names, OneOf, Settings, Strings, validation_error
from mcpfactory_pipeline.base.events import KINDS as RUN_KINDS
from mcpfactory_pipeline.isolation.levels import AUTO, LEVELS, REQUIRED
from mcpfactory_pipeline.workspace.policy import (
    DEFAULT,
    ChannelPolicy,
    Memory,
    Number,
    StageSettings,
    check_channel_order,
)
from mcpfactory_runtime.server.generated.catalog import MODES
from mcpfactory_runtime.urls import split_web_url


def _url(value: str) -> str:
    if value and (split_web_url(value) is None or re.search(r"\s", value)):
        raise validation_error(f"{value!r} is not a valid URL", "write an address that begins with https://")
    return value


Variable = Annotated[str, Field(pattern=r"^([A-Z_][A-Z0-9_]*)?$")]
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
Url = Annotated[str, AfterValidator(_url)]
Model = Annotated[str, Field(pattern=r"^(openai|anthropic):\S+$", examples=["openai:NAME"])]


# --- evaluation ---


class EndpointSettings(Settings):
    """The address of a model, and its prices per million tokens."""

    url: str = Field(default="", description="address [default: the vendor's]", examples=["https://host/v1"])
    key: str = Field(
        default="", description="variable with the key [default: the vendor's]", examples=["OPENAI_API_KEY"]
    )
    read: Number | None = Field(default=None, description="price of input tokens", examples=[2])
    written: Number | None = Field(default=None, description="price of output tokens", examples=[8])
    cached: Number | None = Field(
        default=None, description="price of cached input tokens [default: `read`]", examples=[1]
    )
    currency: str = Field(default="USD", description="currency of the prices")

    @model_validator(mode="after")
    def _both(self) -> Self:
        for name, other in (("written", self.read), ("read", self.written)):
            if other is not None and getattr(self, name) is None:
                raise validation_error(f"the price {name} is missing", "set read and written, per million tokens")
        return self


class EvaluationSettings(Settings):
    """Models whose recorded reports are required."""

    models: tuple[Model, ...] = Field(
        default=(),
        strict=False,
        description="models (`KIND:MODEL`) whose reports must all satisfy `min_pass_rate`; the stage `evaluate` runs only if there is a model",
        examples=[["openai:NAME"]],
    )
    mode: Annotated[str, OneOf(MODES)] = Field(default="full", description="mode of these reports")
    endpoints: Mapping[Model, EndpointSettings] = Field(default={}, description="endpoint of a model, by its name")


# --- events ---


DECISIONS: Final = (
    *("approved", "rejected", "promoted", "rolled-back", "held", "released"),
    *("retired", "revived", "renamed", "waived", "published"),
)
KINDS: Final = (*RUN_KINDS, *DECISIONS, "waits")
# Results and decisions, for chats and incident tools. All other events only show progress.
_DEFAULT_KINDS: Final = ("step.finished", "trouble", "run.finished", *DECISIONS)
_FOR_PEOPLE: Final = ("waits",)  # default for mails and chats: only events that require an action
_TLS: Final = {"starttls": 587, "tls": 465, "none": 25}  # TLS mode → default port
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
Kinds = Annotated[
    tuple[Annotated[str, OneOf((*KINDS, "*"))], ...],
    Field(strict=False),
    AfterValidator(lambda given: KINDS if "*" in given else given),
]
Address = Annotated[str, Field(pattern=r"^[^\s@,;<>\"()]+@[A-Za-z0-9.\[\]:-]+$", examples=["ada@example.org"])]


class MailSettings(Settings):
    """Mail about events."""

    to: tuple[Address, ...] = Field(
        strict=False, min_length=1, description="recipients", examples=[["ada@example.org"]]
    )
    sender: Address = Field(validation_alias="from", description="sender", examples=["factory@example.org"])
    smtp: str = Field(
        pattern=r"^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?$",
        description="mail server, with an optional port",
        examples=["mail.example.org:587"],
    )
    tls: Annotated[str, OneOf(_TLS)] = Field(
        default="starttls",
        description="encryption: `starttls` (port 587), `tls` (465) or `none` (25); `none` sends no password to another machine",
    )
    user: str = Field(default="", description="name to log in with", examples=["factory"])
    password_variable: Variable = Field(
        default="",
        description="variable with the password; if it is not set, nothing is sent",
        examples=["MAIL_PASSWORD"],
    )
    kinds: Kinds = Field(default=_FOR_PEOPLE, description='kinds of events; "*" for all', examples=[["waits"]])

    @property
    def host(self) -> str:
        """The host of the mail server."""
        return re.sub(r":\d+$", "", self.smtp).strip("[]")

    @property
    def port(self) -> int:
        """The port of the mail server."""
        found = re.search(r":(\d+)$", self.smtp)
        return int(found[1]) if found else _TLS[self.tls]

    @property
    def password(self) -> str:
        """The password, from the environment."""
        return os.environ.get(self.password_variable, "") if self.password_variable else ""

    @property
    def problem(self) -> str:
        """The reason why configured mail is not sent; "" if mail is sent."""
        unset = self.password_variable and not self.password
        return f"mail is off, because {self.password_variable} is not set" if unset else ""

    @model_validator(mode="after")
    def _login(self) -> Self:
        if bool(self.user) != bool(self.password_variable):
            hint = 'password_variable = "MAIL_PASSWORD"'
            raise validation_error("mail requires both 'user' and 'password_variable', or neither", hint)
        if self.user and self.tls == "none" and self.host not in _LOOPBACK:
            raise validation_error("mail would send the password unencrypted", 'tls = "starttls"', "tls")
        return self


class EventSettings(Settings):
    """Receivers of events: a file, a webhook, a chat, mail."""

    log: Annotated[str, AfterValidator(require_workspace_path)] = Field(
        default="", description="file below the workspace", examples=["pipeline/artifacts/events.jsonl"]
    )
    webhook: Url = Field(default="", description="address of the webhook", examples=["https://chat.example.org/hook"])
    webhook_variable: Variable = Field(
        default="", description="variable with the webhook's address, if the address is secret", examples=["EVENTS_URL"]
    )
    secret_variable: Variable = Field(
        default="",
        description="variable with the secret that signs requests; if it is not set, nothing is sent",
        examples=["EVENTS_SECRET"],
    )
    format: Annotated[str, OneOf(("json", "slack", "teams"))] = Field(default="json", description="body of requests")
    dashboard: Url = Field(
        default="",
        description="public address of the dashboard; events about a server then have a `link` to its page",
        examples=["https://host/"],
    )
    wanted: Kinds | None = Field(
        default=None,
        validation_alias="kinds",
        description='kinds of events; "*" for all [default: results and decisions; for chats, only required actions]',
        examples=[["step.finished", "promoted"]],
    )
    timeout: float = Field(default=5.0, gt=0, le=60, description="seconds for one attempt")
    attempts: int = Field(default=3, ge=1, le=10, description="attempts to deliver an event")
    mail: MailSettings | None = Field(default=None, description="mail")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of events for the log and for the webhook."""
        return self.wanted if self.wanted is not None else _DEFAULT_KINDS if self.format == "json" else _FOR_PEOPLE

    @property
    def url(self) -> str:
        """The address of the webhook, from the file or the environment."""
        return os.environ.get(self.webhook_variable, "") if self.webhook_variable else self.webhook

    @property
    def secret(self) -> str:
        """The secret that signs requests, from the environment."""
        return os.environ.get(self.secret_variable, "") if self.secret_variable else ""

    @property
    def problem(self) -> str:
        """The reason why a configured webhook is not called; "" without a reason."""
        if self.webhook_variable and not self.url:
            return f"the webhook is off, because {self.webhook_variable} is not set"
        if self.webhook_variable and split_web_url(self.url) is None:
            return f"the webhook is off, because {self.webhook_variable} is not a valid URL"
        if self.url and self.secret_variable and not self.secret:
            return f"the webhook is off, because {self.secret_variable} is not set and events would be unsigned"
        return ""

    def link(self, path: str) -> str:
        """Return the URL of a dashboard page; "" if the dashboard's address is unknown."""
        return f"{self.dashboard.rstrip('/')}/{path}" if self.dashboard else ""

    def wants(self, kind: str) -> bool:
        """Return True if a receiver gets events of this kind."""
        return kind in self.kinds or (self.mail is not None and kind in self.mail.kinds)

    @model_validator(mode="after")
    def _one_address(self) -> Self:
        if self.webhook and self.webhook_variable:
            raise validation_error(
                "'webhook' and 'webhook_variable' cannot be combined", "remove one of the two", "webhook_variable"
            )
        parts = split_web_url(self.dashboard)
        if parts is not None and (parts.query or parts.fragment):
            raise validation_error(
                f"{self.dashboard!r} is not a valid URL", 'dashboard = "https://factory.example.org"', "dashboard"
            )
        return self


# --- the pipeline, and the rest of the file ---


class LimitSettings(Settings):
    """Limits of a stage and all processes that it starts."""

    timeout: float | None = Field(default=None, gt=0, description="seconds", examples=[1800])
    memory: Memory | None = Field(default=None, description="bytes, or a text with a unit", examples=["2GB"])


class ContainerSettings(Settings):
    """The container of `isolation = "container"`."""

    program: str = Field(default="docker", min_length=1, description="docker or podman")
    image: str = Field(default="debian:stable-slim", min_length=1, description="image", examples=["python:3.13"])


class PipelineSettings(Settings):
    """Settings of the pipeline."""

    attempts: int = Field(default=2, ge=1, le=10, description="attempts for a stage that errored or was interrupted")
    backoff: float = Field(
        default=2.0,
        ge=0,
        le=60,
        description="seconds before the second attempt; doubles with each attempt, up to one minute",
    )
    executor: str = Field(
        default="local",
        description="where stages run: `local`, `dask`, or the address of a dask scheduler; `--executor` overrides it for one run",
        examples=["dask"],
    )
    isolation: Annotated[str, OneOf((AUTO, REQUIRED, *LEVELS))] = Field(
        default=AUTO,
        description="sandbox for server code: `auto` uses the best available level, `required` refuses to run without a sandbox; if the level changes, `build`, `test` and `validate` are stale",
    )
    container: ContainerSettings = Field(
        default=ContainerSettings.model_construct(), description='for `isolation = "container"`'
    )
    limits: Mapping[str, LimitSettings] = Field(default={}, description="limits of a stage, by its name")
    channels: Annotated[tuple[ChannelPolicy, ...], AfterValidator(check_channel_order)] = Field(
        default=DEFAULT,
        strict=False,
        min_length=1,
        description="channels and their policies [default: staging, production]",
    )
    stages: tuple[StageSettings, ...] = Field(default=(), strict=False, description="your own stages")
    evaluation: EvaluationSettings = Field(
        default=EvaluationSettings.model_construct(), description="models whose recorded reports are required"
    )
    events: EventSettings = Field(default=EventSettings.model_construct(), description="notifications")


class WorkspaceTable(Settings):
    """The workspace."""

    name: str = Field(
        default="", description="name of the workspace [default: the folder's name]", examples=["my-servers"]
    )
    factory: str | None = Field(
        default=None,
        description="source of mcpfactory for jobs and uv: `index`, a repository, or a folder with its wheels",
        examples=["index", "tools/mcpfactory/", "git+https://host/repository@1.2.3"],
    )


class ArtifactSettings(Settings):
    """Files of candidates on this machine."""

    keep: Annotated[int, Field(ge=1)] | Literal["all"] = Field(
        default=10,
        description="number of newest candidates per server whose files are kept; `all` disables pruning",
        examples=[10, "all"],
    )


class CiSettings(Settings):
    """Jobs of the CI provider."""

    jobs: int = Field(default=256, ge=1, le=256, description="maximum jobs; GitHub Actions allows 256 in a matrix")
    servers: int = Field(
        default=4,
        ge=1,
        le=100_000,
        description="minimum servers per job, if there are enough servers; the setup of a job takes a minute",
    )
    branch: str = Field(
        default="main",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_./-]{0,99}$",
        description="branch for results; `init` writes the repository's main branch",
    )
    python: str = Field(
        default="3.12",
        pattern=r"^3\.\d{1,2}$",
        description="Python version of the stages; if your machine has another version, every server is stale",
    )
    push: Annotated[str, OneOf(("branch", "pull-request"))] = Field(
        default="branch",
        description="how jobs add results to `branch`: push to it, or push a branch `mcpfactory-results` and open a pull request",
    )
    channel: Word = Field(default="production", description="channel that releases are published from")
    environment: Word = Field(default="release", description="the provider's environment that protects releases")
    image: str = Field(
        default="",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9_./:@-]{0,299})?$",
        description="container of GitLab jobs; pin its digest for reproducible runs [default: the official Python image]",
    )
    install: str = Field(
        default="",
        pattern=r"^[^\r\n]{1,500}$",
        description="line that installs the factory [default: by workspace.factory]",
    )


class ReleaseSettings(Settings):
    """Packages of the repository that are released together."""

    name: Word = Field(default="", description="beginning of Git tags [default: the workspace's name]")
    packages: Strings = Field(
        min_length=1, description="folders with a pyproject.toml", examples=[["packages/one", "packages/two"]]
    )


class WaiverPolicy(Settings):
    """Requirements of a waiver. If these settings change, `validate` is stale."""

    limit: int = Field(default=10, ge=0, description="maximum waivers of one server; if there are more, none is valid")
    max_days: int = Field(default=365, ge=0, description="maximum days until a waiver ends")
    by: Names = Field(default=(), description="people who can waive [default: anyone]", examples=[["Ada", "Grace"]])


_PLATFORM: Final = "x86_64-unknown-linux-gnu"
_PLATFORMS: Final = r"^(x86_64|aarch64)-(unknown-linux-gnu|apple-darwin|pc-windows-msvc)$"
_PYTHON: Final = r"^3\.\d+$"


class PypiOptions(Settings):
    """PyPI, or a private index."""

    url: str = Field(default="https://upload.pypi.org/legacy/", description="where files are uploaded")
    index: str = Field(default="https://pypi.org/simple/", description="index for installation")
    auth: Literal["token", "trusted"] = Field(default="token", description="a token, or trusted publishing in CI")
    user: str = Field(default="__token__", description="user of the token")
    token_variable: str = Field(default="PYPI_TOKEN", description="variable with the token")
    runtime: Literal["require", "publish", "assume"] = Field(
        default="require",
        description="`require`: the index must have the runtime; `publish`: upload the runtime to a private index; `assume`: do not check",
    )


class McpbOptions(Settings):
    """An MCPB bundle."""

    type: Literal["uv", "python"] = Field(
        default="uv", description="`uv`: uv installs the packages; `python`: the bundle contains the packages"
    )
    platform: str = Field(default=_PLATFORM, pattern=_PLATFORMS, description="platform of a `python` bundle")
    python: str = Field(default="3.12", pattern=_PYTHON, description="Python version of a `python` bundle")
    author: str = Field(default="", description="author [default: the authors of the package]")


class DockerOptions(Settings):
    """A Dockerfile."""

    base: str = Field(default="", description="base image, named by its hash", examples=["python:3.13-slim@sha256:…"])


class SbomOptions(Settings):
    """A bill of materials."""

    resolve: Literal["index", "declared"] = Field(
        default="index", description="`index`: all dependencies; `declared`: only direct ones"
    )
    platform: str = Field(default=_PLATFORM, description="platform of the dependencies")
    python: str = Field(default="3.12", pattern=_PYTHON, description="Python version of the dependencies")


class RegistryOptions(Settings):
    """The MCP registry."""

    url: str = Field(default="https://registry.modelcontextprotocol.io", description="address of the registry")
    auth: Literal["token", "github", "github-oidc", "none"] = Field(default="token", description="how to log in")
    token_variable: str = Field(default="MCP_REGISTRY_TOKEN", description="variable with the token")
    audience: str = Field(default="", description="audience of the job's identity [default: the registry]")


class StateSettings(Settings):
    """State files of the servers."""

    tracked: bool = Field(default=True, description="write pipeline/state/; without it, only the histories are in Git")


class TargetTables(Settings):
    """Options of publish targets; `--set` overrides these options."""

    pypi: PypiOptions = Field(default=PypiOptions.model_construct(), description="PyPI, or a private index")
    mcpb: McpbOptions = Field(default=McpbOptions.model_construct(), description="an MCPB bundle")
    docker: DockerOptions = Field(default=DockerOptions.model_construct(), description="a Dockerfile")
    sbom: SbomOptions = Field(default=SbomOptions.model_construct(), description="a bill of materials")
    registry: RegistryOptions = Field(default=RegistryOptions.model_construct(), description="the MCP registry")


class WorkspaceSettings(Settings):
    """The root `mcpfactory.toml` of a workspace."""

    workspace: WorkspaceTable = Field(description="the workspace")
    pipeline: PipelineSettings = Field(default=PipelineSettings.model_construct(), description="how the pipeline runs")
    artifacts: ArtifactSettings = Field(
        default=ArtifactSettings.model_construct(), description="files of candidates on this machine"
    )
    state: StateSettings = Field(default=StateSettings.model_construct(), description="state files in Git")
    ci: CiSettings = Field(default=CiSettings.model_construct(), description="jobs of the CI provider")
    release: ReleaseSettings | None = Field(default=None, description="packages that are released together")
    waivers: WaiverPolicy = Field(default=WaiverPolicy.model_construct(), description="requirements of waivers")
    owners: Mapping[str, Names] | None = Field(
        default=None,
        description="owners of servers, by a name or a pattern; the longest match counts [default: CODEOWNERS]",
        examples=[{'"billing-*"': ["Linus"]}],
    )
    publish: TargetTables = Field(default=TargetTables.model_construct(), description="options of publish targets")
