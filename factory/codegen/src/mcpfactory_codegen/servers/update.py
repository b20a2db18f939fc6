"""Update of a server after its API document, its template or mcpfactory changed, keeping the user's edits.

machine's file    rewritten whole
person's file     three-way merge of the previous generated text (in the lock), the current file, and the new text
API document      replaced by the current one at its source; one that was edited is never replaced
mcpfactory.toml   person-owned; only the document's file, source and private hosts are set if they changed

The result is computed in memory first and then written at once, the lock last: an error leaves everything unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from mcpfactory_codegen.ir import Problem, Skipped
from mcpfactory_codegen.read.document import Document, load
from mcpfactory_codegen.read.overlay import apply_overlays
from mcpfactory_codegen.servers import tree
from mcpfactory_codegen.servers.answers import Answer, with_answers, with_template
from mcpfactory_codegen.servers.build import (
    BuiltServer,
    CreateError,
    Notify,
    as_create_errors,
    file_tampered,
    from_template,
    generate,
    is_url,
    no_notice,
    overlays_of,
    private_source,
    public_source,
    refuse_empty,
    stated_version,
    stored_document,
)
from mcpfactory_codegen.servers.config import CONFIG, ServerConfig, read_config
from mcpfactory_codegen.servers.diff import Change, diff
from mcpfactory_codegen.servers.documents import ApiConfig, Sources, as_kept, document_files, sources_of, with_apis
from mcpfactory_codegen.servers.report import ORIGIN_CHANGED, REPORT, origin_changes, published, reported_key
from mcpfactory_codegen.servers.scaffold import ServerTemplate, find_template, kept_source
from mcpfactory_codegen.servers.tree import Lock, LockEntry, Owner, fingerprint, has_marks, merge
from mcpfactory_codegen.text import listed

FileAction = Literal["create", "rewrite", "merge", "conflict", "same", "keep", "remove", "deleted", "collision"]
"""merge: both had changed, and went together; conflict: the person must choose; keep: the person's edit stands alone;
deleted: the person removed it, and it stays away; collision: a file that mcpfactory did not write is in the way."""


@dataclass(frozen=True, slots=True)
class FileUpdate:
    """Action for one file. `note` is information for the user."""

    path: str
    action: FileAction
    owner: Owner
    note: str = ""


@dataclass(frozen=True, slots=True)
class Updated:
    """Result of an update or a dry run. `changes` are those that affect callers of the tools.

    `address` has the API's URLs, as in the report; `moved` is a text about variables that the server no longer reads,
    or "".
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


@dataclass(slots=True)
class _Plan:
    """Planned writes (None: removal), the lock's new entries, and the actions to report.

    `merged`: all person-owned files include the template's changes, possibly between conflict markers.
    """

    changes: dict[str, bytes | None] = field(default_factory=dict)
    entries: dict[str, LockEntry] = field(default_factory=dict)
    files: list[FileUpdate] = field(default_factory=list)
    merged: bool = True


