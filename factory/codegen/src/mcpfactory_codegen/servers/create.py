"""Creation of a server's directory from a document or a template, and regeneration after changes.

`create_server` builds a new directory in a temporary place and moves it as a whole, so that a failure leaves nothing.
`regenerate` rewrites the machine-owned files of an existing one.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from mcpfactory_codegen.combine import common_title
from mcpfactory_codegen.describe.curate import Group
from mcpfactory_codegen.ir import Problem, Skipped
from mcpfactory_codegen.openapi import title_of
from mcpfactory_codegen.read.document import Document, load
from mcpfactory_codegen.read.overlay import apply_overlays, load_overlay
from mcpfactory_codegen.select import Selection
from mcpfactory_codegen.servers import tree
from mcpfactory_codegen.servers.answers import Answer
from mcpfactory_codegen.servers.build import (
    FIRST_VERSION,
    BuiltServer,
    CreateError,
    Notify,
    as_create_errors,
    file_tampered,
    from_template,
    generate,
    no_notice,
    package_of,
    private_source,
    public_source,
    refuse_empty,
    server_name,
    stated_version,
    stored_documents,
)
from mcpfactory_codegen.servers.config import ServerConfig, read_config
from mcpfactory_codegen.servers.documents import (
    ApiConfig,
    ApiSource,
    Sources,
    as_kept,
    choose_labels,
    document_files,
    sources_of,
)
from mcpfactory_codegen.servers.overview import Overview
from mcpfactory_codegen.servers.report import Published, published
from mcpfactory_codegen.servers.scaffold import ServerTemplate, find_template, kept_source
from mcpfactory_codegen.text import snake

_OPENAPI: Final = "openapi"


@dataclass(frozen=True, slots=True)
class Created:
    """Result of a creation.

    `operations` counts those of the document; `files` are the paths in the server's directory. `steps` has the action
    for each file; empty for a dry run. `groups` are suggested if there are too many tools for a list. `address` has
    the API's URLs, as in the report; empty for servers without a document. `recognised` describes the kind of the
    document. `alike` are equal security schemes of several documents that have separate credentials.
    """

    server: str
    path: Path
    tools: int = 0
    operations: int = 0
    problems: tuple[Problem, ...] = ()
    files: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    tokens: int = 0
    groups: tuple[Group, ...] = ()
    steps: tuple[tree.FileStep, ...] = ()
    address: Mapping[str, Any] = field(default_factory=dict)
    recognised: str = ""
    alike: tuple[str, ...] = ()
    overview: Overview | None = None


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
    notify: Notify = no_notice,
) -> Created:
    """Create the server `folder/<name>` from API documents (`source`: path or URL) or from a template.

    Args:
        folder: the directory of servers, such as `servers/`; created if missing.
        name: `[a-z][a-z0-9-]*`; None takes the document's title, or the template's name.
        source: an API document, or several, each with an optional label: `messaging=twilio.yaml`. `template` then
            supplies only the person-owned files ("openapi" by default).
        template: a shipped template's name, the path of a template's directory, `git+https://…` or
            `package:NAME==VERSION`.
        answers: to questions of the template; the others take their defaults.
        selection: the operations to include, of each document; the others are reported as skipped.
        overlays: files with OpenAPI overlays; they are stored next to the document and applied on each read. With
            several documents, each starts with the label of its document: `messaging=fixes.yaml`.
        credentials: "shared" to merge equal security schemes of several documents.
        mode: the mode in which the server offers its tools, "full" or "search"; "" for the runtime's default.
        strict: create nothing if the document has any problem.
        permit: the user gave `source`, so that the API can be called there although the address is private.
        dry_run: do everything but write.
        notify: receives a progress line at the start of each step.

    Raises:
        CreateError: nothing was created.
    """
    if source is None and not template:
        raise CreateError("neither a document nor a template was given", "give one of them", "source")
    with as_create_errors():
        found = find_template(template or _OPENAPI)
        given = dict(answers or {})
        if source is not None:
            request = _Request(found, folder, selection or Selection(), sources_of(overlays), mode, credentials, given)
            name, built = _from_documents(name, source, request, strict=strict, permit=permit, notify=notify)
        else:
            name = server_name(name, found.name)
            kept = kept_source(found, folder / name)
            config = ServerConfig(name=name, package=package_of(name), template=kept, answers=given)
            built = from_template(config, found)
        target = folder / name
        if target.exists() or target.is_symlink():
            raise CreateError(f"{target} already exists", "choose another name, or remove it", "exists")
        notify(f"writing {len(built.paths)} files")
        steps = () if dry_run else _write_new(target, built)
    return _created(name, target, built, steps)


def regenerate(folder: Path) -> Created:
    """Rewrite the machine-owned files in a server's directory, from its configuration and its API document.

    Published tool names are kept. Machine-owned files that were edited are reported (`file-tampered`) and rewritten.
    A server without a document is left unchanged.

    Raises:
        CreateError: the directory cannot be used; nothing was changed.
    """
    with as_create_errors():
        config = read_config(folder)
        if not config.document:
            return Created(config.name, folder)
        documents = stored_documents(folder, config)
        built = generate(config, documents, published(folder), stated_version(folder, config))
        refuse_empty(built, config, config.document)
        steps = tree.write(folder, built.machine, owner="machine")
    tampered = tuple(file_tampered(step) for step in steps if step.tampered)
    return _created(config.name, folder, replace(built, problems=built.problems + tampered), steps)


def _created(name: str, target: Path, built: BuiltServer, steps: tuple[tree.FileStep, ...]) -> Created:
    return Created(
        server=name,
        path=target,
        problems=built.problems,
        files=built.paths,
        tokens=sum(tool.tokens for tool in built.tools),
        groups=built.groups,
        steps=steps,
        recognised=built.recognised,
        alike=built.alike,
        overview=built.overview,
        **built.facts,
    )


# --- from a document ---


@dataclass(frozen=True, slots=True)
class _Request:
    """Options of a creation request other than the document."""

    template: ServerTemplate
    folder: Path
    selection: Selection
    overlays: tuple[ApiSource, ...]
    mode: str
    credentials: str
    answers: Mapping[str, Answer]


@dataclass(frozen=True, slots=True)
class _Taken:
    """A document of a new server: its configuration entry, the document as stored, and the files to write."""

    api: ApiConfig
    document: Document
    files: dict[str, bytes]


def _from_documents(
    name: str | None, source: Sources, request: _Request, *, strict: bool, permit: bool, notify: Notify
) -> tuple[str, BuiltServer]:
    taken = _taken(sources_of(source), request, notify)
    first = taken[0]
    titles = [] if name else [title_of(one.document) for one in taken]
    name = server_name(name, name or common_title(titles) or Path(first.document.source).stem)
    config = ServerConfig(
        name=name,
        package=package_of(name),
        template=kept_source(request.template, request.folder / name),
        answers=request.answers,
        mode=request.mode,
        apis=tuple(one.api for one in taken),
    )
    documents = {one.api.label: one.document for one in taken}
    private = {one.api.label: private_source(one.api.source) for one in taken} if permit else {}
    built = generate(
        config, documents, Published(), FIRST_VERSION, scaffold=request.template, sources=private, notify=notify
    )
    refuse_empty(built, config, "the document" if len(taken) == 1 else "the documents")
    if strict and built.problems:
        problem = built.problems[0]
        raise CreateError(
            (
                f"the document has {len(built.problems)} problems, and strict mode accepts none; the first: "
                f"{problem.message}"
            )
            + (f" (at {problem.pointer})" if problem.pointer else ""),
            problem.hint or "correct the document, or leave out strict",
            "strict",
        )
    return name, replace(built, document={path: content for one in taken for path, content in one.files.items()})


def _taken(sources: Sequence[ApiSource], request: _Request, notify: Notify) -> list[_Taken]:
    loaded = []
    for one in sources:
        notify(f"reading {public_source(one.place) or one.place}")
        loaded.append(load(one.place))
    several = len(sources) > 1
    titles = [title_of(document) for document in loaded]
    labels = choose_labels(list(zip(sources, titles, strict=True))) if several else (sources[0].label,)
    for label in labels:
        if labels.count(label) > 1:
            raise CreateError(
                f"two documents have the label {label!r}", "give each a different label: LABEL=FILE", "source"
            )
    overlays = _overlays_by_label(request.overlays, labels)
    return [_take(document, label, overlays[label], request) for document, label in zip(loaded, labels, strict=True)]


def _take(loaded: Document, label: str, overlays: Sequence[Path], request: _Request) -> _Taken:
    paths = _overlay_paths(overlays, label)
    read = {target: load_overlay(path, target) for target, path in paths.items()}
    layout = document_files(loaded, label)
    document = apply_overlays(as_kept(loaded, layout), tuple(read.values()))
    api = ApiConfig(
        label=label,
        document=layout.main,
        source=public_source(document.source),
        selection=request.selection,
        overlays=tuple(paths),
        credentials=request.credentials if label else "",
    )
    return _Taken(api, document, {**layout.files, **{target: one.part.raw for target, one in read.items()}})


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
    """Return the server's overlay paths: uniquely named, below `overlays/` next to the document."""
    paths: dict[str, Path] = {}
    folder = f"api/{label}/overlays" if label else "api/overlays"
    for path in overlays:
        stem, number = f"{snake(path.stem) or 'overlay'}", 1
        while (target := f"{folder}/{stem}{'' if number == 1 else f'-{number}'}{path.suffix.lower()}") in paths:
            number += 1
        paths[target] = path
    return paths


# --- writing ---


def _write_new(target: Path, built: BuiltServer) -> tuple[tree.FileStep, ...]:
    """Build in a temporary directory, then move it: the target is complete or absent."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        beside.chmod(0o755)  # mkdtemp makes it private
        steps = tree.write(beside, built.document, owner="document")
        steps += tree.write(beside, built.person, owner="person", template=built.template)
        steps += tree.write(beside, built.machine, owner="machine")
        beside.rename(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return steps
