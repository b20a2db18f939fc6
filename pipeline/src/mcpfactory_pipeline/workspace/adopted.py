"""Settings and known drift of adopted servers.

`mcpfactory inbox --refresh` writes `drift.json`, and deletes it once nothing differs any more. The file applies
to the version pinned now, and is ignored as soon as another one is adopted. It describes each difference and stores
the hash of everything that replaced the pinned version. A waiver covers only that offer, and no later one.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from mcpfactory_codegen.text import listed, unknown_field
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.files import replace_file, why_damaged
from mcpfactory_pipeline.base.hashing import hash_file, hash_record, source_files
from mcpfactory_pipeline.base.ids import Clock, utc_now


@dataclass(frozen=True, slots=True)
class KindFields:
    """Required and optional fields of the table of one kind; `says` describes the kind."""

    says: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


_OWN_TESTS: Final = ("test", "report")
KINDS: Final[Mapping[str, KindFields]] = {
    "python": KindFields("a Python project", ("path", "start"), _OWN_TESTS),
    "node": KindFields("a project of Node.js", ("path", "start"), ("build", *_OWN_TESTS)),
    "command": KindFields(
        "a command with the files that it runs", ("start",), ("path", "files", "version", *_OWN_TESTS)
    ),
    "pypi": KindFields("a package of a Python index", ("package", "version", "hash", "start"), ("constraints",)),
    "npm": KindFields("a package of an npm registry", ("package", "version", "hash", "start")),
    "url": KindFields("a server at a URL", ("url",)),
}
_LISTS: Final = ("start", "files", "test", "build", "constraints")


@dataclass(frozen=True, slots=True)
class Adopted:
    """Settings to build, start and test an adopted server.

    `kind` is one of `KINDS`. `start` is its command line: a program of the package, or a file below `path`, and
    arguments. `path` is the folder of the server's files, relative to the workspace root; `files` are those of them
    that a command needs. `package`, `version` and `hash` pin a package; `constraints` pin versions of its
    dependencies. `test` is the command of the server's tests, and `report` the file that this writes; `build` is the
    build command of a Node.js project.
    """

    kind: str
    start: tuple[str, ...] = ()
    path: str = ""
    files: tuple[str, ...] = ()
    package: str = ""
    version: str = ""
    hash: str = ""
    constraints: tuple[str, ...] = ()
    url: str = ""
    test: tuple[str, ...] = ()
    report: str = ""
    build: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """Return the human-readable origin: the argument given to `mcpfactory adopt`."""
        if self.package:
            return f"{self.kind}:{self.package}{'==' if self.kind == 'pypi' else '@'}{self.version}"
        return self.url or self.path or " ".join(self.start)

    @property
    def again(self) -> str:
        """Return the argument of `mcpfactory adopt` for the newest version; for a command, to run in its folder."""
        if self.package:
            return f"{self.kind}:{self.package}"
        return f"--command {shlex.quote(shlex.join(self.start))}" if self.kind == "command" else self.origin

    def folder(self, root: Path) -> Path | None:
        """Return the folder of the server's files; None if they are not in the workspace."""
        return root / self.path if self.path else None

    def own_files(self, root: Path) -> list[str]:
        """Return the server's files, relative to `folder`: those that a command runs, else all sources in the folder.

        Raises:
            StageError: a link points out of the folder.
        """
        folder = self.folder(root)
        if folder is None:
            return []
        if self.kind != "command":
            return source_files(folder)
        found = {word for word in self.start if not word.startswith(("-", "/")) and (folder / word).is_file()}
        for name in self.files:
            if (folder / name).is_dir():
                found |= {f"{name.rstrip('/')}/{path}" for path in source_files(folder / name)}
            else:
                found.add(name)
        return sorted(found)


