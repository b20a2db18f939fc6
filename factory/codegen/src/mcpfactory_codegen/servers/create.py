"""The whole way from a document or a template to a server's folder, and again when something changed.

`create_server` makes a new folder: built beside its place and moved there whole, so that a failure leaves nothing.
`regenerate` rewrites what the machine owns in an existing one.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from mcpfactory_codegen.describe.suggest import Group
from mcpfactory_codegen.ir import Problem, Skipped
from mcpfactory_codegen.read.document import load
from mcpfactory_codegen.read.overlay import apply_overlays, load_overlay
from mcpfactory_codegen.select import Selection
from mcpfactory_codegen.servers import tree
from mcpfactory_codegen.servers.build import (
    FIRST_VERSION,
    BuiltServer,
    Notify,
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
    stored_document,
)
from mcpfactory_codegen.servers.config import ServerConfig, read_config
from mcpfactory_codegen.servers.errors import CreateError, as_create_errors
from mcpfactory_codegen.servers.layout import as_kept, document_files
from mcpfactory_codegen.servers.report import published_names
from mcpfactory_codegen.source import title_of
from mcpfactory_codegen.text import snake

__all__ = ["CreateError", "Created", "create_server", "regenerate"]

_OPENAPI: Final = "openapi"


@dataclass(frozen=True, slots=True)
class Created:
    """What was made. `operations` counts those of the document; `files` are the paths of the server's folder.

    `steps` says what happened to each file; empty for a dry run. `groups` are suggested when the tools are too much for a list.
    `address` says where the API lives, as in the report; empty for servers that are not made from a document. `recognised` says in words what kind of document it was.
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

    def to_json(self, *, dry_run: bool = False) -> dict[str, Any]:
        """Plain data for programs; after a dry run with the files that would be made."""
        fields = ("level", "code", "pointer", "line", "message", "hint")
        return {
            "server": self.server,
            "path": str(self.path),
            "tools": self.tools,
            "operations": self.operations,
            "tokens": self.tokens,
            "groups": [asdict(group) for group in self.groups],
            "address": dict(self.address),
            "recognised": self.recognised,
            "problems": [{field: getattr(problem, field) for field in fields} for problem in self.problems],
            **({"files": sorted(self.files), "dry_run": True} if dry_run else {}),
        }


def create_server(
    folder: Path,
    *,
    name: str | None = None,
    source: str | Path | None = None,
    template: str | None = None,
    selection: Selection | None = None,
    overlays: Sequence[str | Path] = (),
    mode: str = "",
    strict: bool = False,
    permit: bool = False,
    dry_run: bool = False,
    notify: Notify = no_notice,
) -> Created:
    """Make the server `folder/<name>` from an API document (`source`: path or URL) or from a template.

    Args:
        folder: where servers live, such as `servers/`; made if it is not there.
        name: `[a-z][a-z0-9-]*`; None takes the document's title, or the template's name.
        source: an API document; `template` is then the one for its person-owned files ("openapi" by default).
        template: a shipped template's name, or the path of a template's folder.
        selection: which operations; the others are reported as skipped.
        overlays: files with OpenAPI overlays; they are kept beside the document and applied each time it is read.
        mode: how the server offers its tools, "full" or "search"; "" the runtime's default.
        strict: make nothing when the document has any problem.
        permit: a person named `source`, so that the API may be called there although the address is private.
        dry_run: do everything but write.
        notify: takes a line for a person whenever a step begins.

    Raises:
        CreateError: nothing was made.
    """
    if source is None and not template:
        raise CreateError("neither a document nor a template was given", "give one of them", "source")
    with as_create_errors():
        if source is not None:
            request = _Request(template or _OPENAPI, selection or Selection(), tuple(map(Path, overlays)), mode)
            name, built = _from_document(name, source, request, strict=strict, permit=permit, notify=notify)
        else:
            name = server_name(name, Path(template or "").name)
            built = from_template(ServerConfig(name=name, package=package_of(name), template=template or ""))
        target = folder / name
        if target.exists() or target.is_symlink():
            raise CreateError(f"{target} exists already", "choose another name with --name, or remove it", "exists")
        notify(f"writing {len(built.paths)} files")
        steps = () if dry_run else _write_new(target, built)
    return _created(name, target, built, steps)


