"""A server made anew when its API document, its template or mcpfactory changed, with the person's edits kept.

machine's file    rewritten whole
person's file     merged three-way: what was made before (in the lock), what is there, what is made now
API document      replaced by what its source says now; one that was changed by hand is never replaced
mcpfactory.toml   the person's; only where the document lies, came from and may be private is set when it changed

All is worked out in memory first and then written at once, the lock last: an error leaves everything as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from mcpfactory_codegen.ir import Problem, Skipped
from mcpfactory_codegen.read.document import Document, load
from mcpfactory_codegen.read.overlay import apply_overlays
from mcpfactory_codegen.servers import tree
from mcpfactory_codegen.servers.build import (
    BuiltServer,
    Told,
    file_tampered,
    from_template,
    generate,
    is_url,
    overlays_of,
    public_source,
    refuse_empty,
    silent,
    stated_version,
    stored_document,
)
from mcpfactory_codegen.servers.config import CONFIG, ServerConfig, read_config, with_api
from mcpfactory_codegen.servers.diff import Change, diff
from mcpfactory_codegen.servers.errors import CreateError, told
from mcpfactory_codegen.servers.layout import as_kept, document_files
from mcpfactory_codegen.servers.lock import Lock, LockEntry, Owner, fingerprint
from mcpfactory_codegen.servers.merge import has_marks, merge
from mcpfactory_codegen.servers.permission import private_source
from mcpfactory_codegen.servers.report import REPORT, published_names

__all__ = ["FileAction", "FileUpdate", "Updated", "update_server"]

FileAction = Literal["create", "rewrite", "merge", "conflict", "same", "keep", "remove", "deleted", "collision"]
"""merge: both had changed, and went together; conflict: the person must choose; keep: the person's edit stands alone;
deleted: the person removed it, and it stays away; collision: a file that mcpfactory did not write is in the way."""


@dataclass(frozen=True, slots=True)
class FileUpdate:
    """What happens to one file. `note` says what the person should know about it."""

    path: str
    action: FileAction
    owner: Owner
    note: str = ""


@dataclass(frozen=True, slots=True)
class Updated:
    """What an update did, or would do. `changes` are those that callers of the tools can meet.

    `address` says where the API lives, as in the report; `moved` in words that it is elsewhere than before, "" when it is not.
    """

    server: str
    path: Path
    tools: int = 0
    operations: int = 0
    files: tuple[FileUpdate, ...] = ()
    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    address: Mapping[str, Any] = field(default_factory=dict)
    moved: str = ""

    @property
    def conflicts(self) -> tuple[str, ...]:
        """Paths of the files in which the person must choose."""
        return tuple(file.path for file in self.files if file.action == "conflict")

    def to_json(self, *, dry_run: bool = False) -> dict[str, Any]:
        """Plain data for programs, without the files that stay the same."""
        return {
            "server": self.server,
            "path": str(self.path),
            "dry_run": dry_run,
            "tools": self.tools,
            "operations": self.operations,
            "files": [asdict(file) for file in self.files if file.action != "same"],
            "conflicts": list(self.conflicts),
            "breaking": sum(change.kind == "breaking" for change in self.changes),
            "changes": [asdict(change) for change in self.changes],
            "problems": [asdict(problem) for problem in self.problems],
            "address": dict(self.address),
            "moved": self.moved,
        }


@dataclass(slots=True)
class _Plan:
    """What will be written (None: removed), what the lock will say, and what is told about it.

    `merged`: what is new in the template is in all of the person's files, if only between conflict marks.
    """

    changes: dict[str, bytes | None] = field(default_factory=dict)
    entries: dict[str, LockEntry] = field(default_factory=dict)
    files: list[FileUpdate] = field(default_factory=list)
    merged: bool = True


def update_server(
    folder: Path,
    *,
    source: str | Path | None = None,
    permit: bool = False,
    dry_run: bool = False,
    tell: Told = silent,
) -> Updated:
    """Make the server in `folder` anew and merge it with what the person made of it.

    Args:
        folder: the server's folder.
        source: where the API document is read from (path or URL); None takes `source` of mcpfactory.toml, and if
            that is empty the document in the folder.
        permit: a person named `source`, so that the API may be called there although the address is private.
        dry_run: say what would happen, and write nothing.
        tell: is told what begins, in words for a person.

    Raises:
        CreateError: nothing was changed. Besides the codes of `create_server`: `edited`, the document in the folder
            was changed by hand and another one is to take its place.
    """
    with told():
        config = read_config(folder)
        lock = Lock.read(folder)
        given = _given(folder, config, source)
        plan = _Plan(entries=dict(lock.files))
        if given is not None:
            config = _take_document(folder, config, given, lock, plan, renew=source is not None)
            given = as_kept(given, document_files(given))
        named = private_source(given.source) if permit and given is not None and source is not None else ""
        made = _made(folder, config, given, named, tell)
        tampered = _machine(folder, made, plan)
        _persons(folder, config, made, lock, plan)
        changes = _changes(folder, config, made)
        moved = _moved(_json(folder / REPORT), made)
        if not dry_run:
            tree.apply(folder, plan.changes, Lock(plan.entries, made.template if plan.merged else lock.template))
    return Updated(
        server=config.name,
        path=folder,
        tools=len(made.tools),
        operations=made.operations,
        files=tuple(sorted(plan.files, key=lambda file: file.path)),
        changes=changes,
        problems=made.problems + tampered,
        skipped=made.skipped,
        address=made.address,
        moved=moved,
    )


def _made(folder: Path, config: ServerConfig, given: Document | None, source: str, tell: Told) -> BuiltServer:
    """Return the server as it is made today; `source` as for `generate`."""
    if not config.document:
        return from_template(config)
    document = stored_document(folder, config) if given is None else apply_overlays(given, overlays_of(folder, config))
    pinned = {**published_names(folder), **config.names}
    version = stated_version(folder, config)
    made = generate(config, document, pinned, version, scaffold=True, source=source, tell=tell)
    refuse_empty(made, config, config.document)
    return made


# --- the API document ---


def _given(folder: Path, config: ServerConfig, source: str | Path | None) -> Document | None:
    """Return the document from elsewhere; None when the one in the folder is to be used."""
    if not config.document:
        if source is not None:
            hint = "leave out --from-openapi, or make a new server: mcpfactory new --from-openapi"
            raise CreateError(f"{config.name} is not made from an API document", hint, "source")
        return None
    wanted = str(source) if source is not None else config.source
    if not wanted:
        return None
    if not is_url(wanted):
        place = Path(wanted) if source is not None else folder / wanted
        if place.resolve() == (folder / config.document).resolve():
            return None
        wanted = str(place)
    return load(wanted)


def _take_document(
    folder: Path, config: ServerConfig, given: Document, lock: Lock, plan: _Plan, *, renew: bool
) -> ServerConfig:
    """Plan to put the document into the folder; gives the configuration that names it."""
    layout = document_files(given)
    for path, content in layout.files.items():
        place = tree.locate(folder, path)
        there = place.read_bytes() if place.is_file() else None
        if there != content:
            _refuse_edited(place, path, there, lock)
            plan.changes[path] = content
            plan.files.append(FileUpdate(path, "create" if there is None else "rewrite", "document"))
        plan.entries[path] = LockEntry("document", fingerprint(content))
    kept = {*layout.files, *config.overlays}
    for path in [path for path, entry in lock.files.items() if entry.owner == "document" and path not in kept]:
        place = tree.locate(folder, path)
        if place.is_file():
            _refuse_edited(place, path, place.read_bytes(), lock)
            plan.changes[path] = None
            plan.files.append(FileUpdate(path, "remove", "document"))
        plan.entries.pop(path)
    return replace(config, document=layout.main, source=public_source(given.source) if renew else config.source)


def _refuse_edited(place: Path, path: str, there: bytes | None, lock: Lock) -> None:
    known = lock.files.get(path)
    if there is None or (known is not None and fingerprint(there) == known.sha256):
        return
    what = "was changed by hand" if known else "is not known to mcpfactory"
    raise CreateError(
        f"{place} {what}, and another document is to take its place",
        f"--from-openapi {place} goes on with yours; to take the other one, move yours away first",
        "edited",
    )


# --- the machine's files ---


def _machine(folder: Path, made: BuiltServer, plan: _Plan) -> tuple[Problem, ...]:
    steps = tree.plan(folder, made.machine, owner="machine") if made.machine else ()
    for step in steps:
        if step.action == "remove":
            plan.changes[step.path] = None
            plan.entries.pop(step.path)
        else:
            content = made.machine[step.path].encode()
            plan.entries[step.path] = LockEntry("machine", fingerprint(content))
            if step.action != "same":
                plan.changes[step.path] = content
        plan.files.append(FileUpdate(step.path, step.action, "machine"))
    if made.machine:
        gone = [path for path, entry in plan.entries.items() if entry.owner == "machine" and path not in made.machine]
        for path in gone:  # files that somebody removed already
            plan.entries.pop(path)
    return tuple(file_tampered(step) for step in steps if step.tampered)


# --- the person's files ---


def _persons(folder: Path, config: ServerConfig, made: BuiltServer, lock: Lock, plan: _Plan) -> None:
    before = {path for path, entry in lock.files.items() if entry.owner == "person"}
    for path in sorted(before | made.person.keys() - {CONFIG}):
        if path == CONFIG:
            continue
        known = lock.files.get(path)
        base = known.pristine if known is not None and known.owner == "person" else None
        one = _merged(tree.locate(folder, path), path, base, made.person.get(path))
        plan.files.append(one.file)
        plan.merged &= one.file.action != "conflict" or one.content is not None
        if one.content is not None or one.file.action == "remove":
            plan.changes[path] = one.content
        if one.base is not None:
            plan.entries[path] = LockEntry("person", fingerprint(one.base.encode()), one.base)
        else:
            plan.entries.pop(path, None)
    _configuration(folder, config, made, plan)


def _configuration(folder: Path, config: ServerConfig, made: BuiltServer, plan: _Plan) -> None:
    """The person's choices stay; only where the document lies, where it came from, and a private address that was named are set."""
    ours = tree.locate(folder, CONFIG).read_bytes().decode()
    private = made.address.get("allow_private", ())
    text = (
        with_api(ours, document=config.document, source=config.source, allow_private=private)
        if config.document
        else ours
    )
    if text != ours:
        plan.changes[CONFIG] = text.encode()
    pristine = made.person[CONFIG]
    plan.entries[CONFIG] = LockEntry("person", fingerprint(pristine.encode()), pristine)
    plan.files.append(FileUpdate(CONFIG, "same" if text == ours else "merge", "person"))


