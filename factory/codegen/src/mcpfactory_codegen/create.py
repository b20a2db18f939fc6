"""The whole way from a document or a template to a server's folder, and again when something changed.

`create_server` makes a new folder: built beside its place and moved there whole, so that a failure leaves nothing.
`regenerate` rewrites what the machine owns in an existing one.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp

from . import tree
from .config import CONFIG, NAME, ConfigError, ServerConfig, read_config, render_config
from .document import Document, DocumentError, load
from .emit import Options, emit
from .ir import Api, Problem, Skipped
from .layout import document_files
from .lock import LockError
from .naming import Names, name_api
from .openapi import read_api
from .prose import clean
from .readme import template_data
from .report import REPORT, published_names, render_report, report
from .scaffold import ScaffoldError, render
from .select import Selection, select
from .style import FormatError, formatted
from .tools import Tool, describe_all
from .words import snake

__all__ = ["CreateError", "Created", "create_server", "regenerate"]

_OPENAPI = "openapi"
_VERSION = re.compile(r"^__version__ = [\"']([^\"']{1,64})[\"']", re.M)
_FIRST_VERSION = "0.1.0"
_LONGEST_NAME = 40


class CreateError(Exception):
    """No server was made. `args[0]` says what is wrong and where; `hint` what to do.

    Codes: `exists`, `name`, `source`, `document`, `strict`, `template`, `config`, `damaged`, `write`, `internal`.
    """

    def __init__(self, message: str, hint: str, code: str) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code


@dataclass(frozen=True, slots=True)
class Created:
    """What was made. `operations` counts those of the document; `files` are the paths of the server's folder.

    `steps` says what happened to each file; empty for a dry run.
    """

    server: str
    path: Path
    tools: int = 0
    operations: int = 0
    problems: tuple[Problem, ...] = ()
    files: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    tokens: int = 0
    steps: tuple[tree.Step, ...] = ()


@dataclass(frozen=True, slots=True)
class _Made:
    """A server in memory: its files by owner."""

    machine: dict[str, str] = field(default_factory=dict)
    person: dict[str, str] = field(default_factory=dict)
    document: dict[str, bytes] = field(default_factory=dict)
    tools: tuple[Tool, ...] = ()
    operations: int = 0
    problems: tuple[Problem, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(sorted({**self.machine, **self.person, **self.document}))


def create_server(
    folder: Path,
    *,
    name: str | None = None,
    source: str | Path | None = None,
    template: str | None = None,
    selection: Selection | None = None,
    strict: bool = False,
    dry_run: bool = False,
) -> Created:
    """Make the server `folder/<name>` from an API document (`source`: path or URL) or from a template.

    Args:
        folder: where servers live, such as `servers/`; made if it is not there.
        name: `[a-z][a-z0-9-]*`; None takes the document's title, or the template's name.
        source: an API document; `template` is then the one for its person-owned files ("openapi" by default).
        template: a shipped template's name, or the path of a template's folder.
        selection: which operations; the others are reported as skipped.
        strict: make nothing when the document has any problem.
        dry_run: do everything but write.

    Raises:
        CreateError: nothing was made.
    """
    if source is None and not template:
        raise CreateError("neither a document nor a template was given", "give one of them", "source")
    with _told():
        if source is not None:
            name, made = _from_document(name, source, template or _OPENAPI, selection or Selection(), strict)
        else:
            name, made = _from_template(name, template or "")
        place = folder / name
        if place.exists() or place.is_symlink():
            raise CreateError(f"{place} exists already", "choose another name with --name, or remove it", "exists")
        steps = () if dry_run else _write_new(place, made)
    return _created(name, place, made, steps)


def regenerate(folder: Path) -> Created:
    """Rewrite what the machine owns in a server's folder, from its configuration and its API document.

    Names of tools that were made before are kept. Files that somebody edited although the machine owns them are
    reported (`file-tampered`) and rewritten. A server that is not made from a document is left as it is.

    Raises:
        CreateError: the folder cannot be used; nothing was changed.
    """
    with _told():
        config = read_config(folder)
        if not config.document:
            return Created(config.name, folder)
        document = _stored(folder, config)
        selection = Selection(config.include_tags, config.include_paths, config.include_operations)
        pinned = {**published_names(folder), **config.names}
        made = _generate(config, document, selection, pinned, _version(folder, config))
        steps = tree.write(folder, made.machine, owner="machine")
    tampered = tuple(_tampered(step) for step in steps if step.tampered)
    return _created(config.name, folder, replace(made, problems=made.problems + tampered), steps)


def _stored(folder: Path, config: ServerConfig) -> Document:
    """The API document in a server's folder; it may refer to other files below its first folder (`api/`)."""
    path = folder / config.document
    root = folder / Path(config.document).parts[0] if len(Path(config.document).parts) > 1 else folder
    if not path.resolve().is_relative_to(folder.resolve()):
        hint = "copy it to api/ and name it there"
        raise ConfigError(f"{folder / CONFIG}: the document {config.document!r} is not in the server's folder", hint)
    return load(str(path), root=root)


def _created(name: str, place: Path, made: _Made, steps: tuple[tree.Step, ...]) -> Created:
    return Created(
        server=name,
        path=place,
        tools=len(made.tools),
        operations=made.operations,
        problems=made.problems,
        files=made.paths,
        skipped=made.skipped,
        tokens=sum(tool.tokens for tool in made.tools),
        steps=steps,
    )


