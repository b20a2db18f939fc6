"""Stages, approval stages, and limits of time, memory and isolation.

An approval stage shows the candidate, results of other stages (`stage:NAME`), files of the server (`file:PATH`) and
stored reports (`artifact:STAGE/PATH`). A decision is valid while all shown parts are unchanged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.text import did_you_mean
from mcpfactory_pipeline.base.errors import JsonRecord, StageError
from mcpfactory_pipeline.base.hashing import hash_named_texts
from mcpfactory_pipeline.isolation.levels import REQUIRED, find_isolation_level
from mcpfactory_pipeline.plan.policy import missing_approvals, normalize_person_name
from mcpfactory_pipeline.state.state import StageDecisions
from mcpfactory_pipeline.workspace.policy import MEMORY, ApprovalPolicy, ChannelPolicy
from mcpfactory_pipeline.workspace.settings import LimitSettings, PipelineSettings
from mcpfactory_pipeline.workspace.workspace import Workspace, setting_error


def decisions_about_shown_content(made: StageDecisions | None, shown: Mapping[str, str]) -> StageDecisions | None:
    """Return the decisions about the content that is shown now; None if they are about other content."""
    return made if made is not None and dict(made.shown) == dict(shown) else None


def shown_content_approvers(policy: ApprovalPolicy, made: StageDecisions | None, shown: Mapping[str, str]) -> list[str]:
    """Return the approvers of the content that is shown now, sorted by name.

    Only people in the current list of approvers count.
    """
    given = current.approvals if (current := decisions_about_shown_content(made, shown)) else ()
    people = {
        normalize_person_name(who): who for who in sorted(given, reverse=True)
    }  # different spellings of a name count as one person
    allowed = {normalize_person_name(who) for who in policy.approvers}
    return sorted(who for key, who in people.items() if not allowed or key in allowed)


def shown_content_rejections(made: StageDecisions | None, shown: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the people who rejected the shown content, each with the reason."""
    return sorted(current.rejections.items()) if (current := decisions_about_shown_content(made, shown)) else []


def describe_missing_approvals(policy: ApprovalPolicy, made: StageDecisions | None, shown: Mapping[str, str]) -> str:
    """Describe the missing approvals, as `1 of 2 approvals missing, from Ada, Grace`; "" if none are missing."""
    missing = missing_approvals(policy.approvals, shown_content_approvers(policy, made, shown), policy.approvers)
    changed = missing and made is not None and made.approvals and decisions_about_shown_content(made, shown) is None
    return missing + ("; what was approved before has changed" if changed else "")


# `passed` and `failed` are verdicts on the server. `errored` means that a build tool or the pipeline failed.
# `interrupted` means that the process died. `inconclusive` means that no verdict is possible.
# Only `errored` and `interrupted` stages are retried.
OUTCOMES: Final = ("passed", "failed", "errored", "interrupted", "inconclusive")
RETRIED: Final = ("errored", "interrupted")
RUN_ENDED: Final = "the run was ended"  # start of the messages of stages if a user ended the run
RECORD: Final = ".mcp.json"  # suffix of an adopted candidate's record; channels link to these records


@dataclass(frozen=True, slots=True)
class Artifact:
    """A built candidate with the hash of each file."""

    id: str
    version: str
    folder: Path
    files: Mapping[str, str]

    @property
    def wheel(self) -> Path:
        """The wheel among the files."""
        return next(self.folder / name for name in sorted(self.files) if name.endswith(".whl"))

    @property
    def offered(self) -> Path:
        """The file that channels link to."""
        name = offered_file_name(self.files)
        assert name is not None  # every candidate contains a wheel or a record
        return self.folder / name


@dataclass(frozen=True, slots=True)
class BuiltCandidate:
    """Built files in a working directory. `backend` is the build backend with its version.

    `version` and `facts` are set only for adopted servers.
    """

    id: str
    folder: Path
    files: Mapping[str, str]
    backend: str = ""
    version: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def candidate_id(files: Mapping[str, str]) -> str:
    """Return the ID of the candidate with these files (name → hash)."""
    return hash_named_texts(dict(files)).removeprefix("sha256:")[:16]


def offered_file_name(files: Iterable[str]) -> str | None:
    """Return the file that channels link to: an adopted server's record, else the wheel; None without either."""
    names = sorted(files)
    return next((name for end in (RECORD, ".whl") for name in names if name.endswith(end)), None)


@dataclass(frozen=True, slots=True)
class StageInputs:
    """All inputs of a stage. Paths are absolute. Paths are absolute.

    `folder` contains the server's sources. `work` is an empty folder for temporary files. `artifacts` is
    `pipeline/artifacts/`. The stage creates `keep` if it stores artifacts. If a rejection restarts this stage,
    `rejection` is the comment of the person.
    """

    server: str
    package: str
    folder: Path
    root: Path
    work: Path
    artifacts: Path
    keep: Path
    candidate: Artifact | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    rejection: str = ""

    @property
    def built_candidate(self) -> Artifact:
        """The candidate."""
        if self.candidate is None:
            raise StageError("no candidate has been built", hint="run the stage 'build' first")
        return self.candidate

    def to_json(self) -> dict[str, Any]:
        """Return the inputs as plain data."""
        return {**_plain(asdict(self)), "candidate": self.candidate and _plain(asdict(self.candidate))}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StageInputs:
        """Return the inputs from the result of `to_json`."""
        paths = {key: Path(data[key]) for key in ("folder", "root", "work", "artifacts", "keep")}
        known = data.get("candidate")
        candidate = Artifact(**{**known, "folder": Path(known["folder"])}) if known else None
        return cls(**{**data, **paths, "candidate": candidate})


