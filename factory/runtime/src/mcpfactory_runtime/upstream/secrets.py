"""Secrets and settings of calls to an API, from environment variables and files.

Messages never contain secret values. `MCPF_<SERVER>_BASE_URL` applies to one server. `MCPFACTORY_BASE_URL` applies to
all servers that have this variable in their environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from mcpfactory_runtime.server.errors import ToolError

_LONGEST: Final = 64 * 1024  # maximum bytes of a file with a credential


def read_secret_text(variable: str, environ: Mapping[str, str]) -> str | None:
    """Return the unchanged value of a variable, or of the file at `<variable>_FILE`, or None if both are unset.

    The file is read on each call, so that a rotated secret applies at once. An unreadable file raises ToolError.
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
            f"The file in {variable}_FILE cannot be read: {why}.\nhint: ask the person who runs this server to "
            f"check {variable}_FILE, or to set {variable}."
        ) from None


def is_variable_set(variable: str, environ: Mapping[str, str]) -> bool:
    """Return True if the variable or its file has a value that is not blank."""
    return bool((read_secret_text(variable, environ) or "").strip())


def secret(variable: str, environ: Mapping[str, str]) -> str:
    """Return the value without surrounding whitespace, or "", or raise ToolError for a control character."""
    value = (read_secret_text(variable, environ) or "").strip()
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise ToolError(
            f"The credential in {variable} contains a control character (a line end?) and cannot be "
            f"sent.\nhint: set {variable} to the bare value."
        )
    return value


SHARED: Final = "MCPFACTORY"

SETTINGS: Final = ("BASE_URL", "ALLOW_PRIVATE", "TIMEOUT", "CA_FILE")
"""Settings that each server can override, as suffixes of variables."""


def server_url_setting(server: str) -> str:
    """Return the name of the setting for the address of a server, such as `UPLOADS_BASE_URL`."""
    return f"{server.upper().replace('-', '_')}_BASE_URL"


def server_override_variables(prefix: str, servers: Iterable[str], url: str) -> Mapping[str, str]:
    """Return variables that redirect the servers of an API, except the root, to paths below `url`."""
    return {f"{prefix}_{server_url_setting(name)}": f"{url}/{name}" for name in servers}


class Settings:
    """Settings of one server, read on each access. An empty `prefix` means that only the shared variables apply."""

    def __init__(self, environ: Mapping[str, str], prefix: str = "") -> None:
        self._environ = environ
        self._prefixes = (prefix, SHARED) if prefix else (SHARED,)

    def value(self, name: str) -> str:
        """Return the value of one of `SETTINGS`, or "" if unset."""
        return self._environ.get(self.set_by(name), "")

    def set_by(self, name: str) -> str:
        """Return the variable that sets a value, or the server's own variable if no variable is set."""
        names = [f"{prefix}_{name}" for prefix in self._prefixes]
        return next((one for one in names if self._environ.get(one)), names[0])

    def own(self, name: str) -> str:
        """Return the value of a setting without a shared variable, such as a server's address."""
        return self._environ.get(self.variable(name), "")

    def variable(self, name: str) -> str:
        """Return the server's own variable for a setting."""
        return f"{self._prefixes[0]}_{name}"
