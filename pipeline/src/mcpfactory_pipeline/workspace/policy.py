"""Settings of channels and stages: `[[pipeline.channels]]` and `[[pipeline.stages]]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, JsonValue, Tag, model_validator

from mcpfactory_codegen.settings import Names, OneOf, Settings, Strings, validation_error
from mcpfactory_pipeline.base.text import pluralize

MEMORY: Final = 4 * 2**30  # default memory limit in bytes of a stage with its child processes
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZES: Final = {"MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}
_DURATION: Final = r"^\d{1,6}[smhd]$"
_SIZE: Final = r"^\d{1,6}\s*[MG]i?B$"


def _seconds(value: object) -> float:
    if not isinstance(value, str) or not re.fullmatch(_DURATION, value):
        raise validation_error(f"{value!r} is not a valid duration", 'soak = "24h"; units: s, m, h, d')
    return float(int(value[:-1]) * _UNITS[value[-1]])


def _bytes(value: object) -> object:
    if not isinstance(value, str):
        return value
    found = re.fullmatch(r"(\d{1,6})\s*([MG]i?B)", value)
    if found is None or not int(found[1]):
        raise validation_error(f"{value!r} is not a valid size", 'memory = "2GB"; units: MB, GB, MiB, GiB')
    return int(found[1]) * _SIZES[found[2]]


def _chosen(values: tuple[str, ...]) -> BeforeValidator:
    """Return a validator that also accepts true and false. True selects all values except `publish`."""
    all_but = tuple(value for value in values if value != _BY_NAME)
    each = tuple[Annotated[str, OneOf(values)], ...]
    return BeforeValidator(
        lambda given: (all_but if given else ()) if isinstance(given, bool) else given,
        json_schema_input_type=bool | each,
    )


def _sorted(values: tuple[str, ...]) -> AfterValidator:
    return AfterValidator(lambda given: tuple(one for one in values if one in given))


Duration = Annotated[float, BeforeValidator(_seconds, json_schema_input_type=Annotated[str, Field(pattern=_DURATION)])]
Memory = Annotated[
    int, Field(gt=0), BeforeValidator(_bytes, json_schema_input_type=int | Annotated[str, Field(pattern=_SIZE)])
]
Number = Annotated[int, Field(ge=0)] | Annotated[float, Field(ge=0)]


# --- channels ---


AGENT_ACTIONS: Final = ("approve", "reject", "promote", "rollback", "hold", "unhold", "publish")
# `agents = true` does not include this action
_BY_NAME: Final = "publish"
AGENT_DECISIONS: Final = ("approve", "reject")


class GateLimits(Settings):
    """Limits of a channel. A gate without a limit is open. A gate that has a limit but cannot be checked is closed."""

    min_score: Number | None = Field(default=None, description="minimum score of `validate`", examples=[90])
    max_critical: Number | None = Field(default=None, description="maximum findings of severity 5", examples=[0])
    min_tests: Number | None = Field(
        default=None, description="minimum passed tests that ran a tool of the server", examples=[1]
    )
    max_skipped_tests: Number | None = Field(
        default=None, description="maximum tests that are skipped or expected to fail", examples=[0]
    )
    max_deselected_tests: Number | None = Field(
        default=None,
        description="maximum defined tests that did not run, for example because of `-k`, a marker or a hook",
        examples=[0],
    )
    max_lost_tests: Number | None = Field(
        default=None,
        description="maximum tests (by name) that the channel's current candidate passed and that are now missing",
        examples=[0],
    )
    token_budget: Number | None = Field(
        default=None, description="maximum tokens of all tool descriptions", examples=[8000]
    )
    min_coverage: Number | None = Field(
        default=None, description="minimum percentage of the document's operations that are tools", examples=[80]
    )
    max_start_ms: Number | None = Field(
        default=None, description="maximum time to the first response; the fastest start counts", examples=[500]
    )
    max_call_ms: Number | None = Field(default=None, description="maximum median time of a call", examples=[50])
    max_memory_mb: Number | None = Field(
        default=None, description="maximum peak memory of the process (Linux)", examples=[200]
    )
    min_pass_rate: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None,
        description="minimum of the pass rate's lower 95 % bound, in the report of each model in pipeline.evaluation",
        examples=[0.8],
    )
    max_report_days: Number | None = Field(
        default=None, description="maximum age of these reports in days", examples=[30]
    )
    contract: bool | None = Field(
        default=None,
        description="if true, changes that break callers of the offered release require a new major version [default: true after the first channel, if the tools are known]",
        examples=[False],
    )


class ChannelPolicy(Settings):
    """Requirements of a channel for candidates. Pipeline runs fill the first channel."""

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_-]{0,39}$", description="lower-case letters, digits, - and _", examples=["production"]
    )
    source: str | None = Field(
        default=None,
        validation_alias="from",
        description="previous channel, which must have offered the candidate; not for the first channel",
        examples=["staging"],
    )
    limits: GateLimits = Field(
        default=GateLimits.model_construct(), validation_alias="gates", description="limits of the candidate"
    )
    checks: Strings | None = Field(
        default=None,
        description="required stages among those that need a previous channel [default: all]; stages that need no channel are always required",
        examples=[["smoke"]],
    )
    soak: Duration = Field(
        default=0.0,
        description="minimum total time in the previous channel: `30m`, `24h`, `7d`; the time of other candidates does not count",
        examples=["24h"],
    )
    approvals: int = Field(
        default=0,
        ge=0,
        le=20,
        description="number of different people who must approve the candidate; case and spaces in names are ignored",
        examples=[1],
    )
    approvers: Names = Field(
        default=(),
        description="people who can approve, by their name in the history (`MCPFACTORY_ACTOR`, else Git's `user.name`) [default: anyone]",
        examples=[["Ada"]],
    )
    operators: Names = Field(
        default=(),
        description="people who can promote, roll back, retire and lift holds, also through agents [default: anyone]; anyone can hold the channel",
        examples=[["Ada"]],
    )
    signed: bool = Field(
        default=False,
        description="decisions count only if signed with a key in `pipeline/allowed_signers`",
        examples=[True],
    )
    agents: Annotated[
        tuple[Annotated[str, OneOf(AGENT_ACTIONS)], ...],
        Field(strict=False),
        _chosen(AGENT_ACTIONS),
        _sorted(AGENT_ACTIONS),
    ] = Field(
        default=(),
        description="actions that an agent can do through `mcpfactory serve` after a person confirms: a list, or true for all but `publish`",
        examples=[["approve", "reject"]],
    )

    @property
    def gates(self) -> dict[str, float]:
        """The configured limits, by gate name."""
        return {name: limit for name, limit in self.limits if limit is not None and limit is not False}

    @property
    def keeps_contract(self) -> bool:
        """True if known changes that break callers require a new major version, and an approval that names them."""
        return self.limits.contract is not False and self.source is not None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _check_approvers(self.approvals, self.approvers)
        if self.signed and not self.approvals:
            raise validation_error(
                "'signed' requires 'approvals'", "set 'signed' only for a channel with 'approvals'", "signed"
            )
        return self


def _check_approvers(approvals: int, approvers: tuple[str, ...]) -> None:
    if approvers and len(set(approvers)) < approvals:
        named = pluralize(len(set(approvers)), "approver")
        raise validation_error(
            f"requires {approvals} approvals, but 'approvers' has only {named}", "list more approvers", "approvers"
        )


DEFAULT: Final = (
    ChannelPolicy.model_construct(name="staging"),
    ChannelPolicy.model_construct(name="production", source="staging", approvals=1),
)


def check_channel_order(channels: tuple[ChannelPolicy, ...]) -> tuple[ChannelPolicy, ...]:
    """Return the channels after a check that each channel comes after its source channel."""
    first, *others = channels
    if first.source is not None or first.approvals or first.approvers or first.soak:
        raise validation_error(
            "the first channel, which receives candidates from runs, must not set 'from', 'soak', 'approvals' or 'approvers'",
            "set 'from', 'soak' and 'approvals' for a later channel",
            0,
        )
    known = [first.name]
    for index, channel in enumerate(others, 1):
        if channel.name in known:
            raise validation_error(
                f"two channels have the name {channel.name!r}",
                "give one of the two channels another name",
                index,
                "name",
            )
        if channel.source not in known:
            message = f"from is {channel.source!r}, which is not an earlier channel"
            raise validation_error(message, f'from = "{known[-1]}"', index)
        known.append(channel.name)
    return channels


# --- stages ---


class ApprovalPolicy(Settings):
    """Requirements of an approval stage."""

    approvals: int = Field(default=1, ge=1, le=20, description="number of different people who must approve")
    approvers: Names = Field(
        default=(), description="people who can approve [default: anyone]", examples=[["Ada", "Grace"]]
    )
    message: str = Field(default="", description="the question", examples=["Are these the tools that callers need?"])
    on_rejection: str = Field(
        default="stop",
        pattern=r"^(stop|restart:.+)$",
        description="`stop`, or `restart:STAGE` to run an earlier stage again",
        examples=["restart:generate"],
    )
    signed: bool = Field(default=False, description="decisions count only if signed")
    agents: Annotated[
        tuple[Annotated[str, OneOf(AGENT_DECISIONS)], ...],
        Field(strict=False),
        _chosen(AGENT_DECISIONS),
        _sorted(AGENT_DECISIONS),
    ] = Field(
        default=(), description="decisions that an agent can make after a person confirms", examples=[["approve"]]
    )

    @property
    def restart(self) -> str:
        """The stage that runs again after a rejection; "" if a rejection blocks all later stages."""
        return self.on_rejection.removeprefix("restart:") if self.on_rejection != "stop" else ""

    @model_validator(mode="after")
    def _enough(self) -> Self:
        _check_approvers(self.approvals, self.approvers)
        return self


class WorkspaceStage(Settings):
    """A stage that the workspace adds."""

    name: str = Field(
        pattern=r"^[a-z][a-z0-9-]{0,39}$", description="lower-case letters, digits and dashes", examples=["licenses"]
    )
    needs: Strings = Field(
        default=("build",), description="stages that must have passed, or `channel:NAME`", examples=[["build"]]
    )
    before: Strings = Field(default=(), description="stages that need this stage", examples=[["validate"]])


_READS: Final = ("source", "tests", "candidate", "document", "config", "generated", "runtime")


class JobStage(WorkspaceStage):
    """A stage that runs a command, or a function of the workspace."""

    kind: Literal["job"] = Field(default="job", description="runs code")
    command: Strings | None = Field(
        default=None, min_length=1, description="program and arguments", examples=[["python", "tools/licenses.py"]]
    )
    entry: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$",
        description="function `module:name` below the root",
        examples=["tools.licenses:stage"],
    )
    settings: dict[str, JsonValue] = Field(default={}, description="passed to the function", examples=[{"most": 10}])
    reads: tuple[Annotated[str, OneOf(_READS)], ...] = Field(
        default=("candidate",),
        strict=False,
        description="inputs; a change makes the stage stale",
        examples=[["candidate"]],
    )
    version: int = Field(
        default=1, description="increase it when the code handles the same inputs differently", examples=[2]
    )
    timeout: float = Field(default=600.0, gt=0, description="seconds", examples=[600])
    memory: Memory = Field(default=MEMORY, description="bytes, or a text with a unit", examples=["2GB"])
    soak: Duration = Field(
        default=0.0,
        description="for a stage after a channel: time for which the stage runs repeatedly",
        examples=["1h"],
    )
    on_failure: Annotated[str, OneOf(("stop", "rollback"))] = Field(
        default="stop", description="for a stage after a channel: `rollback` moves the channel back if the stage fails"
    )

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        if self.entry is not None and self.command is not None:
            raise validation_error("'command' and 'entry' cannot be combined", "remove one of the two", "entry")
        if self.entry is None and self.command is None:
            raise validation_error(
                "'command' is missing", 'set command = ["python", "tools/licenses.py"], or entry = "module:name"'
            )
        if self.entry is None and self.settings:
            raise validation_error(
                "'settings' requires 'entry'", "pass the settings to the command as arguments", "settings"
            )
        return self


def _shown(part: str) -> str:
    kind, _, rest = part.partition(":")
    if kind not in {"stage", "artifact", "file"} or not rest or ".." in PurePosixPath(rest).parts or rest[0] == "/":
        raise validation_error(f"invalid entry {part!r}", 'shows = ["stage:validate", "file:README.md"]')
    return part


class ApprovalStage(WorkspaceStage, ApprovalPolicy):
    """A stage that people decide."""

    kind: Literal["approval"] = Field(description="waits for people")
    shows: tuple[Annotated[str, AfterValidator(_shown)], ...] | None = Field(
        default=None,
        strict=False,
        description="`stage:NAME`, `file:PATH`, `artifact:STAGE/PATH` [default: results of the stages that it needs]",
        examples=[["stage:validate", "file:README.md"]],
    )


def _kind(table: Any) -> str:
    kind = table.get("kind") if isinstance(table, Mapping) else getattr(table, "kind", None)
    return "approval" if kind == "approval" else "job"


StageSettings = Annotated[
    Annotated[JobStage, Tag("job")] | Annotated[ApprovalStage, Tag("approval")], Discriminator(_kind)
]
