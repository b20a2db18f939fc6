"""Sources of adopted servers: the request, and the files to build a candidate from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.workspace.adopted import OFFERS, Adopted

# Files beside `mcpfactory.toml` that say which versions are taken, by what reads them.
LOCKS: Final = {"python": "requirements.lock", "node": "package-lock.json", "url": OFFERS}


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a server is built from. `folder` is `servers/<name>`, `work` an empty folder, `settings` say how code is kept apart."""

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
        """Return the content of the file beside `mcpfactory.toml` that says which versions are taken.

        Raises:
            ConfigError: it is not there.
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
    """The files that run, by name, with the name and the version of what they are; `facts` are small facts for the state."""

    name: str
    version: str
    files: Mapping[str, bytes]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person typed. `here` is the folder that paths count from; what is not given is recognised."""

    what: str = ""
    command: str = ""
    name: str = ""
    start: str = ""
    test: str = ""
    environment: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    copy: bool = False
    here: Path = Path()
