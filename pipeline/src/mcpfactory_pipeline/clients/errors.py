"""What goes wrong with the configuration of a client: the file is then as it was."""

from __future__ import annotations

from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_runtime.errors import Exit

__all__ = ["ClientError", "UnreadableError"]


class ClientError(PipelineError):
    """A client's configuration cannot be changed as asked; nothing was changed."""

    exit_code = Exit.BAD_INPUT


class UnreadableError(ValueError):
    """A text is not what its format demands; the message says what and at which line."""
