"""Proposed files for an adopted server. Settings are found in the server's code without running the code."""

from __future__ import annotations

import difflib
import json
import re
import shutil
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.servers.config import KINDS, ServerConfig
from mcpfactory_pipeline.base.errors import ConfigError, RefusedError
from mcpfactory_pipeline.base.files import has_file_content, replace_file
from mcpfactory_pipeline.workspace.adopted import FILE as DRIFT
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace, is_server_name, read_settings_file, read_toml

_PERSONS: Final = ("start", "files", "build", "test", "report")  # fields of the configuration that users may edit
_ORDER: Final = ("kind", "package", "version", "hash", "url", "path", *_PERSONS, "constraints")


@dataclass(frozen=True, slots=True)
class RecognizedServer:
    """A recognized server.

    Attributes:
        table: fields of `[adopted]`.
        files: files next to `mcpfactory.toml`.
        found: findings as sentences.
        notes: notes for the reviewer.
        copied: path in the server's folder → file to copy.
        decided: fields that the user gave. Fields in `decided` replace fields that were edited by hand.
    """

    kind: str
    name: str
    table: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)
    environment: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    copied: Mapping[str, Path] = field(default_factory=dict)
    decided: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ProposedFile:
    """A file to write. `path` is relative to the workspace. `before` is None for a new file."""

    path: str
    before: str | None
    after: str

    @property
    def change(self) -> str:
        """Return `new`, `changed` or `same`."""
        return "new" if self.before is None else "same" if self.before == self.after else "changed"

    def diff(self) -> str:
        """Return the changes as a unified diff."""
        old = (self.before or "").splitlines(keepends=True)
        name = self.path if self.before is not None else "/dev/null"
        return "".join(difflib.unified_diff(old, self.after.splitlines(keepends=True), name, self.path, n=1))


@dataclass(frozen=True, slots=True)
class AdoptionProposal:
    """An adoption whose files have not been written."""

    server: str
    recognised: RecognizedServer
    files: tuple[ProposedFile, ...]
    copies: Mapping[str, Path] = field(default_factory=dict)

    @property
    def changes(self) -> bool:
        """Return True if a file would change."""
        return any(one.change != "same" for one in self.files) or bool(self.copies)

    def to_json(self) -> dict[str, Any]:
        """Return JSON-compatible data."""
        found = self.recognised
        return {
            "server": self.server,
            "kind": found.kind,
            "found": list(found.found),
            "notes": list(found.notes),
            "environment": list(found.environment),
            "files": [{"path": one.path, "change": one.change, "text": one.after} for one in self.files],
            "copies": sorted(self.copies),
        }


def derive_server_name(text: str) -> str:
    """Derive a server name from the name of a package, host or folder."""
    name = re.sub(r"[^a-z0-9]+", "-", text.rpartition("/")[2].lower()).strip("-")
    return (name if name[:1].isalpha() else f"server-{name}").strip("-")[:60] or "server"


def propose_adoption(workspace: Workspace, found: RecognizedServer, name: str = "") -> AdoptionProposal:
    """Return the files for a recognized server. If the server is already adopted, all other settings are kept.

    Raises:
        RefusedError: the name belongs to a server that was not adopted, or to a server of another kind.
    """
    server = name or found.name
    if not is_server_name(server) or not re.fullmatch(r"[a-z][a-z0-9-]*", server):
        raise ConfigError(
            f"{server!r} is not a valid server name", hint="use --name with a name of letters a-z, digits and hyphens"
        )
    folder = workspace.root / "servers" / server
    file = folder / CONFIG
    if folder.exists() and not file.exists() and any(folder.iterdir()):
        raise RefusedError(
            f"servers/{server} already exists, but is not a server of this workspace",
            hint="use --name NAME to adopt the server under another name",
        )
    text = _updated(file, found, server) if file.exists() else _config_text(server, found)
    wanted = {CONFIG: text, **found.files}
    files = tuple(
        ProposedFile(f"servers/{server}/{path}", _read(folder / path), after)
        for path, after in sorted(wanted.items(), key=lambda row: row[0] != CONFIG)
    )
    copies = {
        f"servers/{server}/{path}": source
        for path, source in found.copied.items()
        if not has_file_content(folder / path, source.read_bytes())
    }
    return AdoptionProposal(server, found, files, copies)


def write_proposal(workspace: Workspace, proposal: AdoptionProposal) -> list[str]:
    """Write the proposed files, and return the paths of changed files."""
    written = []
    try:
        for path, source in proposal.copies.items():
            place = workspace.root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)
            written.append(path)
        if proposal.changes:  # delete the recorded drift of the previous adoption
            (workspace.root / "servers" / proposal.server / DRIFT).unlink(missing_ok=True)
        # Write the configuration last, because a folder with a configuration counts as a server.
        for one in sorted(proposal.files, key=lambda row: row.path.endswith(CONFIG)):
            if one.change != "same":
                place = workspace.root / one.path
                mode = place.stat().st_mode & 0o777 if place.is_file() else None
                replace_file(place, one.after.encode(), mode=mode)
                written.append(one.path)
    except OSError as error:
        raise ConfigError(
            f"{error.filename} cannot be written: {error.strerror}", hint="make the folder writable"
        ) from error
    return sorted(written)