@dataclass(frozen=True, slots=True)
class _One:
    """What becomes of one file of the person's: `content` is written unless None, `base` is what the next merge starts from."""

    file: FileUpdate
    content: bytes | None = None
    base: str | None = None


def _merged(place: Path, path: str, base: str | None, theirs: str | None) -> _One:
    """`base`: as it was made before (None: it was not); `theirs`: as it is made now (None: it no longer is)."""

    def file(action: FileAction, note: str = "") -> FileUpdate:
        return FileUpdate(path, action, "person", note)

    if not place.exists() and not place.is_symlink():
        if base is None and theirs is not None:
            return _One(file("create"), theirs.encode(), theirs)
        return _One(file("deleted"), base=base if theirs is not None else None)
    ours = _text(place)
    if base is None:
        if theirs is not None and ours == theirs:
            return _One(file("same"), base=theirs)
        return _One(
            file("collision", "mcpfactory would make a file of this name, and did not write the one that is there")
        )
    if theirs is None:
        if ours == base:
            return _One(file("remove"))
        return _One(file("keep", "no longer made by mcpfactory; yours from now on"))
    if ours is None:
        if theirs == base:
            return _One(file("keep"), base=base)
        return _One(file("conflict", "not a text file in UTF-8, or a link: take over by hand what is new"), base=base)
    if has_marks(ours):
        return _One(file("conflict", "the conflict marks of an earlier update are still in it"), base=base)
    return _three_way(ours, base, theirs, file)