def _tampered(step: tree.Step) -> Problem:
    what = "removed" if step.action == "remove" else "rewritten"
    return Problem(
        "warning",
        "file-tampered",
        "",
        f"{step.path} belongs to the machine, was changed by hand, and was {what}",
        "put changes into server.py; what was there is in version control",
    )


# --- from a document ---


def _from_document(
    name: str | None, source: str | Path, template: str, selection: Selection, strict: bool
) -> tuple[str, _Made]:
    document = load(str(source))
    title = str(document.data.get("info", {}).get("title", "")) if isinstance(document.data.get("info"), dict) else ""
    name = _name(name, title or Path(str(source)).stem)
    layout = document_files(document)
    config = ServerConfig(
        name=name,
        package=_package(name),
        template=template,
        document=layout.main,
        source=_public(document.source),
        include_tags=tuple(selection.include_tags),
        include_paths=tuple(selection.include_paths),
        include_operations=tuple(selection.include_operations),
    )
    made = _generate(config, document, selection, {}, _FIRST_VERSION, scaffold=True)
    if strict and made.problems:
        first = made.problems[0]
        raise CreateError(
            f"the document has {len(made.problems)} problems, and --strict allows none; the first: {first.message}"
            + (f" (at {first.pointer})" if first.pointer else ""),
            first.hint or "correct the document, or leave out --strict",
            "strict",
        )
    return name, replace(made, document=layout.files)


def _generate(
    config: ServerConfig,
    document: Document,
    selection: Selection,
    pinned: Mapping[str, str],
    version: str,
    *,
    scaffold: bool = False,
) -> _Made:
    """Everything that follows from the document; with `scaffold` the person's files, too."""
    read = read_api(document)
    api = select(read, selection)
    names = name_api(api, server=config.name, pinned=pinned)
    described = describe_all(api, names)
    skipped = (*api.skipped, *described.skipped)
    problems = (*api.problems, *described.problems)
    machine = emit(api, names, described.tools, Options(config.name, config.package, version))
    person = _person(config, api, names, described.tools) if scaffold else {}
    done = formatted({**machine, **person})
    machine = {path: done[path] for path in machine}
    machine[REPORT] = render_report(report(api, names, described.tools, skipped, problems))
    return _Made(
        machine=machine,
        person={path: done[path] for path in person},
        tools=described.tools,
        operations=len(read.operations) + len(read.skipped),
        problems=problems,
        skipped=skipped,
    )


def _person(config: ServerConfig, api: Api, names: Names, tools: tuple[Tool, ...]) -> dict[str, str]:
    files = render(config.template, template_data(config, api, names, tools))
    return {**files, CONFIG: render_config(config)}


def _version(folder: Path, config: ServerConfig) -> str:
    """The version that the person's package states."""
    init = folder / "src" / config.package / "__init__.py"
    found = _VERSION.search(init.read_text("utf-8")) if init.is_file() else None
    return found[1] if found else _FIRST_VERSION


def _public(source: str) -> str:
    """Where the document came from, if that means something elsewhere: a URL without credentials and query."""
    if not re.match(r"https?://", source):
        return ""
    return re.sub(r"^(https?://)[^/@]*@", r"\1", source).partition("?")[0].partition("#")[0]


# --- from a template alone ---


def _from_template(name: str | None, template: str) -> tuple[str, _Made]:
    name = _name(name, Path(template).name)
    package = _package(name)
    title = name.replace("-", " ").capitalize()
    data = {"name": name, "package": package, "distribution": _distribution(name), "title": title}
    config = ServerConfig(name=name, package=package, template=template)
    files = {**render(template, data), CONFIG: render_config(config)}
    return name, _Made(person=formatted(files))


# --- names ---


def _name(name: str | None, text: str) -> str:
    if name is None:
        made = snake(clean(text)).replace("_", "-").lstrip("-0123456789")[:_LONGEST_NAME].strip("-")
        return made.removesuffix("-api") or "api"
    if not NAME.match(name) or len(name) > _LONGEST_NAME:
        hint = f"a name is [a-z][a-z0-9-]*, at most {_LONGEST_NAME} characters"
        raise CreateError(f"{name!r} cannot be the name of a server", hint, "name")
    return name


def _package(name: str) -> str:
    return name.removesuffix("-mcp").replace("-", "_") + "_mcp"


def _distribution(name: str) -> str:
    return name.removesuffix("-mcp") + "-mcp"


# --- writing ---


def _write_new(place: Path, made: _Made) -> tuple[tree.Step, ...]:
    """Build beside the place, then move: the folder is there whole or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        beside.chmod(0o755)  # mkdtemp makes it private
        steps = tree.write(beside, made.document, owner="document")
        steps += tree.write(beside, made.person, owner="person")
        steps += tree.write(beside, made.machine, owner="machine")
        beside.rename(place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return steps


class _told:  # noqa: N801 - reads as a statement: with _told(): …
    """Turns the errors of the parts into `CreateError`, the one that callers handle."""

    _CODES: tuple[tuple[type[Exception], str], ...] = (
        (DocumentError, "document"),
        (ScaffoldError, "template"),
        (ConfigError, "config"),
        (LockError, "damaged"),
        (tree.TreeError, "write"),
        (FormatError, "internal"),
        (OSError, "write"),
    )

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for known, code in self._CODES:
            if isinstance(error, known):
                hint = getattr(error, "hint", "") or _HINTS.get(code, "")
                raise CreateError(str(error), hint, code) from error


_HINTS = {
    "write": "check that the folder can be written and the disk has room",
    "internal": "this is a fault of mcpfactory; please report it with the document",
}