def update_server(
    folder: Path,
    *,
    source: Sources = None,
    labels: Collection[str] = (),
    permit: bool = False,
    accept_origin: bool = False,
    template: str = "",
    answers: Mapping[str, Answer] | None = None,
    dry_run: bool = False,
    notify: Notify = no_notice,
) -> Updated:
    """Regenerate the server in `folder` and merge the result with the user's edits.

    Args:
        folder: the server's directory.
        source: path or URL of the API document; None takes `source` of mcpfactory.toml, and if that is empty the
            document in the directory. `LABEL=PLACE` is for one of several documents; a new label adds a document.
        labels: of the documents to read again; () for all.
        permit: the user gave `source`, so that the API can be called there although the address is private.
        accept_origin: the user agrees that the server sends its credentials to new hosts.
        template: another template, or another source of it; "" takes that of mcpfactory.toml.
        answers: to its questions, in addition to the stored ones.
        dry_run: report the actions, and write nothing.
        notify: receives a progress line at the start of each step.

    Raises:
        CreateError: nothing was changed. Codes in addition to those of `create_server`: `edited`, the document was
            edited and would be replaced; `origin`, the API or its tokens would move to another host.
    """
    with as_create_errors():
        config = read_config(folder)
        lock = Lock.read(folder)
        chosen, config = _chosen(folder, config, template, answers or {})
        places = _places(config, source, labels)
        added = _added(config, places)
        config = replace(config, apis=(*config.apis, *added))
        documents = _read_documents(folder, config, places, labels)
        plan = _Plan(entries=dict(lock.files))
        config = _take_documents(folder, config, documents, lock, plan, renewed=places)
        fresh = documents.fresh if permit else {}
        named = {label: private_source(one.source) for label, one in fresh.items() if label in places}
        built = _built(folder, config, chosen, documents, named, notify=notify)
        tampered = _machine(folder, built, plan)
        _persons(folder, config, built, lock, plan)
        changes = _changes(folder, config, built) + _origins(folder, built, added)
        moved = _forgotten(_json(folder / REPORT), built)
        if not (dry_run or accept_origin):
            refuse_new_origins(config.name, changes)
        if not dry_run:
            tree.apply(folder, plan.changes, Lock(plan.entries, built.template if plan.merged else lock.template))
    return Updated(
        server=config.name,
        path=folder,
        files=tuple(sorted(plan.files, key=lambda file: file.path)),
        changes=changes,
        problems=built.problems + tampered,
        moved=moved,
        **built.facts,
    )


def _chosen(
    folder: Path, config: ServerConfig, source: str, answers: Mapping[str, Answer]
) -> tuple[ServerTemplate, ServerConfig]:
    """Return the template, which `source` can change, and the configuration with it and with the answers."""
    template = find_template(source) if source else find_template(config.template, folder)
    kept = kept_source(template, folder) if source else config.template
    return template, replace(config, template=kept, answers={**config.answers, **answers})


def _built(
    folder: Path,
    config: ServerConfig,
    template: ServerTemplate,
    documents: _Documents,
    sources: Mapping[str, str],
    *,
    notify: Notify,
) -> BuiltServer:
    """Return the server as generated from the documents just read and those in its directory.

    `sources` as for `generate`.
    """
    if not config.document:
        return from_template(config, template)
    every = dict(documents.stored)
    for api in config.apis:
        if api.label in documents.fresh:
            fresh = documents.fresh[api.label]
            every[api.label] = apply_overlays(
                as_kept(fresh, document_files(fresh, api.label)), overlays_of(folder, api)
            )
    built = generate(
        config,
        every,
        published(folder),
        stated_version(folder, config),
        scaffold=template,
        sources=sources,
        notify=notify,
    )
    refuse_empty(built, config, config.document)
    return built


# --- the API document ---


@dataclass(frozen=True, slots=True)
class _Documents:
    """The API documents by label: `fresh` were read from elsewhere just now, `stored` are those in the folder, with their overlays."""

    fresh: Mapping[str, Document]
    stored: Mapping[str, Document]


def _added(config: ServerConfig, places: Mapping[str, str]) -> tuple[ApiConfig, ...]:
    known = {api.label for api in config.apis}
    return tuple(
        ApiConfig(document=f"api/{label}/openapi.{'json' if place.endswith('.json') else 'yaml'}", label=label)
        for label, place in places.items()
        if label not in known
    )


def _places(config: ServerConfig, source: Sources, labels: Collection[str]) -> dict[str, str]:
    known = [api.label for api in config.apis]
    hint = f"documents: {', '.join(known)}" if any(known) else "this server has one API document: leave out --api"
    for label in labels:
        if label not in known:
            raise CreateError(
                f"{config.name} has no API document {label!r}",
                listed(label, known, "documents") if any(known) else hint,
                "source",
            )
    places: dict[str, str] = {}
    for one in sources_of(source):
        if not config.document:
            hint = "leave out --from-openapi, or make a new server: mcpfactory new --from-openapi"
            raise CreateError(f"{config.name} is not generated from an API document", hint, "source")
        label = one.label or (
            next(iter(labels)) if len(labels) == 1 else "" if "" in known or len(known) > 1 else known[0]
        )
        if not one.label and label not in known:
            raise CreateError(
                f"the label of the document {one.place} is missing",
                f"--from-openapi LABEL={one.place}; {hint}",
                "source",
            )
        if label in places:
            raise CreateError(f"two documents are given for {label or 'the API document'}", "give one", "source")
        places[label] = one.place
    return places


