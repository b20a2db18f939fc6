"""Rendering of templates.

A template is a folder with `copier.yml` and `template/`. Copier renders a template into a temporary folder with
`unsafe=False`, which refuses tasks and extensions. Only shipped templates are rendered in this process. All other
templates are copied first and rendered in a process with limits.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from mcpfactory_codegen.servers.server_files import sha256_hex
from mcpfactory_codegen.servers.templates import (
    MAX_BYTES,
    SETTINGS,
    FetchedTemplate,
    TemplateSource,
    TemplateSourceError,
    UnknownTemplateError,
    fetch_template,
    parse_source,
)
from mcpfactory_codegen.text import closest_match

_SHIPPED: Final = Path(__file__).parents[1] / "_templates"
_ELSEWHERE: Final = "folder:"  # prefix of the name of a template outside the workspace
_LITTER: Final = re.compile(r"\.git|\.venv|__pycache__|\.\w+_cache|\.DS_Store|.*\.py[co]")


@dataclass(frozen=True, slots=True)
class ServerTemplate:
    """A template. `about` is the first comment line of `copier.yml`.

    `source` is the template source that the user gave. `origin` identifies a fetched version, such as `commit 1f2e…` or
    `our-templates 1.2`. `origin` is "" for local templates.
    """

    name: str
    folder: Path
    about: str
    source: str = ""
    origin: str = ""

    @property
    def shipped(self) -> bool:
        """Return True if the template is part of mcpfactory."""
        return self.folder.parent == _SHIPPED

    @property
    def version(self) -> str:
        """Return `sha256:…` of the template's files and paths."""
        return _version(self.folder)

    @property
    def requires_api_document(self) -> bool:
        """Return True if the template has the question `document`, and therefore requires an API document."""
        return re.search(r"^document:", (self.folder / SETTINGS).read_text("utf-8"), re.M) is not None


def templates() -> tuple[ServerTemplate, ...]:
    """Return the shipped templates, sorted by name."""
    folders = sorted(path.parent for path in _SHIPPED.glob(f"*/{SETTINGS}"))
    return tuple(ServerTemplate(folder.name, folder, _about(folder), folder.name) for folder in folders)


def _about(folder: Path) -> str:
    first = (folder / SETTINGS).read_text("utf-8").partition("\n")[0]
    return first.removeprefix("#").strip() if first.startswith("#") else ""


def find_template(source: str, beside: Path | None = None) -> ServerTemplate:
    """Return a shipped template by name, or any other template by source.

    `beside` is the server's directory, against which stored paths are resolved. For a source that the user gave,
    `beside` is None. Raise an UnknownTemplateError for a missing template, and a TemplateSourceError if fetching fails.
    """
    parsed = parse_source(source)
    if parsed.is_remote:
        fetched = _fetched(parsed)
        name = Path(parsed.subfolder or parsed.place.partition("==")[0]).name.removesuffix(".git")
        return ServerTemplate(name, fetched.folder, _about(fetched.folder), source, fetched.origin)
    shipped = {template.name: template for template in templates()}
    if source in shipped:
        return shipped[source]
    for place in (*((beside / source,) if beside else ()), Path(source)):
        if (place / SETTINGS).is_file():
            folder = place.resolve()
            return ServerTemplate(folder.name, folder, _about(folder), source)
    if source.startswith(_ELSEWHERE):
        name = source.removeprefix(_ELSEWHERE)
        message = f"the template {name} is outside the workspace, and its folder is not stored"
        raise UnknownTemplateError(message, "give its folder: mcpfactory update NAME --template FOLDER")
    known, close = ", ".join(shipped), closest_match(source, shipped)
    guess = f"did you mean {close!r}? " if close else ""
    hint = f"{guess}use one of {known}, a folder with a {SETTINGS}, git+https://… or package:NAME==VERSION"
    raise UnknownTemplateError(f"unknown template {source!r}", hint)


def stored_source(template: ServerTemplate, server: Path) -> str:
    """Return the template source for a server's configuration.

    A directory in the workspace is stored by its path relative to the server's directory, and any other directory only
    by name.
    """
    if template.shipped or parse_source(template.source).is_remote:
        return template.source
    if template.folder.is_relative_to(server.parent.parent.resolve()):
        return Path(os.path.relpath(template.folder, server.resolve())).as_posix()
    return f"{_ELSEWHERE}{template.name}"


