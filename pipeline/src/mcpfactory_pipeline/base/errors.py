"""What goes wrong in a pipeline and is a person's to mend: what is wrong, where, and `hint`, what to do about it."""

from __future__ import annotations

__all__ = [
    "ConfigError",
    "NotFoundError",
    "PipelineError",
    "PromotionError",
    "PublishError",
    "ReleaseError",
    "ServerError",
    "StageError",
    "StateError",
    "TargetError",
    "WorkspaceError",
]


class PipelineError(Exception):
    """The root of the errors that are shown to people; `hint` is the command or the field to change."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class WorkspaceError(PipelineError):
    """There is no usable workspace here, or none can be made here."""


class NotFoundError(WorkspaceError):
    """A server, stage or candidate of that name does not exist."""


class ConfigError(PipelineError):
    """An `mcpfactory.toml` cannot be used as it stands."""


class ServerError(PipelineError):
    """A server's own code, or what it depends on, keeps it from starting: its owner's to mend."""


class StateError(PipelineError):
    """A state or history file cannot be read, cannot be written, or says what cannot be."""


class StageError(PipelineError):
    """The machinery of a stage broke: the stage is `errored`, and may be run again."""


class PromotionError(PipelineError):
    """A candidate may not be promoted; the message says what is missing."""


class PublishError(PipelineError):
    """A release may not be published, or a target said no to it; the message says why."""


class TargetError(PipelineError):
    """A target could not be reached, or broke while it was written to: publishing again continues."""


class ReleaseError(PipelineError):
    """Nothing was released, or not all; `code` says why in a word, as docs/how-to/release.md lists them."""

    def __init__(self, code: str, message: str, *, hint: str = "") -> None:
        super().__init__(f"{code}: {message}", hint=hint)
        self.code = code