def _read_documents(
    folder: Path, config: ServerConfig, places: Mapping[str, str], labels: Collection[str]
) -> _Documents:
    """Return the documents of the server: those that are read from elsewhere, and of the others those in the folder."""
    fresh = {}
    for api in config.apis:
        if api.label in places or not labels or api.label in labels:
            document = _source_document(folder, api, places.get(api.label))
            if document is not None:
                fresh[api.label] = document
    return _Documents(fresh, {api.label: stored_document(folder, api) for api in config.apis if api.label not in fresh})


def _source_document(folder: Path, api: ApiConfig, place: str | None) -> Document | None:
    address = place if place is not None else api.source
    if not address:
        return None
    if not is_url(address):
        target = Path(address) if place is not None else folder / address
        if target.resolve() == (folder / api.document).resolve():
            return None
        address = str(target)
    return load(address)


def _take_documents(
    folder: Path, config: ServerConfig, documents: _Documents, lock: Lock, plan: _Plan, *, renewed: Collection[str]
) -> ServerConfig:
    """Plan to copy the documents into the folder; return the configuration that names them.

    Files that belong to none of them are removed: what a document no longer refers to, and those of a document whose table is gone.
    """
    kept: set[str] = set()
    owners: dict[str, str] = {}
    apis = []
    for api in config.apis:
        kept.update(api.overlays)
        document = documents.fresh.get(api.label)
        if document is None:
            _own(_files_of(api, documents.stored[api.label]), api, owners)
            apis.append(api)
            continue
        layout = document_files(document, api.label)
        _own(layout.files, api, owners)
        for path, content in layout.files.items():
            _take_file(folder, path, content, lock, plan)
        source = public_source(document.source) if api.label in renewed else api.source
        apis.append(replace(api, document=layout.main, source=source))
    kept.update(owners)
    for path in [path for path, entry in lock.files.items() if entry.owner == "document" and path not in kept]:
        _drop_file(folder, path, lock, plan)
    return replace(config, apis=tuple(apis))


def _own(paths: Iterable[str], api: ApiConfig, owners: dict[str, str]) -> None:
    for path in paths:
        other = owners.setdefault(path, api.named)
        if other != api.named:
            what = f"{path} would be a file of the API document {other} and of {api.named}"
            raise CreateError(what, "choose a label that is not a folder of the other document", "source")


def _files_of(api: ApiConfig, document: Document) -> list[str]:
    parts = Path(api.document).parts
    below = f"{parts[0]}/" if len(parts) > 1 else ""
    return [below + part for part in document.parts]


def _take_file(folder: Path, path: str, content: bytes, lock: Lock, plan: _Plan) -> None:
    target = tree.locate(folder, path)
    existing = target.read_bytes() if target.is_file() else None
    if existing != content:
        _refuse_edited(target, path, existing, lock)
        plan.changes[path] = content
        plan.files.append(FileUpdate(path, "create" if existing is None else "rewrite", "document"))
    plan.entries[path] = LockEntry("document", fingerprint(content))


def _drop_file(folder: Path, path: str, lock: Lock, plan: _Plan) -> None:
    """Plan to remove a document's file; an edited one becomes person-owned."""
    target = tree.locate(folder, path)
    plan.entries.pop(path)
    if not target.is_file():
        return
    if fingerprint(target.read_bytes()) == lock.files[path].sha256:
        plan.changes[path] = None
        plan.files.append(FileUpdate(path, "remove", "document"))
    else:
        note = "it belongs to no API document of the server any more; changed by hand, so it is yours from now on"
        plan.files.append(FileUpdate(path, "keep", "document", note))


