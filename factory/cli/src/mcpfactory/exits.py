"""Exit codes, and which error ends in which. Documented in docs/reference/exit-codes.md."""

from __future__ import annotations

from mcpfactory_runtime.errors import Exit, McpfactoryError

__all__ = ["Exit", "exit_of"]


def exit_of(error: BaseException) -> Exit | None:
    """The code that an error meant for a person ends in; None when the error is a bug."""
    return error.exit_code if isinstance(error, McpfactoryError) else None
