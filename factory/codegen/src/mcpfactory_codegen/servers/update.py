"""Update of a server after its API document, its template or mcpfactory changed. Edits by the user are kept.

Machine-owned files are regenerated. Person-owned files get a three-way merge of the previous generated text (in the
lock), the current file, and the new text. The API document is replaced by the current document at its source. If the
stored document was edited, the update is refused. In mcpfactory.toml, only documents, template and answers are changed.

The result is computed in memory and then written at once with the lock last, so that an error changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpfactory_codegen.ir import Problem, SkippedOperation
from mcpfactory_codegen.read.document import Document, load
from mcpfactory_codegen.read.overlay import apply_overlays
from mcpfactory_codegen.servers import server_files
from mcpfactory_codegen.servers.config import Answer, ApiConfig, ServerConfig, read_config
from mcpfactory_codegen.servers.documents import (
    Sources,
    collect_document_files,
    is_url,
    load_configured_overlays,
    parse_api_sources,
    private_source_url,
    redacted_source_url,
    replace_api_tables,
    stored_document,
    to_stored_document,
)
from mcpfactory_codegen.servers.generation import (
    CreateError,
    GeneratedServer,
    Notify,
    as_create_errors,
    edited_file_problems,
    from_template,
    generate,
    ignore_notice,
    read_package_version,
    refuse_server_without_tools,
)
from mcpfactory_codegen.servers.manifest_diff import Change, diff
from mcpfactory_codegen.servers.report_file import (
    ORIGIN_CHANGED,
    REPORT,
    credential_origin_changes,
    list_report_variables,
    read_json_object,
    read_published_names,
    read_report,
    reported_operation_key,
)
from mcpfactory_codegen.servers.scaffold import ServerTemplate, find_template, stored_source
from mcpfactory_codegen.servers.server_files import (
    FilePlan,
    FileStep,
    Lockfile,
    LockfileEntry,
    has_conflict_markers,
    merge,
    sha256_hex,
)
from mcpfactory_codegen.servers.template_answers import replace_answers_table, replace_template_setting
from mcpfactory_codegen.settings import CONFIG
from mcpfactory_codegen.text import did_you_mean


@dataclass(frozen=True, slots=True)
class UpdatedServer:
    """Result of an update or a dry run. `changes` has the changes that affect callers of the tools.

    `address` has the API's URLs, as in the report. `moved` is a message about environment variables that the server no
    longer reads, or "". `stored` has the copies of documents that were read, because they have no other source.
    """

    server: str
    path: Path
    tools: int = 0
    operations: int = 0
    files: tuple[FileStep, ...] = ()
    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    skipped: tuple[SkippedOperation, ...] = ()
    address: Mapping[str, Any] = field(default_factory=dict)
    moved: str = ""
    stored: tuple[str, ...] = ()

    @property
    def conflicts(self) -> tuple[str, ...]:
        """Return the paths of files with conflicts."""
        return tuple(file.path for file in self.files if file.action == "conflict")


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
    notify: Notify = ignore_notice,
) -> UpdatedServer:
    """Regenerate the server in `folder` and merge the result with the user's edits.

    `source` is the path or URL of the API document, by default the setting `source` in mcpfactory.toml. If the setting
    `source` is empty, the default is the stored document. `LABEL=PLACE` names one of several documents, or adds a
    document with a new label. `labels` has the labels of the documents to read again, where () means all documents.

    `permit` allows calls to the API at the private host of `source`, because the user gave that URL. `accept_origin`
    permits the server to send its credentials to new hosts. `template` is another template, or another source of the
    same template. `answers` are added to the stored answers. `notify` receives a progress line at the start of each
    step.

    If the update fails, raise a CreateError and change no file. The code `edited` means that the stored document was
    edited and would be replaced. The code `origin` means that the API or its tokens would move to another host. All
    other codes are codes of `create_server`.
    """
    with as_create_errors():
        config = read_config(folder)
        plan = FilePlan(folder)
        chosen, config = _chosen(folder, config, template, answers or {})
        places = _places(config, source, labels)
        added = _added(config, places)
        config = config.model_copy(update={"apis": (*config.apis, *added)})
        documents = _read_documents(folder, config, places, labels)
        config = _take_documents(config, documents, plan, renewed=places)
        fresh = documents.fresh if permit else {}
        named = {label: private_source_url(one.source) for label, one in fresh.items() if label in places}
        built = _built(folder, config, chosen, documents, named, notify=notify)
        if built.machine:
            plan.plan_machine_files(built.machine)
        merged = _merge_persons(config, built, plan)
        before, after = read_report(folder), json.loads(built.machine.get(REPORT, "{}"))
        changes = _changes(folder, config, built, before)
        changes += credential_origin_changes(before, after, [api.label for api in added if api.credentials != "shared"])
        gone = set(list_report_variables(before)) - set(list_report_variables(after)) if after else ()
        if not (dry_run or accept_origin):
            refuse_new_origins(config.name, changes)
        if not dry_run:
            plan.apply(built.template if merged else "")
    return UpdatedServer(
        server=config.name,
        path=folder,
        tools=built.tools,
        operations=built.operations,
        files=plan.sorted_steps,
        changes=changes,
        problems=(*built.problems, *edited_file_problems(plan.sorted_steps)),
        skipped=built.skipped,
        address=built.address,
        stored=tuple(api.document for api in config.apis if not api.source and api.label in documents.stored),
        moved=f"variables that are no longer read: {', '.join(sorted(gone))}" if gone else "",
    )


def _chosen(
    folder: Path, config: ServerConfig, source: str, answers: Mapping[str, Answer]
) -> tuple[ServerTemplate, ServerConfig]:
    template = find_template(source) if source else find_template(config.template, folder)
    kept = stored_source(template, folder) if source else config.template
    chosen = config.with_server(template=kept)
    return template, chosen.model_copy(update={"answers": {**config.answers, **answers}})


def _built(
    folder: Path,
    config: ServerConfig,
    template: ServerTemplate,
    documents: _Documents,
    sources: Mapping[str, str],
    *,
    notify: Notify,
) -> GeneratedServer:
    if not config.document:
        return from_template(config, template)
    every = dict(documents.stored)
    for api in config.apis:
        if api.label in documents.fresh:
            fresh = documents.fresh[api.label]
            every[api.label] = apply_overlays(
                to_stored_document(fresh, collect_document_files(fresh, api.label)),
                load_configured_overlays(folder, api),
            )
    built = generate(
        config,
        every,
        read_published_names(folder),
        read_package_version(folder, config),
        scaffold=template,
        sources=sources,
        notify=notify,
    )
    refuse_server_without_tools(built, config, config.document)
    return built


@dataclass(frozen=True, slots=True)
class _Documents:
    """The API documents by label.

    `fresh` has documents from their sources, and `stored` has documents from the folder.
    """

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
            message = f"{config.name} has no API document {label!r}"
            raise CreateError(message, did_you_mean(label, known, "documents") if any(known) else hint, "source")
    places: dict[str, str] = {}
    for one in parse_api_sources(source):
        if not config.document:
            hint = "leave out --from-openapi, or create a new server: mcpfactory new --from-openapi"
            raise CreateError(f"{config.name} is not generated from an API document", hint, "source")
        label = one.label or (
            next(iter(labels)) if len(labels) == 1 else "" if "" in known or len(known) > 1 else known[0]
        )
        if not one.label and label not in known:
            message = f"the label of the document {one.place} is missing"
            raise CreateError(message, f"--from-openapi LABEL={one.place}; {hint}", "source")
        if label in places:
            raise CreateError(
                f"the document {label!r} was given twice" if label else "the API document was given twice",
                "give one",
                "source",
            )
        places[label] = one.place
    return places


def _read_documents(
    folder: Path, config: ServerConfig, places: Mapping[str, str], labels: Collection[str]
) -> _Documents:
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
    config: ServerConfig, documents: _Documents, plan: FilePlan, *, renewed: Collection[str]
) -> ServerConfig:
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
        layout = collect_document_files(document, api.label)
        _own(layout.files, api, owners)
        for path, content in layout.files.items():
            _take_file(path, content, plan)
        source = redacted_source_url(document.source) if api.label in renewed else api.source
        apis.append(api.model_copy(update={"document": layout.main, "source": source}))
    kept.update(owners)
    for path in [path for path, entry in plan.lock.files.items() if entry.owner == "document" and path not in kept]:
        _drop_file(path, plan)
    return config.model_copy(update={"apis": tuple(apis)})


def _own(paths: Iterable[str], api: ApiConfig, owners: dict[str, str]) -> None:
    for path in paths:
        other = owners.setdefault(path, api.named)
        if other != api.named:
            what = f"{path} would belong to two API documents, {other} and {api.named}"
            raise CreateError(what, "choose a label that is not a folder of the other document", "source")


def _files_of(api: ApiConfig, document: Document) -> list[str]:
    parts = Path(api.document).parts
    below = f"{parts[0]}/" if len(parts) > 1 else ""
    return [below + part for part in document.parts]


def _take_file(path: str, content: bytes, plan: FilePlan) -> None:
    target = server_files.resolve_server_path(plan.folder, path)
    existing = target.read_bytes() if target.is_file() else None
    if existing != content:
        _refuse_edited(target, path, existing, plan.lock)
        plan.changes[path] = content
        plan.steps.append(FileStep(path, "create" if existing is None else "rewrite", "document"))
    plan.entries[path] = LockfileEntry("document", sha256_hex(content))


def _drop_file(path: str, plan: FilePlan) -> None:
    """Plan the removal of a file of a former document, unless the user edited the file."""
    target = server_files.resolve_server_path(plan.folder, path)
    plan.entries.pop(path)
    if not target.is_file():
        return
    if sha256_hex(target.read_bytes()) == plan.lock.files[path].sha256:
        plan.changes[path] = None
        plan.steps.append(FileStep(path, "remove", "document"))
    else:
        note = "no longer part of an API document; kept because it was changed by hand"
        plan.steps.append(FileStep(path, "keep", "document", note=note))


def _refuse_edited(target: Path, path: str, existing: bytes | None, lock: Lockfile) -> None:
    known = lock.files.get(path)
    if existing is None or (known is not None and sha256_hex(existing) == known.sha256):
        return
    what = "was changed by hand" if known else "was not written by mcpfactory"
    hint = f"use --from-openapi {target} to keep your file; to use the other document, move your file away first"
    raise CreateError(f"{target} cannot be replaced by another document: the file {what}", hint, "edited")


def _merge_persons(config: ServerConfig, built: GeneratedServer, plan: FilePlan) -> bool:
    """Plan the person-owned files. Return True if the files contain all changes of the template, even as conflicts."""
    complete = True
    before = {path for path, entry in plan.lock.files.items() if entry.owner == "person"}
    for path in sorted((before | built.person.keys()) - {CONFIG}):
        known = plan.lock.files.get(path)
        base = known.pristine if known is not None and known.owner == "person" else None
        merged = _merged(server_files.resolve_server_path(plan.folder, path), base, built.person.get(path))
        plan.steps.append(FileStep(path, merged.action, "person", note=merged.note))
        complete &= merged.action != "conflict" or merged.content is not None
        if merged.content is not None or merged.action == "remove":
            plan.changes[path] = merged.content
        plan.entries.pop(path, None)
        if merged.base is not None:
            plan.entries[path] = LockfileEntry("person", sha256_hex(merged.base.encode()), merged.base)
    _configure(config, built, plan)
    return complete


def _configure(config: ServerConfig, built: GeneratedServer, plan: FilePlan) -> None:
    ours = server_files.resolve_server_path(plan.folder, CONFIG).read_bytes().decode()
    known = read_config(plan.folder)
    text = replace_api_tables(ours, built.apis)
    if config.template != known.template:
        text = replace_template_setting(text, config.template)
    if config.answers != known.answers:
        text = replace_answers_table(text, config.answers)
    if text != ours:
        plan.changes[CONFIG] = text.encode()
    pristine = built.person[CONFIG]
    plan.entries[CONFIG] = LockfileEntry("person", sha256_hex(pristine.encode()), pristine)
    plan.steps.append(FileStep(CONFIG, "same" if text == ours else "merge", "person"))


@dataclass(frozen=True, slots=True)
class _FileMerge:
    """Result of merging a person-owned file: the `content` to write or None, and the `base` of the next merge."""

    action: server_files.Action
    note: str = ""
    content: bytes | None = None
    base: str | None = None


def _merged(target: Path, base: str | None, theirs: str | None) -> _FileMerge:
    """Merge one file with the previously generated text `base` and the newly generated text `theirs`."""
    if not target.exists() and not target.is_symlink():
        if base is None and theirs is not None:
            return _FileMerge("create", content=theirs.encode(), base=theirs)
        return _FileMerge("deleted", base=base if theirs is not None else None)
    ours = _text(target)
    if base is None:
        if theirs is not None and ours == theirs:
            return _FileMerge("same", base=theirs)
        note = "mcpfactory would generate this file, but did not write the existing one"
        return _FileMerge("collision", note)
    if theirs is None:
        if ours == base:
            return _FileMerge("remove")
        return _FileMerge("keep", "no longer generated by mcpfactory; kept with your changes")
    if ours is None:
        if theirs == base:
            return _FileMerge("keep", base=base)
        return _FileMerge("conflict", "not a text file in UTF-8, or a link: merge the changes by hand", base=base)
    if has_conflict_markers(ours):
        return _FileMerge("conflict", "it still has conflict markers of an earlier update", base=base)
    if ours == theirs:
        return _FileMerge("same", base=theirs)
    if theirs == base:
        return _FileMerge("keep", base=base)
    done = merge(base, ours, theirs)
    if not done.conflicts:
        return _FileMerge("rewrite" if ours == base else "merge", content=done.text.encode(), base=theirs)
    count = "one conflict" if done.conflicts == 1 else f"{done.conflicts} conflicts"
    return _FileMerge(
        "conflict", f"{count} to resolve, between <<<<<<< and >>>>>>>", content=done.text.encode(), base=theirs
    )


def _text(target: Path) -> str | None:
    """Return the text of a UTF-8 file with unchanged line endings, or None for any other file."""
    if target.is_symlink() or not target.is_file():
        return None
    try:
        return target.read_bytes().decode()
    except UnicodeDecodeError:
        return None


def _changes(
    folder: Path, config: ServerConfig, built: GeneratedServer, before: Mapping[str, Any]
) -> tuple[Change, ...]:
    path = f"src/{config.package}/_generated/manifest.json"
    if path not in built.machine:
        return ()
    names = {tool.key: tool.name for tool in built.api_tools}
    old = {
        reported_operation_key(row["operation"]): row["name"] for row in before.get("tools", ()) if row.get("operation")
    }
    renamed = {was: names[key] for key, was in old.items() if key in names}
    return diff(read_json_object(folder / path), json.loads(built.machine[path]), renamed=renamed)


def refuse_new_origins(server: str, changes: Collection[Change]) -> None:
    """Raise a CreateError with the code `origin` if changes would send existing credentials to a new origin."""
    found = [change.message for change in changes if change.code == ORIGIN_CHANGED]
    if found:
        hint = f"if you trust that address: mcpfactory update {server} --accept-origin; --dry-run shows all changes"
        raise CreateError("; ".join(found), hint, "origin")