def _refuse_edited(target: Path, path: str, existing: bytes | None, lock: Lock) -> None:
    known = lock.files.get(path)
    if existing is None or (known is not None and fingerprint(existing) == known.sha256):
        return
    what = "was changed by hand" if known else "is not known to mcpfactory"
    raise CreateError(
        f"{target} {what}, and another document would replace it",
        f"use --from-openapi {target} to continue with your file; to use the other one, move yours away first",
        "edited",
    )


# --- the machine's files ---


def _machine(folder: Path, built: BuiltServer, plan: _Plan) -> tuple[Problem, ...]:
    steps = tree.plan(folder, built.machine, owner="machine") if built.machine else ()
    for step in steps:
        if step.action == "remove":
            plan.changes[step.path] = None
            plan.entries.pop(step.path)
        else:
            content = built.machine[step.path].encode()
            plan.entries[step.path] = LockEntry("machine", fingerprint(content))
            if step.action != "same":
                plan.changes[step.path] = content
        plan.files.append(FileUpdate(step.path, step.action, "machine"))
    if built.machine:
        gone = [path for path, entry in plan.entries.items() if entry.owner == "machine" and path not in built.machine]
        for path in gone:  # files that somebody removed already
            plan.entries.pop(path)
    return tuple(file_tampered(step) for step in steps if step.tampered)


# --- the person's files ---


def _persons(folder: Path, config: ServerConfig, built: BuiltServer, lock: Lock, plan: _Plan) -> None:
    before = {path for path, entry in lock.files.items() if entry.owner == "person"}
    for path in sorted(before | built.person.keys() - {CONFIG}):
        if path == CONFIG:
            continue
        known = lock.files.get(path)
        base = known.pristine if known is not None and known.owner == "person" else None
        file_merge = _merged(tree.locate(folder, path), path, base, built.person.get(path))
        plan.files.append(file_merge.file)
        plan.merged &= file_merge.file.action != "conflict" or file_merge.content is not None
        if file_merge.content is not None or file_merge.file.action == "remove":
            plan.changes[path] = file_merge.content
        if file_merge.base is not None:
            plan.entries[path] = LockEntry("person", fingerprint(file_merge.base.encode()), file_merge.base)
        else:
            plan.entries.pop(path, None)
    _configuration(folder, config, built, plan)


def _configuration(folder: Path, config: ServerConfig, built: BuiltServer, plan: _Plan) -> None:
    """Set where the document lies, where it came from, a private address that was named, and the template and answers; the person's choices stay."""
    ours = tree.locate(folder, CONFIG).read_bytes().decode()
    known = read_config(folder)
    text = with_apis(ours, built.apis)
    if config.template != known.template:
        text = with_template(text, config.template)
    if config.answers != known.answers:
        text = with_answers(text, config.answers)
    if text != ours:
        plan.changes[CONFIG] = text.encode()
    pristine = built.person[CONFIG]
    plan.entries[CONFIG] = LockEntry("person", fingerprint(pristine.encode()), pristine)
    plan.files.append(FileUpdate(CONFIG, "same" if text == ours else "merge", "person"))


@dataclass(frozen=True, slots=True)
class _FileMerge:
    """Result of merging one person-owned file.

    `content` is written unless None, `base` is the start of the next merge.
    """

    file: FileUpdate
    content: bytes | None = None
    base: str | None = None