@cache
def _fetched(source: TemplateSource) -> FetchedTemplate:
    place = TemporaryDirectory(prefix="mcpfactory-fetched-")
    atexit.register(place.cleanup)
    return fetch_template(source, Path(place.name))


def template_version(name: str, server: Path) -> str:
    """Return `sha256:…` of the files and paths of a template, by its name in a server's configuration.

    Fetched templates, and templates outside the workspace, have the version "".
    """
    if not name or parse_source(name).is_remote:
        return ""
    shipped = _SHIPPED / name
    # an absolute path would replace `_SHIPPED`, so that only a plain name can be a shipped template
    ours = Path(name).name == name and shipped.is_dir()
    return _shipped_version(shipped) if ours else _version((server / name).resolve())


@cache
def _shipped_version(folder: Path) -> str:
    """Return the version of a shipped template, cached because its files do not change at run time."""
    return _version(folder.resolve())


def _version(folder: Path) -> str:
    files = {
        path.relative_to(folder).as_posix(): f"sha256:{sha256_hex(path.read_bytes())}"
        for path in folder.rglob("*")
        if path.is_file() and not any(_LITTER.fullmatch(part) for part in path.relative_to(folder).parts)
    }
    return f"sha256:{sha256_hex(json.dumps(files, sort_keys=True).encode())}" if files else ""


def runtime_range() -> str:
    """Return the compatible versions of the installed runtime, such as `>=0.2,<0.3`."""
    major, minor = map(int, version("mcpfactory-runtime").split(".")[:2])
    return f">={major}.{minor},<{f'{major}.{minor + 1}' if major == 0 else major + 1}"


def render(template: str | ServerTemplate, data: Mapping[str, Any]) -> dict[str, str]:
    """Return the template's files, by path.

    `data` has answers to the template's questions. Unanswered questions get their defaults. Every template gets
    `runtime_range`. Raise a TemplateSourceError for a template that is missing, is invalid, or would run code.
    """
    found = find_template(template) if isinstance(template, str) else template
    data = {**data, "runtime_range": runtime_range()}
    with TemporaryDirectory(prefix="mcpfactory-template-") as folder:
        place = Path(folder, "rendered")
        place.mkdir()
        try:
            if found.shipped:
                render_in_process(found.folder, place, data)
            else:
                _copy(found.folder, Path(folder, "template"))
                render_in_subprocess(Path(folder, "template"), place, data)
        except (RenderError, OSError) as error:
            message = f"template {found.name} cannot be rendered: {error}"
            where = found.source if found.origin else found.folder / SETTINGS
            raise TemplateSourceError(message, f"see {where}; templates must not run code") from None
        return _read(place)


def _copy(source: Path, target: Path) -> None:
    """Copy the regular files of a template, without its Git repository, links and special files."""
    left = MAX_BYTES
    for place, folders, names in os.walk(source):
        folders[:] = [name for name in folders if not _LITTER.fullmatch(name)]
        for name in (*folders, *(name for name in names if not _LITTER.fullmatch(name))):
            file = Path(place, name)
            mode = file.lstat().st_mode
            if stat.S_ISDIR(mode):
                continue
            where = file.relative_to(source)
            if not stat.S_ISREG(mode):
                message = f"{where} is a link, a pipe or a device, but templates must contain only regular files"
                raise RenderError(message)
            left -= file.lstat().st_size
            if left < 0:
                raise RenderError(f"the template has more than {MAX_BYTES} bytes")
            (target / where).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target / where)


def _read(root: Path) -> dict[str, str]:
    files = {}
    for path in sorted(root.rglob("*")):
        if path.name.casefold() == "head" and {"objects", "refs"} <= {
            one.name.casefold() for one in path.parent.iterdir()
        }:
            message = f"the template turns {path.parent.relative_to(root)} into a Git repository"
            raise TemplateSourceError(message, "make sure that no folder has HEAD, objects and refs")
        if path.is_symlink() or not path.is_file():
            continue
        if any(map(_is_repository, path.relative_to(root).parts)):
            message = f"the template creates {path.relative_to(root)}, which has a name reserved for Git"
            raise TemplateSourceError(message, "rename every file and folder that is named like .git")
        try:
            files[path.relative_to(root).as_posix()] = path.read_text("utf-8")
        except UnicodeDecodeError:
            hint = "use only text files in UTF-8"
            raise TemplateSourceError(f"{path.relative_to(root)} of the template is not text", hint) from None
    return files


