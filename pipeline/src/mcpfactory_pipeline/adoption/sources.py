"""Sources of adopted servers, and checks of their lock files.

A lock file is checked before a package is downloaded. The file must have versions with strong hashes, and no foreign
URLs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from packaging.requirements import InvalidRequirement, Requirement

from mcpfactory_codegen.servers.config import AdoptedSettings
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.workspace.adopted import OFFERS

# Ecosystem → name of the lock file next to `mcpfactory.toml`.
LOCKS: Final = {"python": "requirements.lock", "node": "package-lock.json", "url": OFFERS}


@dataclass(frozen=True, slots=True)
class AdoptionSources:
    """Sources of an adopted server.

    Attributes:
        work: an empty folder.
        settings: settings for the isolation of code.
    """

    server: str
    adopted: AdoptedSettings
    folder: Path
    root: Path
    work: Path
    settings: Mapping[str, object] = field(default_factory=dict)
    log: bool = True

    def own(self) -> Path:
        """Return the folder with the server's source files."""
        found = self.adopted.folder(self.root)
        if found is None or not found.is_dir():
            raise ConfigError(
                f"{self.server} cannot be built: its source folder {self.adopted.path or '.'!r} does not exist",
                hint=f"correct 'path' in servers/{self.server}/mcpfactory.toml",
            )
        return found

    def lock(self, kind: str) -> bytes:
        """Return the content of the lock file next to `mcpfactory.toml`."""
        try:
            return (self.folder / LOCKS[kind]).read_bytes()
        except OSError as error:
            raise ConfigError(
                f"servers/{self.server}/{LOCKS[kind]} cannot be read: {error.strerror}",
                hint="write the file again with 'mcpfactory adopt'",
            ) from error


@dataclass(frozen=True, slots=True)
class CollectedFiles:
    """Files of a candidate by name. `facts` are stored in the state."""

    name: str
    version: str
    files: Mapping[str, bytes]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AdoptionRequest:
    """A user's adoption request. Paths are relative to the folder `here`."""

    what: str = ""
    command: str = ""
    name: str = ""
    start: str = ""
    constraints: tuple[str, ...] = ()
    copy: bool = False
    here: Path = Path()


SHRINKWRAP: Final = "npm-shrinkwrap.json"  # npm prefers this file to `package-lock.json`
_HINT: Final = (
    "do not edit the lock: mcpfactory adopt writes it; for a project, remove the lock, then run "
    "npm install --package-lock-only in the folder of the package"
)
# Accepted versions of `package-lock.json`. Version 1 has no paths, and lacks some integrity hashes.
_VERSIONS: Final = (2, 3)
_SHOWN: Final = 120  # maximum number of characters of a lock entry in a message
_PACKAGE: Final = re.compile(r"(?:(?:^|/)node_modules/(?:@[^/@\s]+/)?[^/@.\s][^/@\s]*)+")
_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*")
# A hash in npm's format. Of several hashes, npm compares only the strongest.
_INTEGRITY: Final = re.compile(
    r"(?:sha256-[A-Za-z0-9+/]{43}=|sha384-[A-Za-z0-9+/]{64}|sha512-[A-Za-z0-9+/]{86}==|sha1-[A-Za-z0-9+/]{27}=)"
)
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")
_WHEEL_SCHEMES: Final = frozenset({"https", "http", "file"})
_ODD: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]|\$\{")  # characters that uv never writes


def check_node_lock(lock: bytes, *, own: str = "", addresses: bool = False, where: str = LOCKS["node"]) -> None:
    """Check that a `package-lock.json` pins every package with an integrity hash.

    Only the entry of the package `own` may refer to a file, the tarball next to the lock. With `addresses`, entries may
    have HTTP URLs (`resolved`), as in locks of projects.
    """
    try:
        data = json.loads(lock)
        rows = data["packages"]
        if data.get("lockfileVersion") not in _VERSIONS or not isinstance(rows, dict):
            raise ValueError("the lock file has an old format")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{where} must be a lock file of version 2 or 3, and contain the integrity hash of each package", hint=_HINT
        ) from error
    bundled = _bundled(rows)
    for path, row in rows.items():
        if path and (why := _node_fault(path, row, own=own, addresses=addresses, bundled=path in bundled)):
            raise ConfigError(f"{where}: the entry {path[:_SHOWN]!r} {why}", hint=_HINT)


