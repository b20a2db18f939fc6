"""Binary answers that are too large for a message are kept as files, if the person who runs the server named a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from mcpfactory_runtime.server.errors import ToolError

__all__ = ["keeper"]


def keeper(environ: Mapping[str, str]) -> Callable[[bytes, str], str] | None:
    """Return what keeps content in the folder that MCPFACTORY_FILES names; None without one.

    A file is named by the digest of its content and its media type, never by the API, and only its owner may read it.
    """
    folder = environ.get("MCPFACTORY_FILES", "")
    return (lambda content, kind: _keep(Path(folder), content, kind)) if folder else None


def _keep(folder: Path, content: bytes, kind: str) -> str:
    from mimetypes import guess_extension  # noqa: PLC0415 - few answers are so large

    path = folder.absolute() / f"{sha256(content).hexdigest()[:24]}{guess_extension(kind) or '.bin'}"
    try:
        if not path.is_file():
            made = path.with_name(f".{path.name}.{os.getpid()}")
            with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
                file.write(content)
            made.replace(path)
    except OSError as error:
        raise ToolError(
            f"The answer could not be kept as a file: {error.strerror}.\n"
            "hint: the person who runs this server checks the folder in MCPFACTORY_FILES."
        ) from None
    return path.as_uri()