def _is_repository(name: str) -> bool:
    """Return True if some file system could treat a name as the `.git` directory.

    The check ignores case, invisible characters, and trailing dots and spaces. The check also detects short names such
    as `git~1`.
    """
    plain = "".join(one for one in unicodedata.normalize("NFKC", name).casefold() if unicodedata.category(one) != "Cf")
    return plain.partition(":")[0].rstrip(". ") in {".git", "git~1"}


# --- rendering by copier: shipped templates in this process, others in a process with limits of time and memory ---


_REFUSED: Final = 3  # exit code of the rendering process if it raised RenderError
_SYSTEM_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR")
RENDER_SECONDS: Final = 20
_MEMORY: Final = 1 << 30  # memory limit of the rendering process in bytes
_MOST_FILE_BYTES: Final = 1 << 24  # maximum bytes of one rendered file


class RenderError(ValueError):
    """Error for a template that cannot be rendered."""


def render_in_process(template: Path, folder: Path, data: Mapping[str, Any]) -> None:
    """Render a trusted template, or raise a RenderError."""
    from copier import run_copy  # noqa: PLC0415 - copier imports 600 modules, needed only when a template is rendered
    from copier.errors import CopierError  # noqa: PLC0415 - copier is needed only when a template is rendered

    try:
        run_copy(str(template), folder, dict(data), defaults=True, overwrite=True, quiet=True, unsafe=False)
    except (CopierError, ValueError, OSError) as error:
        raise RenderError(str(error) or type(error).__name__) from None


def render_in_subprocess(
    template: Path, folder: Path, data: Mapping[str, Any], seconds: float = RENDER_SECONDS
) -> None:
    """Render an untrusted template in a separate process with limited time and memory, or raise a RenderError."""
    program = (
        f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import _render_main; "
        "sys.exit(_render_main(*sys.argv[1:]))"
    )
    command = [sys.executable, "-I", "-c", program, str(template), str(folder)]
    with TemporaryDirectory(prefix="mcpfactory-home-") as home:
        system = {name: value for name in _SYSTEM_VARIABLES if (value := os.environ.get(name))}
        environ = {**system, "HOME": home, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}
        try:
            done = subprocess.run(
                command, input=json.dumps(data).encode(), env=environ, capture_output=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            raise RenderError(f"rendering timed out after {seconds:g} seconds") from None
    if done.returncode == _REFUSED:
        raise RenderError(done.stdout.decode(errors="replace"))
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        taken = done.returncode < 0 or not last or "MemoryError" in last
        raise RenderError("it takes too much memory or time" if taken else last)


def _limit_process() -> None:
    try:
        import resource  # noqa: PLC0415 - the module is not available on every system
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (RENDER_SECONDS, RENDER_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_FILE_BYTES, _MOST_FILE_BYTES))


def _render_main(template: str, folder: str) -> int:
    data = json.load(sys.stdin)
    _limit_process()
    try:
        render_in_process(Path(template), Path(folder), data)
    except RenderError as error:
        sys.stdout.write(str(error))
        return _REFUSED
    return 0


# --- a new template: a copy of the shipped `minimal` ---


_FIRST: Final = "minimal"


def new_template(folder: Path) -> tuple[str, ...]:
    """Write a template that passes `mcpfactory template check` into a new folder, and return its files."""
    if folder.exists() or folder.is_symlink():
        raise TemplateSourceError(f"{folder} already exists", "choose another name, or remove it")
    shutil.copytree(find_template(_FIRST).folder, folder, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    settings = folder / SETTINGS
    _, _, rest = settings.read_text("utf-8").partition("\n")
    settings.write_text(f"# Servers from the template {folder.name}.\n{rest}", "utf-8")
    return tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))