def read_adopted(file: Path, config: Mapping[str, Any]) -> Adopted | None:
    """Return the table `[adopted]` of a server's file; None if it is missing.

    Raises:
        ConfigError: the table is invalid.
    """
    table = config.get("adopted")
    if table is None:
        return None
    if not isinstance(table, Mapping):
        raise ConfigError(f"{file}: adopted is not a table", hint="write [adopted] on its own line")
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(f"{file}: adopted.kind is {kind!r}", hint=listed(str(kind), KINDS, "kinds"))
    fields = KINDS[kind]
    if found := unknown_field(table, ("kind", *fields.required, *fields.optional), "[adopted]"):
        raise ConfigError(f"{file}: {found[0]}", hint=found[1])
    if missing := [name for name in fields.required if not table.get(name)]:
        raise ConfigError(
            f"{file}: adopted.{missing[0]} is missing, and {kind} needs it", hint="mcpfactory adopt writes it"
        )
    values: dict[str, Any] = {}
    for name, value in table.items():
        wanted = _texts(value) if name in _LISTS else value if isinstance(value, str) else None
        if wanted is None:
            word = "a list of strings" if name in _LISTS else "text"
            raise ConfigError(f"{file}: adopted.{name} is not {word}", hint="mcpfactory adopt writes it")
        values[name] = wanted
    for name in (values.get("path", ""), *values.get("files", ()), values.get("report", "")):
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\\" in name:
            raise ConfigError(f"{file}: adopted: {name!r} is outside the workspace", hint="name a place below its root")
    return Adopted(**values)


def _texts(value: object) -> tuple[str, ...] | None:
    if isinstance(value, list) and all(isinstance(one, str) and one for one in value):
        return tuple(value)
    return None


FILE: Final = "drift.json"
STOPPING: Final = ("replaced", "offers")  # kinds that block the server; a newer version does not
DRIFT_RULE: Final = "security.drift"  # the rule of `validate` that says so, and by which it is waived
OFFERS: Final = "offers.json"
_SCHEMA: Final = 2
_SHORT: Final = 12  # characters of a hash that sentences show


@dataclass(frozen=True, slots=True)
class KnownDrift:
    """One difference that stops a server: its kind (of `STOPPING`), what it is, what it means for callers, and what to type next.

    `offer` is the hash of all that is there instead, `seen` the day (YYYY-MM-DD) on which that was found first.
    """

    kind: str
    message: str
    means: str
    command: str
    offer: str
    seen: str = ""


def read_known_drift(folder: Path, adopted: Adopted | None) -> tuple[KnownDrift, ...]:
    """Return the known drift in a server's folder; empty if it is not adopted, or was adopted again since.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        text = (folder / FILE).read_bytes() if adopted else b""
        if adopted is None or (data := json.loads(text))["of"] != _pinned(folder, adopted):
            return ()
        if data["drift"] != _SCHEMA:
            raise ValueError("it has another format")
        return tuple(KnownDrift(**{name: str(value) for name, value in one.items()}) for one in data["found"])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{folder.name}/{FILE} cannot be read: {why_damaged(error)}",
            hint=f"mcpfactory inbox --refresh {folder.name} writes it again",
        ) from error


def offered_now(known: Sequence[KnownDrift]) -> str:
    """Return one hash of everything that replaced the adopted version; "" if nothing did."""
    return known[0].offer if len(known) == 1 else hash_record({one.kind: one.offer for one in known}) if known else ""


def offer_words(offer: str, seen: str) -> str:
    """Describe the offer that a waiver covers: `what was offered on 2026-11-28, sha256 0123456789ab`."""
    return f"what was offered on {seen}, sha256 {offer.removeprefix('sha256:')[:_SHORT]}"


def write_known_drift(folder: Path, adopted: Adopted, found: Sequence[KnownDrift], *, clock: Clock = utc_now) -> None:
    """Write the known drift of a server, or delete the file without drift.

    Drift that was known before keeps its discovery date.

    Raises:
        OSError: the file cannot be written.
    """
    file = folder / FILE
    if not found:
        file.unlink(missing_ok=True)
        return
    days: dict[tuple[str, str], str] = {}
    with suppress(ConfigError):  # an unreadable file is overwritten
        days = {(one.kind, one.offer): one.seen for one in read_known_drift(folder, adopted)}
    today = clock().date().isoformat()
    dated = [replace(one, seen=days.get((one.kind, one.offer), today)) for one in found]
    data = {"drift": _SCHEMA, "of": _pinned(folder, adopted), "found": [asdict(one) for one in dated]}
    replace_file(file, (json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode())


def _pinned(folder: Path, adopted: Adopted) -> str:
    pins = {"kind": adopted.kind, "package": adopted.package, "version": adopted.version, "hash": adopted.hash}
    return hash_record({**pins, "url": adopted.url, "offers": hash_file(folder / OFFERS)})
