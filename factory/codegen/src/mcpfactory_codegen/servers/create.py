"""Creation of a server's directory from a document or a template, and regeneration after changes."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from mcpfactory_codegen.combine import common_title
from mcpfactory_codegen.curation import Selection
from mcpfactory_codegen.ir import Problem
from mcpfactory_codegen.openapi import title_of
from mcpfactory_codegen.read.document import Document, load
from mcpfactory_codegen.read.overlay import apply_overlays, load_overlay
from mcpfactory_codegen.servers.config import Answer, ApiConfig, ServerConfig, ServerTable, read_config
from mcpfactory_codegen.servers.documents import (
    ApiSource,
    Sources,
    choose_labels,
    collect_document_files,
    parse_api_sources,
    private_source_url,
    redacted_source_url,
    stored_documents,
    to_stored_document,
)
from mcpfactory_codegen.servers.generation import (
    FIRST_VERSION,
    CreateError,
    GeneratedServer,
    Notify,
    as_create_errors,
    choose_server_name,
    edited_file_problems,
    from_template,
    generate,
    ignore_notice,
    import_package_name,
    read_package_version,
    refuse_server_without_tools,
)
from mcpfactory_codegen.servers.report_file import PublishedNames, read_published_names
from mcpfactory_codegen.servers.scaffold import find_template, stored_source
from mcpfactory_codegen.servers.server_files import FilePlan
from mcpfactory_codegen.text import snake_case

_OPENAPI: Final = "openapi"


def create_server(
    folder: Path,
    *,
    name: str | None = None,
    source: Sources = None,
    template: str | None = None,
    answers: Mapping[str, Answer] | None = None,
    selection: Selection | None = None,
    overlays: Sequence[str | Path | ApiSource] = (),
    credentials: str = "",
    mode: str = "",
    strict: bool = False,
    permit: bool = False,
    dry_run: bool = False,
    notify: Notify = ignore_notice,
) -> GeneratedServer:
    """Create the server `folder/<name>` from API documents (`source`: path or URL) or from a template.

    `folder` is the directory of servers, which is created if missing. Without `name`, the name comes from the
    document's title or from the template. `source` can contain several API documents, each with an optional label
    (`messaging=twilio.yaml`). `template` is a shipped template's name, a directory, `git+https://…` or
    `package:NAME==VERSION`. For a server with documents, the template supplies only the person-owned files and is
    "openapi" by default. `answers` has answers to the template's questions. Unanswered questions get their defaults.

    `selection` has the operations to include from each document. `overlays` has files with OpenAPI overlays, which are
    stored next to the document and applied on each read. With several documents, the label of a document precedes each
    overlay (`messaging=fixes.yaml`). The value "shared" of `credentials` merges equal security schemes of several
    documents. `mode` sets the mode of the server's tool list ("full" or "search"), where "" means the runtime's
    default.

    `strict` means that any problem of the document prevents the creation. `permit` allows calls to the API at the
    private host of `source`, because the user gave that URL. `notify` receives a progress line at the start of each
    step. Raise a CreateError if nothing was created.
    """
    if source is None and not template:
        raise CreateError("neither a document nor a template was given", "give one of them", "source")
    with as_create_errors():
        found = find_template(template or _OPENAPI)
        wanted = ApiConfig(**dict(selection or Selection()), credentials=credentials)
        taken = _taken(parse_api_sources(source), parse_api_sources(overlays), wanted, notify)
        titles = [title_of(one.document) for one in taken] if taken and not name else [found.name]
        name = choose_server_name(name, name or common_title(titles) or Path(taken[0].document.source).stem)
        table = ServerTable(
            name=name,
            package=import_package_name(name),
            template=stored_source(found, folder / name),
            mode=mode if taken else "",
        )
        config = ServerConfig(server=table, answers=dict(answers or {}), apis=tuple(one.api for one in taken))
        if taken:
            private = {one.api.label: private_source_url(one.api.source) for one in taken} if permit else {}
            documents = {one.api.label: one.document for one in taken}
            new = PublishedNames()
            built = generate(config, documents, new, FIRST_VERSION, scaffold=found, sources=private, notify=notify)
            refuse_server_without_tools(built, config, "the document" if len(taken) == 1 else "the documents")
            files = {path: content for one in taken for path, content in one.files.items()}
            built = replace(built, document=files)
        else:
            built = from_template(config, found)
        if strict and built.problems:
            raise _refused(built.problems)
        target = folder / name
        if target.exists() or target.is_symlink():
            raise CreateError(f"{target} already exists", "choose another name, or remove it", "exists")
        built = replace(built, server=name, path=target)
        notify(f"writing {len(built.files)} files")
        return built if dry_run else _written(built)


def regenerate(folder: Path) -> GeneratedServer:
    """Rewrite the machine-owned files in a server's directory, from its configuration and its API document.

    Published tool names are kept. Edited machine-owned files are reported (`file-edited`) and rewritten. Nothing is
    changed if the server has no document. If the directory cannot be used, raise a CreateError and change nothing.
    """
    with as_create_errors():
        built, plan = _regenerated(folder)
        if built.machine:
            plan.apply()
    problems = (*built.problems, *edited_file_problems(plan.sorted_steps))
    return replace(built, problems=problems, steps=plan.sorted_steps)


def stale_files(folder: Path) -> tuple[str, ...]:
    """Return the files in a server's directory that `regenerate` would change, or raise a CreateError."""
    with as_create_errors():
        _, plan = _regenerated(folder)
    return tuple(step.path for step in plan.sorted_steps if step.action != "same")


