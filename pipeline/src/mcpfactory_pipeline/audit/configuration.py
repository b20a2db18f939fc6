"""The files in which clients keep servers: which there are, and what each says, within bounds. Nothing in them is believed."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.clients import edits
from mcpfactory_pipeline.clients.errors import ClientError, UnreadableError
from mcpfactory_pipeline.clients.files import Home, path_of
from mcpfactory_pipeline.clients.table import CLIENTS, ClientProfile, ConfigFile, Form, Format

__all__ = ["LARGEST", "ClientFile", "find_files", "named_file", "shown_path"]

LARGEST: Final = 20 * 1024 * 1024  # bytes; clients keep conversations in some of these files
_FORMATS: Final[dict[str, Format]] = {
    ".json": "json",
    ".jsonc": "json",
    ".json5": "json",
    ".toml": "toml",
    ".yaml": "yaml",
    ".yml": "yaml",
}
_OTHERS: Final = 0o022  # modes by which others than the owner write
_READERS: Final = 0o044
_STICKY: Final = stat.S_ISVTX


@dataclass(frozen=True, slots=True)
class ClientFile:
    """One file, and what was read.

    `data` is None where there is no file or it could not be read, and then `problem` says why. `shown` is its path for people. `settings`:
    it is one of a client's other files. `readable` and `writable`: others than its owner may read it, or change what it says.
    """

    client: str
    scope: str
    path: Path
    shown: str
    format: Format = "json"
    forms: tuple[Form, ...] = ()
    settings: bool = False
    text: str = field(default="", repr=False)
    data: Any = field(default=None, repr=False)
    problem: str = ""
    link: str = ""
    readable: bool = False
    writable: str = ""

    @property
    def profile(self) -> ClientProfile | None:
        """The client's row; None for a file that was named without its client."""
        return next((row for row in CLIENTS if row.id == self.client), None)


def find_files(clients: Sequence[ClientProfile], home: Home, project: Path | None) -> list[ClientFile]:
    """Return the files of these clients that are there, for the user and, with a folder, for the project in it."""
    found: list[ClientFile] = []
    for row in clients:
        for scope, folder in (("user", None), ("project", project)):
            if scope == "project" and (folder is None or row.project is None):
                continue
            file, config = path_of(row, home, folder)
            found += _read(row, scope, file, config, home)
        for file, scope in _settings_files(row, home, project):
            found += _read(row, scope, file, ConfigFile(()), home, settings=True)
    return found


def named_file(file: Path, client: ClientProfile | None, home: Home) -> ClientFile:
    """Return a file that a person named, in the forms of its client, or in any form that it has.

    Raises:
        NotFoundError: there is no such file.
    """
    if client is not None:
        known = client.user if _format(file) == _plain(client.user.format) else client.project or client.user
        config, forms = ConfigFile((), known.format), client.forms
    else:
        config, forms = ConfigFile((), _format(file)), _every_form()
    found = list(_read(client, "named", file, config, home, forms=forms))
    if not found:
        raise NotFoundError(f"there is no file {file}", hint="--config FILE names a configuration of an MCP client")
    return found[0]


def shown_path(path: Path, home: Home, project: Path | None = None) -> str:
    """Return a path as a report shows it: in the project relative, below the home folder with `~`."""
    if project is not None and path.is_relative_to(project):
        return path.relative_to(project).as_posix()
    return f"~/{path.relative_to(home.home).as_posix()}" if path.is_relative_to(home.home) else str(path)


def _settings_files(row: ClientProfile, home: Home, project: Path | None) -> Iterator[tuple[Path, str]]:
    for path in row.settings:
        root, _, rest = path.partition("/")
        if root in {"~", "{config}"}:
            yield (home.home if root == "~" else home.config) / rest, "user"
        elif project is not None:
            yield project / path, "project"


def _plain(format_: Format) -> Format:
    return "yaml" if format_ == "yaml list" else format_


def _format(file: Path) -> Format:
    return _FORMATS.get(file.suffix.lower(), "json")


def _every_form() -> tuple[Form, ...]:
    """Return one form for each container that any client has."""
    return tuple({form.container: form for row in CLIENTS for form in row.forms}.values())


def _read(
    row: ClientProfile | None,
    scope: str,
    file: Path,
    config: ConfigFile,
    home: Home,
    *,
    settings: bool = False,
    forms: tuple[Form, ...] = (),
) -> Iterator[ClientFile]:
    """Yield the file, and nothing where there is none."""
    client = row.id if row else ""
    shown = shown_path(file, home)
    about: dict[str, Any] = {
        "client": client,
        "scope": scope,
        "path": file,
        "shown": shown,
        "settings": settings,
        "format": config.format,
        "forms": forms or (row.forms if row else ()),
    }
    try:
        if not file.is_symlink() and not file.exists():
            return
        about["link"] = str(file.readlink()) if file.is_symlink() else ""
        facts = file.stat()
        about["readable"] = bool(facts.st_mode & _READERS)
        about["writable"] = _who_writes(file)
        if not stat.S_ISREG(facts.st_mode):
            yield ClientFile(**about, problem="it is no file")
        elif facts.st_size > LARGEST:
            yield ClientFile(**about, problem=f"it has {facts.st_size >> 20} MiB, and {LARGEST >> 20} are read")
        else:
            text = file.read_bytes().decode("utf-8")
            yield ClientFile(**about, text=text, data=edits.read(text, config))
    except UnicodeDecodeError as error:
        yield ClientFile(**about, problem=f"it is not UTF-8: {error.reason} at byte {error.start}")
    except OSError as error:
        broken = about.get("link") and not file.exists()
        problem = f"it is a link to {about['link']}, which is not there" if broken else (error.strerror or str(error))
        yield ClientFile(**about, problem=problem)
    except (UnreadableError, ClientError) as error:
        yield ClientFile(**about, problem=_without_quotes(str(error), config.format))
    except RecursionError:
        yield ClientFile(**about, problem="it is nested too deeply")


def _without_quotes(message: str, format_: Format) -> str:
    """Return what a parser says without pieces of the text, which may be secrets: YAML's quotes lines, so only the place is kept."""
    if format_ not in {"yaml", "yaml list"}:
        return message
    place = message.rpartition(" line ")[2].split(",")[0] if " line " in message else ""
    return f"it is not YAML: line {place}" if place.isdigit() else "it is not YAML"


def _who_writes(file: Path) -> str:
    """Return what lets others than its owner change a file: "the file" or "its folder"; "" where nothing does."""
    if file.stat().st_mode & _OTHERS:
        return "the file"
    folder = file.resolve().parent.stat().st_mode
    return "its folder" if folder & _OTHERS and not folder & _STICKY else ""