def _three_way(ours: str, base: str, theirs: str, file: Callable[..., FileUpdate]) -> _One:
    if ours == theirs:
        return _One(file("same"), base=theirs)
    if theirs == base:
        return _One(file("keep"), base=base)
    done = merge(base, ours, theirs)
    if done.conflicts:
        places = "one place" if done.conflicts == 1 else f"{done.conflicts} places"
        return _One(file("conflict", f"{places} to decide, between <<<<<<< and >>>>>>>"), done.text.encode(), theirs)
    return _One(file("rewrite" if ours == base else "merge"), done.text.encode(), theirs)


def _text(place: Path) -> str | None:
    """Return the file's text, its line endings as they are; None for what cannot be merged."""
    if place.is_symlink() or not place.is_file():
        return None
    try:
        return place.read_bytes().decode()
    except UnicodeDecodeError:
        return None


# --- what callers can meet ---


def _changes(folder: Path, config: ServerConfig, made: BuiltServer) -> tuple[Change, ...]:
    path = f"src/{config.package}/_generated/manifest.json"
    if path not in made.machine:
        return ()
    old, reported = _json(folder / path), _json(folder / REPORT)
    operations = {tool.key: tool.name for tool in made.tools}
    renamed = {was: operations[key] for key, was in _operations(reported).items() if key in operations}
    return diff(old, json.loads(made.machine[path]), renamed=renamed)


def _moved(report: Mapping[str, Any], made: BuiltServer) -> str:
    """In words, that the document has the API elsewhere now: the server's credentials will go there."""
    before, now = report.get("address"), made.address.get("base_url")
    was = before.get("base_url") if isinstance(before, dict) else now
    return f"the API is at {now} now, and was at {was}: the server's credentials go there" if was != now else ""


def _operations(report: Mapping[str, Any]) -> dict[str, str]:
    rows = [row for row in report.get("tools", ()) if row.get("operation")]
    return {f"{row['operation']['method']} {row['operation']['path']}": row["name"] for row in rows}


def _json(place: Path) -> dict[str, Any]:
    """Return the object in a file that the machine wrote; {} when it is gone or damaged: it is about to be written anew."""
    try:
        data = json.loads(place.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