@dataclass(frozen=True, slots=True)
class BuiltFiles:
    """Files of a new candidate.

    `files` maps file names to hashes. `facts` are a few facts about the candidate's sources.
    """

    id: str
    version: str
    files: Mapping[str, str]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StageOutputs(JsonRecord):
    """Result of a stage: an outcome of `OUTCOMES`, a message, and a few facts.

    `summary` must not contain clock times, hosts or absolute paths, because the state is shared.
    """

    outcome: str
    message: str
    summary: Mapping[str, Any] = field(default_factory=dict)
    built: BuiltFiles | None = None
    channel: str | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StageOutputs:
        """Return the outputs from the result of `to_json`."""
        return cls(**{**data, "built": BuiltFiles(**data["built"]) if data.get("built") else None})


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage.

    `needs` are stages that must have passed. `reads` and `writes` are names in `fingerprint.INPUTS`. If a stage also
    writes an input, the value after the run is recorded, else the value before the run. Increase `version` if a change
    of the stage gives another result for equal inputs. `run` is a function, as `module:function`; only the process of a
    job imports it. `timeout` (seconds) and `memory` (bytes) limit the stage and all its processes. If `check` is True,
    a promotion depends on the outcome. A `sandboxed` stage runs server code, with the isolation of the workspace. If
    `caller_environ` is True, the stage gets all environment variables of the pipeline's process. `settings` are passed
    to `run`, and count as an input of the stage. `channel` is the policy of the channel that the stage fills. `adopted`
    replaces `run` for an adopted server.

    A stage with an `approval` never runs; people decide whether it passes. A stage that `awaits` its channel passes
    when the channel offers the newest candidate. The stages in `before` get this stage as an additional need. `watches`
    is the last channel that must offer the candidate before the stage runs; "" without such a channel. If `soak` is
    set, the stage runs repeatedly until the channel has offered the candidate for `soak` seconds. If `rollback` is
    True, a failure of the stage moves the channel back.
    """

    name: str
    needs: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    version: int
    run: str = ""
    timeout: float = 600.0
    memory: int = MEMORY
    check: bool = False
    sandboxed: bool = False
    caller_environ: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    channel: ChannelPolicy | None = None
    approval: ApprovalPolicy | None = None
    awaits: bool = False
    before: tuple[str, ...] = ()
    watches: str = ""
    soak: float = 0.0
    rollback: bool = False
    adopted: str = ""

    @property
    def stamp(self) -> str:
        """The stage's version and settings as one input."""
        if not self.settings:
            return str(self.version)
        text = json.dumps(dict(self.settings), sort_keys=True)
        return f"{self.version}+{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    return {key: str(value) if isinstance(value, Path) else value for key, value in data.items()}


def apply_stage_limits(stages: Sequence[Stage], limits: Mapping[str, LimitSettings]) -> tuple[Stage, ...]:
    """Return the stages with the limits of `[pipeline.limits.<stage>]`."""
    names = [stage.name for stage in stages]
    if unknown := [name for name in limits if name not in names]:
        raise setting_error(f"pipeline.limits: unknown stage {unknown[0]!r}", did_you_mean(unknown[0], names, "stages"))
    given = {name: dict(one) for name, one in limits.items()}
    return tuple(
        replace(stage, **{name: value for name, value in given.get(stage.name, {}).items() if value is not None})
        for stage in stages
    )


def isolation_settings(settings: PipelineSettings) -> dict[str, Any]:
    """Return the settings `isolation` and `container` of `[pipeline]` that differ from the defaults."""
    return settings.model_dump(include={"isolation", "container"}, exclude_defaults=True)


def apply_isolation(stages: Sequence[Stage], settings: PipelineSettings) -> tuple[Stage, ...]:
    """Return the stages. Stages that run server code get the workspace's isolation settings."""
    said = isolation_settings(settings)
    if not said:
        return tuple(stages)
    return tuple(replace(stage, settings={**stage.settings, **said}) if stage.sandboxed else stage for stage in stages)


def local_isolation_level(workspace: Workspace, stages: Sequence[Stage]) -> str:
    """Return the isolation level for server code on this machine; "" if no stage runs server code.

    Raises:
        StageError: the workspace requires isolation, and no level is available.
    """
    if not any(stage.sandboxed for stage in stages):
        return ""
    wanted = workspace.settings.pipeline.isolation
    try:
        return find_isolation_level(wanted).name
    except StageError:
        if wanted == REQUIRED:
            raise
        return wanted  # raise no error here, because the server's stages report the missing parts
