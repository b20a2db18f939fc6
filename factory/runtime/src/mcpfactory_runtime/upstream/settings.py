"""What the person who runs a server decides about its calls: a variable of the server's own goes before the shared one.

`MCPF_<SERVER>_BASE_URL` stands beside the server's credentials and means this server alone; `MCPFACTORY_BASE_URL` means whichever
server reads it, so it is for one that runs by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["MAX_TEXT", "SETTINGS", "SHARED", "Settings", "server_setting", "stand_in"]

SHARED: Final = "MCPFACTORY"

SETTINGS: Final = ("BASE_URL", "ALLOW_PRIVATE", "TIMEOUT", "CA_FILE")
"""The settings that a server can have of its own, as the ends of their variables' names."""


MAX_TEXT: Final = 100_000
"""Characters of one response that a model is given: some 25,000 tokens, which is where clients cut by themselves."""


def server_setting(server: str) -> str:
    """Return the setting that says where a server of an API beside its root is, by the server's name: `UPLOADS_BASE_URL`."""
    return f"{server.upper().replace('-', '_')}_BASE_URL"


def stand_in(prefix: str, servers: Iterable[str], url: str) -> Mapping[str, str]:
    """Return the variables by which one address stands for every server of an API beside its root: each is a folder of its name.

    Args:
        prefix: of the server's variables.
        servers: the names of those beside the root.
        url: of what stands for them, without a slash at its end.
    """
    return {f"{prefix}_{server_setting(name)}": f"{url}/{name}" for name in servers}


class Settings:
    """The settings of one server, read anew each time.

    Args:
        environ: where the variables are.
        prefix: leads those of the server; "" for a server that has only the shared ones.
    """

    def __init__(self, environ: Mapping[str, str], prefix: str = "") -> None:
        self._environ = environ
        self._prefixes = (prefix, SHARED) if prefix else (SHARED,)

    def value(self, name: str) -> str:
        """Return the value of one of `SETTINGS`; "" when neither variable is set."""
        return self._environ.get(self.set_by(name), "")

    def set_by(self, name: str) -> str:
        """Return the variable that the value is in, or would be in."""
        names = [f"{prefix}_{name}" for prefix in self._prefixes]
        return next((one for one in names if self._environ.get(one)), names[0])

    def own(self, name: str) -> str:
        """Return the value of a setting that no two servers share: that of one of an API's addresses; "" when it is not set."""
        return self._environ.get(self.variable(name), "")

    def variable(self, name: str) -> str:
        """Return the variable to set, for hints: the server's own."""
        return f"{self._prefixes[0]}_{name}"
