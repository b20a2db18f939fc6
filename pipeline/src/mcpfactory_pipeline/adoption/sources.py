"""Sources of adopted servers: the request, and the files to build a candidate from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.workspace.adopted import OFFERS, Adopted

# Lock files next to `mcpfactory.toml`, by the tool that reads them.
LOCKS: Final = {"python": "requirements.lock", "node": "package-lock.json", "url": OFFERS}


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources of a server.

    `folder` is `servers/<name>`, `work` an empty folder, `settings` configure the isolation of code.
    """

    server: str
    adopted: Adopted
    folder: Path
    root: Path
    work: Path
    settings: Mapping[str, object] = field(default_factory=dict)
    log: bool = True

    def own(self) -> Path:
        """Return the folder of the server's own files.

        Raises:
            ConfigError: it is not there.
        """
        found = self.adopted.folder(self.root)
        if found is None or not found.is_dir():
            raise ConfigError(
                f"{self.adopted.path or 'its folder'} is not there, from which {self.server} is built",
                hint=f"correct path in servers/{self.server}/mcpfactory.toml",
            )
        return found

    def lock(self, kind: str) -> bytes:
        """Return the content of the lock file next to `mcpfactory.toml`.

        Raises:
            ConfigError: it is missing.
        """
        try:
            return (self.folder / LOCKS[kind]).read_bytes()
        except OSError as error:
            raise ConfigError(
                f"servers/{self.server}/{LOCKS[kind]} cannot be read: {error.strerror}",
                hint="mcpfactory adopt writes it: adopt the server again",
            ) from error


@dataclass(frozen=True, slots=True)
class Collected:
    """Files to run, by name, with their package name and version; `facts` are small values for the state."""

    name: str
    version: str
    files: Mapping[str, bytes]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wish:
    """Adoption request of a person. Paths are relative to the folder `here`; omitted fields are recognized."""

    what: str = ""
    command: str = ""
    name: str = ""
    start: str = ""
    test: str = ""
    environment: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    copy: bool = False
    here: Path = Path()