def _node_fault(path: str, row: Any, *, own: str, addresses: bool, bundled: bool) -> str:
    """Describe the problem of a lock entry, or return "". The description is the end of a sentence."""
    if not isinstance(row, dict):
        return "is not a table"
    if row.get("link"):
        return "is a link to a folder, whose content is not pinned"
    if not _PACKAGE.fullmatch(path):
        return "is a folder outside node_modules, so its content is not pinned"
    if row.get("hasShrinkwrap"):
        return "brings its own lock file, which npm would use unchecked"
    if not _VERSION.fullmatch(str(row.get("version", ""))):
        return f"has the version {str(row.get('version', ''))[:_SHOWN]!r}, which is not a version of a package"
    resolved = row.get("resolved")
    if resolved is not None and not _resolved_well(path, resolved, own=own, addresses=addresses):
        return f"points to another place ({str(resolved)[:_SHOWN]!r})"
    if bundled and "integrity" not in row:
        return "" if resolved is None else "is bundled in another package, but has an address"
    hashes = str(row.get("integrity", "")).split()
    if not hashes or not all(_INTEGRITY.fullmatch(one) for one in hashes):
        return "has no valid integrity, so npm would accept any bytes"
    return "" if any(not one.startswith("sha1-") for one in hashes) else "is pinned by SHA-1 alone, which can be forged"


def _resolved_well(path: str, resolved: Any, *, own: str, addresses: bool) -> bool:
    if own and path == f"node_modules/{own}":
        return bool(resolved == "file:package.tgz")
    return addresses and isinstance(resolved, str) and _parts(resolved).scheme in {"http", "https"}


def _parts(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _bundled(rows: Mapping[str, Any]) -> frozenset[str]:
    """Return the entries that npm does not download, because the tarball of an enclosing package contains them.

    `bundleDependencies` of the enclosing package lists these entries and their dependencies.
    """
    below: dict[str, list[str]] = {}
    for path in rows:
        below.setdefault(path.rpartition("/node_modules/")[0], []).append(path)
    found: set[str] = set()
    todo = [f"{above}/node_modules/{name}" for above, row in rows.items() for name in _named(row)]
    while todo:
        path = todo.pop()
        above, mark, _ = path.rpartition("/node_modules/")
        row = rows.get(path)
        if path in found or not mark or not isinstance(row, dict) or not row.get("inBundle"):
            continue
        if isinstance(rows.get(above), dict):
            found.add(path)
            todo += [*below.get(path, ()), *_needed(path, rows)]
    return frozenset(found)


def _named(row: Any) -> list[str]:
    named = row.get("bundleDependencies") if isinstance(row, dict) else None
    return [one for one in named if isinstance(one, str)] if isinstance(named, list) else []


def _needed(path: str, rows: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lock entries for an entry's dependencies. The nearest enclosing folder takes precedence."""
    for kind in ("dependencies", "optionalDependencies"):
        names = rows[path].get(kind)
        for name in names if isinstance(names, dict) else ():
            above = path
            while above and f"{above}/node_modules/{name}" not in rows:
                above = above.rpartition("/node_modules/")[0]
            yield f"{above}/node_modules/{name}"


def check_python_lock(lock: bytes, *, addresses: bool = False, where: str = LOCKS["python"]) -> None:
    """Check that a `requirements.lock` has only versions with hashes.

    Options are refused, because an option could select another index. With `addresses`, lines may have URLs of wheels
    (`NAME @ …/x.whl`), as in locks of projects.
    """
    try:
        text = lock.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where} is not UTF-8 text", hint=_HINT) from error
    for number, line in _logical_lines(text):
        if why := _python_fault(line, addresses=addresses):
            raise ConfigError(f"{where}: line {number} {why}: {line[:_SHOWN]!r}", hint=_HINT)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each logical line, without comments."""
    begun, start = "", 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        if line.lstrip().startswith("#") and not begun:
            continue
        start = start or number
        begun += line[:-1] if line.endswith("\\") else line
        if not line.endswith("\\"):
            if begun.strip():
                yield start, begun.strip()
            begun, start = "", 0
    if begun.strip():
        yield start, begun.strip()


def _python_fault(line: str, *, addresses: bool) -> str:
    if _ODD.search(line):
        return "has a control character or a variable"
    if line.startswith("-"):
        return "is an option, not a package"
    head, *hashes = re.split(r"\s+--hash=", line)
    try:
        asked = Requirement(head)
    except InvalidRequirement:
        return "does not pin one version of a package"
    if asked.url is not None:
        parts = _parts(asked.url)
        if not addresses or parts.scheme not in _WHEEL_SCHEMES or not parts.path.endswith(".whl"):
            return "points to another place"
    elif [one.operator for one in asked.specifier] != ["=="] or "*" in str(asked.specifier):
        return "does not pin one version of a package"
    if not hashes or not all(_HASH.fullmatch(one) for one in hashes):
        return "has no valid hash, so uv would accept any bytes"
    return ""
