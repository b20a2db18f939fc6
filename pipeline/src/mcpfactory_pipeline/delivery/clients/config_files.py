"""Configuration files of clients on this machine."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.delivery.clients.client_profiles import ClientConfigFile, ClientProfile, System
from mcpfactory_runtime.errors import Exit


class ClientConfigError(PipelineError):
    """Error if a client configuration cannot be changed."""

    exit_code = Exit.BAD_INPUT


class ConfigSyntaxError(ValueError):
    """Error for a configuration with invalid syntax."""


_BACKUPS: Final = 10  # maximum number of backups of each file
_ABSENT: Final = "absent"  # name of the backup for a file that did not exist before


@dataclass(frozen=True, slots=True)
class UserPaths:
    """Folders and environment of a user."""

    system: System
    home: Path
    config: Path
    state: Path
    environ: Mapping[str, str]

    @property
    def secrets(self) -> Path:
        """Return the folder for the secret files that configurations refer to."""
        return self.config / "mcpfactory" / "secrets"


def read_user_paths(environ: Mapping[str, str]) -> UserPaths:
    """Return the user's paths on this machine."""
    home = Path(environ.get("HOME") or Path.home())
    if sys.platform == "darwin":
        support = home / "Library" / "Application Support"
        return UserPaths("mac", home, support, support / "mcpfactory" / "clients", environ)
    if sys.platform == "win32":
        roaming = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
        local = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
        return UserPaths("windows", home, roaming, local / "mcpfactory" / "clients", environ)
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    state = Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state")
    return UserPaths("linux", home, config, state / "mcpfactory" / "clients", environ)


def client_config_path(
    client: ClientProfile, home: UserPaths, project: Path | None = None
) -> tuple[Path, ClientConfigFile]:
    """Return a client's configuration file, for the user or for a project."""
    if project is not None:
        if client.project is None:
            raise ClientConfigError(
                f"{client.title} does not support project configuration", hint="leave out --project"
            )
        return _first([project / path for path in client.project.paths]), client.project
    place = client.user
    paths = place.systems.get(home.system, place.paths)
    if client.moved and (folder := home.environ.get(client.moved)):
        return Path(folder) / Path(paths[0]).name, place
    return _first([_expanded(path, home) for path in paths]), place


def _expanded(path: str, home: UserPaths) -> Path:
    root, _, rest = path.partition("/")
    return (home.config if root == "{config}" else home.home) / rest


def _first(paths: list[Path]) -> Path:
    return next((path for path in paths if path.exists()), paths[0])


def read_text(file: Path) -> str | None:
    """Return the text with its original line endings, or None if the file does not exist."""
    try:
        return file.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        raise ClientConfigError(
            f"{file} is not UTF-8: {error.reason}", hint="correct the file (mcpfactory did not change the file)"
        ) from error
    except OSError as error:
        raise ClientConfigError(f"{file} cannot be read: {error.strerror}", hint="make the file readable") from error


def replace(
    file: Path, before: str | None, after: str | None, home: UserPaths, *, private: bool = False
) -> Path | None:
    """Replace a file's text atomically. Return the path of the backup, or None if the file is new.

    If `after` is None, the file is removed. A `private` file is readable only by its owner.

    Raises:
        ClientConfigError: the file no longer has the text `before`, or cannot be written. The file is unchanged.
    """
    kept = back_up(file, before, home)
    try:
        with file_lock(home.state / ".lock"):
            _replace_unchanged(file.resolve(), before, after, private=private)
    except OSError as error:
        raise ClientConfigError(f"{file} cannot be written: {error.strerror}", hint="make the file writable") from error
    return kept


def readable_by_others(file: Path) -> bool:
    """Return True if users other than the owner have permissions for the file."""
    return bool(stat.S_IMODE(file.stat().st_mode) & 0o077)


def _replace_unchanged(file: Path, before: str | None, after: str | None, *, private: bool) -> None:
    if read_text(file) != before:
        raise ClientConfigError(f"{file} was changed by another program", hint="run the command again")
    if after is None:
        file.unlink()
        return
    mode = stat.S_IMODE(file.stat().st_mode) if before is not None else None
    replace_file(file, after.encode("utf-8"), mode=mode if not private else 0o600 if mode is None else mode & 0o600)


def back_up(file: Path, text: str | None, home: UserPaths) -> Path | None:
    """Back up the text of a file, and keep the ten newest backups. Only the owner can read the backups."""
    folder = _folder(file, home)
    name = _ABSENT if text is None else f"{hashlib.sha256(text.encode()).hexdigest()[:16]}-{file.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        place = folder / name
        place.unlink(missing_ok=True)  # the backup must be the file with the newest modification time
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write((text or "").encode())
        for old in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)[:-_BACKUPS]:
            with suppress(FileNotFoundError):
                old.unlink()
    except OSError as error:
        raise ClientConfigError(f"{file} cannot be backed up: {error}", hint=f"make {folder} writable") from error
    return place if text is not None else None


def backups(file: Path, home: UserPaths) -> list[str | None]:
    """Return the backups of a file, newest first. In the result, None means that the file did not exist."""
    found: list[tuple[int, str | None]] = []
    with suppress(OSError, UnicodeDecodeError):
        for path in _folder(file, home).iterdir():
            text = None if path.name == _ABSENT else path.read_bytes().decode()
            found.append((path.stat().st_mtime_ns, text))
    return [text for _, text in sorted(found, key=lambda pair: pair[0], reverse=True)]


def _folder(file: Path, home: UserPaths) -> Path:
    return home.state / hashlib.sha256(str(file.absolute()).encode()).hexdigest()[:16]
