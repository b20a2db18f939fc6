"""Errors that a person has to fix, and records for `--json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mcpfactory_runtime.errors import Exit, McpfactoryError


class PipelineError(McpfactoryError):
    """The root of the errors of the pipeline; `hint` is the command or the field to change."""


class WorkspaceError(PipelineError):
    """Missing or unusable workspace, or one that cannot be created here."""

    exit_code = Exit.NOT_FOUND


class NotFoundError(WorkspaceError):
    """A server, stage or candidate of that name does not exist."""


class ConfigError(PipelineError):
    """Invalid `mcpfactory.toml`."""

    exit_code = Exit.BAD_INPUT


class ServerError(PipelineError):
    """Start failure caused by a server's own code or dependencies: its owner has to correct it."""

    exit_code = Exit.SERVER


class StateError(PipelineError):
    """A state or history file cannot be read, cannot be written, or says what cannot be."""


class StageError(PipelineError):
    """The machinery of a stage broke: the stage is `errored`, and may be run again."""


class RefusedError(PipelineError):
    """Request that the current state forbids; nothing was changed."""

    exit_code = Exit.NO


class PromotionError(PipelineError):
    """Refused promotion; the message names the missing requirements."""

    exit_code = Exit.NO


class PublishError(PipelineError):
    """Publication that was refused here or by a target; the message says why."""

    exit_code = Exit.NO


class TargetError(PipelineError):
    """A target could not be reached, or broke while it was written to: publishing again continues."""


class ReleaseError(PipelineError):
    """Complete or partial failure of a release; `code` is the reason, as docs/how-to/release.md lists them."""

    exit_code = Exit.NO

    def __init__(self, code: str, message: str, *, hint: str = "") -> None:
        super().__init__(f"{code}: {message}", hint=hint)
        self.code = code


class JsonRecord:
    """A base of dataclasses whose fields are plain data."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return asdict(self)  # type: ignore[call-overload,no-any-return] # subclasses are dataclasses