def _config_text(server: str, found: RecognizedServer) -> str:
    variables = "# variables that the code reads; remove those that it does not need\n"
    environment = f"{variables}environment = {_toml(found.environment)}\n" if found.environment else ""
    about = (
        f"# {KINDS[found.kind].says}, adopted unchanged: `mcpfactory adopt` changes this file, and none of the "
        "server's files"
    )
    rows = "".join(f"{key} = {_toml(value)}\n" for key, value in _rows(found).items())
    return f"[server]\nname = {json.dumps(server)}\n{environment}\n{about}\n[adopted]\n{rows}"


def _rows(found: RecognizedServer) -> dict[str, Any]:
    table = {"kind": found.kind, **found.table}
    return {key: value if isinstance(value := table[key], str) else list(value) for key in _ORDER if table.get(key)}


def _updated(file: Path, found: RecognizedServer, server: str) -> str:
    """Return the text of a server's file with changed fields in `[adopted]`."""
    config = read_toml(file)
    before = read_settings_file(ServerConfig, file).adopted
    if before is None:
        raise RefusedError(
            f"{server} already exists, but was not adopted",
            hint="use --name NAME to adopt this server under another name",
        )
    if before.kind != found.kind:
        raise RefusedError(
            f"{server} was adopted as {before.kind}, but the new source is of kind {found.kind}",
            hint=f"use --name NAME, or run mcpfactory remove {server} first",
        )
    head, mark, rest = file.read_text(encoding="utf-8").partition("\n[adopted]\n")
    body, end, after = re.match(r"(.*?)(\n\[|\Z)(.*)", rest, re.S).groups() if mark else ("", "", "")  # type: ignore[union-attr] # it matches any text
    table = config["adopted"]
    kept = {key for key in _PERSONS if key in table} - found.decided
    rows = {key: value for key, value in _rows(found).items() if key not in kept}
    for key, value in rows.items():
        if table.get(key) == value:
            continue
        line = f"{key} = {_toml(value)}"
        body, count = re.subn(rf"(?m)^{key}\s*=.*$", lambda _found, line=line: line, body)
        if not count:
            body = f"{body.rstrip(chr(10))}\n{line}\n"
    text = f"{head}{mark}{body}{end}{after}"
    try:
        right = tomllib.loads(text).get("adopted") == {**table, **rows}
    except tomllib.TOMLDecodeError:
        right = False
    if not right:
        lines = ", ".join(f"{key} = {_toml(value)}" for key, value in rows.items())
        raise ConfigError(f"{file} cannot be changed automatically", hint=f"add these lines below [adopted]: {lines}")
    return text


def _toml(value: str | Sequence[str]) -> str:
    return json.dumps(value, ensure_ascii=False)  # JSON strings and lists of strings are also valid TOML


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return None


_READS: Final = re.compile(
    r"""(?:environ(?:\.get\(|\[)|getenv\()\s*["']([A-Z][A-Z0-9_]{2,60})["']|process\.env(?:\.([A-Z][A-Z0-9_]{2,60})\b|\[["']([A-Z][A-Z0-9_]{2,60})["']\])"""
)
# Common environment variables that are not settings of a server.
_COMMON: Final = re.compile(
    r"HOME|PATH|USER|SHELL|TERM|TMPDIR|TEMP|TMP|LANG|LC_\w+|XDG_\w+|PYTHON\w*|NODE_\w+|NPM_\w+|CI|DEBUG|NO_COLOR|FORCE_COLOR|TZ|APPDATA|LOCALAPPDATA|USERPROFILE|SYSTEMROOT|COLUMNS|PORT|HOSTNAME|EDITOR|VIRTUAL_ENV"
)
_LARGEST: Final = 1 << 21  # maximum size in bytes of a file that is searched
_FRAMEWORKS: Final = {
    "fastmcp": "FastMCP",
    "mcp": "the official SDK",
    "mcpfactory-runtime": "the runtime",
    "@modelcontextprotocol/sdk": "the official SDK",
    "@modelcontextprotocol/server": "the official SDK",
}


def find_variables_in_code(files: Iterable[tuple[str, bytes]]) -> tuple[str, ...]:
    """Return the sorted environment variables that Python and JavaScript files read."""
    found: set[str] = set()
    for name, data in files:
        if name.endswith((".py", ".js", ".mjs", ".cjs", ".ts")) and len(data) <= _LARGEST:
            found |= {one for groups in _READS.findall(data.decode(errors="replace")) for one in groups if one}
    return tuple(sorted(name for name in found if not _COMMON.fullmatch(name)))


def detect_framework(names: Iterable[str]) -> str:
    """Return the framework of a server from its dependencies, or ""."""
    known = set(names)
    return next((words for name, words in _FRAMEWORKS.items() if name in known), "")


def framework_finding(names: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence about the framework of a server."""
    found = detect_framework(names)
    return (f"written with {found}",) if found else ()