def _regenerated(folder: Path) -> tuple[GeneratedServer, FilePlan]:
    config, plan = read_config(folder), FilePlan(folder)
    if not config.document:
        return GeneratedServer(server=config.name, path=folder), plan
    documents = stored_documents(folder, config)
    built = generate(config, documents, read_published_names(folder), read_package_version(folder, config))
    refuse_server_without_tools(built, config, config.document)
    plan.plan_machine_files(built.machine)
    return replace(built, server=config.name, path=folder), plan


@dataclass(frozen=True, slots=True)
class _NewDocument:
    api: ApiConfig
    document: Document
    files: dict[str, bytes]


def _refused(problems: Sequence[Problem]) -> CreateError:
    first = problems[0]
    message = f"the document has {len(problems)} problems, which strict mode refuses; the first: {first.message}"
    message += f" (at {first.pointer})" if first.pointer else ""
    return CreateError(message, first.hint or "correct the document, or leave out strict", "strict")


def _taken(
    sources: Sequence[ApiSource], overlays: Sequence[ApiSource], wanted: ApiConfig, notify: Notify
) -> list[_NewDocument]:
    loaded = []
    for one in sources:
        notify(f"reading {redacted_source_url(one.place) or one.place}")
        loaded.append(load(one.place))
    titles = [title_of(document) for document in loaded]
    labels = (
        choose_labels(list(zip(sources, titles, strict=True))) if len(sources) > 1 else [one.label for one in sources]
    )
    for label in labels:
        if labels.count(label) > 1:
            message = f"two documents have the label {label!r}"
            raise CreateError(message, "give each a different label: LABEL=FILE", "source")
    paths = _overlays_by_label(overlays, labels)
    return [_take(document, label, paths[label], wanted) for document, label in zip(loaded, labels, strict=True)]


def _take(loaded: Document, label: str, overlays: Sequence[Path], wanted: ApiConfig) -> _NewDocument:
    paths = _overlay_paths(overlays, label)
    read = {target: load_overlay(path, target) for target, path in paths.items()}
    layout = collect_document_files(loaded, label)
    document = apply_overlays(to_stored_document(loaded, layout), tuple(read.values()))
    api = wanted.model_copy(
        update={
            "label": label,
            "document": layout.main,
            "source": redacted_source_url(document.source),
            "overlays": tuple(paths),
            "credentials": wanted.credentials if label else "",
        }
    )
    return _NewDocument(api, document, {**layout.files, **{target: one.part.raw for target, one in read.items()}})


def _overlays_by_label(overlays: Sequence[ApiSource], labels: Sequence[str]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {label: [] for label in labels}
    for one in overlays:
        label = one.label if one.label in found or len(labels) > 1 else labels[0]
        if label not in found:
            hint = f"--overlay LABEL=FILE; labels: {', '.join(labels)}"
            raise CreateError(f"the overlay {one.place} is not assigned to a document", hint, "source")
        found[label].append(Path(one.place))
    return found


def _overlay_paths(overlays: Sequence[Path], label: str) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    folder = f"api/{label}/overlays" if label else "api/overlays"
    for path in overlays:
        stem, number = f"{snake_case(path.stem) or 'overlay'}", 1
        while (target := f"{folder}/{stem}{'' if number == 1 else f'-{number}'}{path.suffix.lower()}") in paths:
            number += 1
        paths[target] = path
    return paths


def _written(built: GeneratedServer) -> GeneratedServer:
    """Write to a temporary directory, then move the directory, so that the target is complete or absent."""
    target = built.path
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        beside.chmod(0o755)  # mkdtemp uses 0o700
        plan = FilePlan(beside)
        for path, raw in built.document.items():
            plan.put(path, raw, "document")
        for path, text in built.person.items():
            plan.put(path, text, "person")
        plan.plan_machine_files(built.machine)
        plan.apply(built.template)
        beside.rename(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return replace(built, steps=plan.sorted_steps)