def _merged(target: Path, path: str, base: str | None, theirs: str | None) -> _FileMerge:
    """Merge one file.

    `base`: the previously generated text (None: not generated); `theirs`: the text generated now (None: no longer
    generated).
    """

    def file(action: FileAction, note: str = "") -> FileUpdate:
        return FileUpdate(path, action, "person", note)

    if not target.exists() and not target.is_symlink():
        if base is None and theirs is not None:
            return _FileMerge(file("create"), theirs.encode(), theirs)
        return _FileMerge(file("deleted"), base=base if theirs is not None else None)
    ours = _text(target)
    if base is None:
        if theirs is not None and ours == theirs:
            return _FileMerge(file("same"), base=theirs)
        return _FileMerge(
            file("collision", "mcpfactory would make a file of this name, and did not write the one that is there")
        )
    if theirs is None:
        if ours == base:
            return _FileMerge(file("remove"))
        return _FileMerge(file("keep", "no longer made by mcpfactory; yours from now on"))
    if ours is None:
        if theirs == base:
            return _FileMerge(file("keep"), base=base)
        return _FileMerge(
            file("conflict", "not a text file in UTF-8, or a link: take over by hand what is new"), base=base
        )
    if has_marks(ours):
        return _FileMerge(file("conflict", "the conflict marks of an earlier update are still in it"), base=base)
    return _three_way(ours, base, theirs, file)


def _three_way(ours: str, base: str, theirs: str, file: Callable[..., FileUpdate]) -> _FileMerge:
    if ours == theirs:
        return _FileMerge(file("same"), base=theirs)
    if theirs == base:
        return _FileMerge(file("keep"), base=base)
    done = merge(base, ours, theirs)
    if done.conflicts:
        count = "one place" if done.conflicts == 1 else f"{done.conflicts} places"
        return _FileMerge(
            file("conflict", f"{count} to decide, between <<<<<<< and >>>>>>>"), done.text.encode(), theirs
        )
    return _FileMerge(file("rewrite" if ours == base else "merge"), done.text.encode(), theirs)


def _text(target: Path) -> str | None:
    """Return the file's text with its line endings unchanged; None if it cannot be merged."""
    if target.is_symlink() or not target.is_file():
        return None
    try:
        return target.read_bytes().decode()
    except UnicodeDecodeError:
        return None


# --- what callers can meet ---


def _changes(folder: Path, config: ServerConfig, built: BuiltServer) -> tuple[Change, ...]:
    path = f"src/{config.package}/_generated/manifest.json"
    if path not in built.machine:
        return ()
    old, reported = _json(folder / path), _json(folder / REPORT)
    operations = {tool.key: tool.name for tool in built.tools}
    renamed = {was: operations[key] for key, was in _operations(reported).items() if key in operations}
    return diff(old, json.loads(built.machine[path]), renamed=renamed)


def _origins(folder: Path, built: BuiltServer, added: Iterable[ApiConfig]) -> tuple[Change, ...]:
    own = [api.label for api in added if api.credentials != "shared"]
    return origin_changes(_json(folder / REPORT), json.loads(built.machine.get(REPORT, b"{}")), own)


def refuse_new_origins(server: str, changes: Collection[Change]) -> None:
    """Refuse changes that would send existing credentials to a new origin.

    Raises:
        CreateError: `origin`: `changes` contains one.
    """
    found = [change.message for change in changes if change.code == ORIGIN_CHANGED]
    if found:
        raise CreateError(
            "; ".join(found),
            f"ask a person who trusts that address to run mcpfactory update {server} --accept-origin; "
            "--dry-run shows all changes",
            "origin",
        )


def _forgotten(report: Mapping[str, Any], built: BuiltServer) -> str:
    """Return a message about variables that the server no longer reads; "" if all are still read."""
    if REPORT not in built.machine:
        return ""
    gone = _variables(report) - _variables(json.loads(built.machine[REPORT]))
    return f"variables that are no longer read: {', '.join(sorted(gone))}" if gone else ""


def _variables(report: Mapping[str, Any]) -> set[str]:
    rows = report.get("environment")  # somebody may have merged the report by hand
    return (
        {str(row["name"]) for row in rows if isinstance(row, dict) and "name" in row}
        if isinstance(rows, list)
        else set()
    )


def _operations(report: Mapping[str, Any]) -> dict[str, str]:
    rows = [row for row in report.get("tools", ()) if row.get("operation")]
    return {reported_key(row["operation"]): row["name"] for row in rows}


def _json(target: Path) -> dict[str, Any]:
    """Return the object in a machine-owned file; {} if missing or damaged, because it will be rewritten."""
    try:
        data = json.loads(target.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
