"""Secrets by reference: the environment variable NAME, or a file whose path is in NAME_FILE (Docker and Kubernetes secrets).

Their values appear in no message.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mcpfactory_runtime.server.errors import ToolError

__all__ = ["holds", "secret", "secret_text"]

_LONGEST: Final = 64 * 1024  # bytes of a file; more is no credential


def secret_text(variable: str, environ: Mapping[str, str]) -> str | None:
    """Return the value of a variable or of the file that `<variable>_FILE` names, as it is; None when neither is set.

    The variable counts before the file. The file is read anew each time, so that a rotated secret is used at once.

    Raises:
        ToolError: the file cannot be read.
    """
    value = environ.get(variable)
    if value is not None:
        return value
    path = environ.get(f"{variable}_FILE")
    if not path:
        return None
    try:
        with Path(path).open("rb") as file:
            data = file.read(_LONGEST + 1)
        if len(data) > _LONGEST:
            raise OSError(0, f"more than {_LONGEST} bytes")
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ToolError(
            f"The file that {variable}_FILE names cannot be read: {why}.\n"
            f"hint: the person who runs this server checks {variable}_FILE, or sets {variable}."
        ) from None


def holds(variable: str, environ: Mapping[str, str]) -> bool:
    """Return whether there is a value that is not blank.

    Raises:
        ToolError: a file or value cannot be used.
    """
    return bool((secret_text(variable, environ) or "").strip())


def secret(variable: str, environ: Mapping[str, str]) -> str:
    """Return the value without the line end that files and shells like to leave on it; "" when there is none.

    Raises:
        ToolError: it cannot be read, or not be sent.
    """
    value = (secret_text(variable, environ) or "").strip()
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise ToolError(
            f"The credential in {variable} holds a control character (a line end?) and cannot be sent.\n"
            f"hint: set {variable} to the bare value."
        )
    return value