def regenerate(folder: Path) -> Created:
    """Rewrite what the machine owns in a server's folder, from its configuration and its API document.

    Names of tools that were made before are kept. Files that somebody edited although the machine owns them are
    reported (`file-tampered`) and rewritten. A server that is not made from a document is left as it is.

    Raises:
        CreateError: the folder cannot be used; nothing was changed.
    """
    with as_create_errors():
        config = read_config(folder)
        if not config.document:
            return Created(config.name, folder)
        document = stored_document(folder, config)
        pinned = {**published_names(folder), **config.names}
        built = generate(config, document, pinned, stated_version(folder, config))
        refuse_empty(built, config, config.document)
        steps = tree.write(folder, built.machine, owner="machine")
    tampered = tuple(file_tampered(step) for step in steps if step.tampered)
    return _created(config.name, folder, replace(built, problems=built.problems + tampered), steps)


def _created(name: str, target: Path, built: BuiltServer, steps: tuple[tree.FileStep, ...]) -> Created:
    return Created(
        server=name,
        path=target,
        tools=len(built.tools),
        operations=built.operations,
        problems=built.problems,
        files=built.paths,
        skipped=built.skipped,
        tokens=sum(tool.tokens for tool in built.tools),
        groups=built.groups,
        steps=steps,
        address=built.address,
        recognised=built.recognised,
    )


# --- from a document ---


@dataclass(frozen=True, slots=True)
class _Request:
    """What was asked for besides the document."""

    template: str
    selection: Selection
    overlays: tuple[Path, ...]
    mode: str


def _from_document(
    name: str | None, source: str | Path, request: _Request, *, strict: bool, permit: bool, notify: Notify
) -> tuple[str, BuiltServer]:
    notify(f"reading {public_source(str(source)) or source}")
    loaded = load(str(source))
    paths = _overlay_paths(request.overlays)
    overlays = {target: load_overlay(path, target) for target, path in paths.items()}
    layout = document_files(loaded)
    document = apply_overlays(as_kept(loaded, layout), tuple(overlays.values()))
    selection = request.selection
    name = server_name(name, name or title_of(document) or Path(str(source)).stem)
    config = ServerConfig(
        name=name,
        package=package_of(name),
        template=request.template,
        mode=request.mode,
        document=layout.main,
        source=public_source(document.source),
        include_tags=tuple(selection.include_tags),
        include_paths=tuple(selection.include_paths),
        include_operations=tuple(selection.include_operations),
        include_methods=tuple(selection.include_methods),
        overlays=tuple(paths),
    )
    source = private_source(config.source) if permit else ""
    built = generate(config, document, {}, FIRST_VERSION, scaffold=True, source=source, notify=notify)
    refuse_empty(built, config, "the document")
    if strict and built.problems:
        first = built.problems[0]
        raise CreateError(
            f"the document has {len(built.problems)} problems, and --strict allows none; the first: {first.message}"
            + (f" (at {first.pointer})" if first.pointer else ""),
            first.hint or "correct the document, or leave out --strict",
            "strict",
        )
    return name, replace(built, document={**layout.files, **{target: one.part.raw for target, one in overlays.items()}})


def _overlay_paths(overlays: Sequence[Path]) -> dict[str, Path]:
    """Where overlays go in the server's folder: below api/overlays/, under names of their own."""
    paths: dict[str, Path] = {}
    for path in overlays:
        stem, number = f"{snake(path.stem) or 'overlay'}", 1
        while (target := f"api/overlays/{stem}{'' if number == 1 else f'-{number}'}{path.suffix.lower()}") in paths:
            number += 1
        paths[target] = path
    return paths


# --- writing ---


def _write_new(target: Path, built: BuiltServer) -> tuple[tree.FileStep, ...]:
    """Build beside the place, then move: the folder is there whole or not at all."""
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
