from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mcpfactory_runtime.errors import Exit, McpfactoryError


class PipelineError(McpfactoryError):
    """Base class of pipeline errors. `hint` names the command to run or the field to change."""


class WorkspaceError(PipelineError):
    """The workspace is missing or unusable, or cannot be created here."""

    exit_code = Exit.NOT_FOUND


class NotFoundError(WorkspaceError):
    """The named server, stage or candidate does not exist."""


class ConfigError(PipelineError):
    """Invalid `mcpfactory.toml`."""

    exit_code = Exit.BAD_INPUT


class ServerError(PipelineError):
    """Error in a server's code or dependencies that prevents the start of the server."""

    exit_code = Exit.SERVER_ERROR


class StateError(PipelineError):
    """A state or history file is unreadable, unwritable or inconsistent."""


class StageError(PipelineError):
    """Failure of a stage that the stage's input did not cause. The stage is `errored` and can be retried."""


class RefusedError(PipelineError):
    """Error for a request that the current state forbids. Nothing was changed."""

    exit_code = Exit.NEGATIVE


class PromotionError(PipelineError):
    """Refused promotion. The message names the missing requirements."""

    exit_code = Exit.NEGATIVE


class PublishError(PipelineError):
    """Publication that mcpfactory or a target refused."""

    exit_code = Exit.NEGATIVE


class TargetUnavailableError(PipelineError):
    """Failure of a target during an upload. Another `publish` continues the upload."""


class ReleaseError(PipelineError):
    """Release that failed completely or partly. `code` is a reason from docs/how-to/release.md."""

    exit_code = Exit.NEGATIVE

    def __init__(self, code: str, message: str, *, hint: str = "") -> None:
        super().__init__(f"{code}: {message}", hint=hint)
        self.code = code


class JsonRecord:
    """Base class of dataclasses whose fields are plain data."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return asdict(self)  # type: ignore[call-overload,no-any-return] # subclasses are dataclasses
