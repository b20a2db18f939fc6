"""Templates to files, by copier: the only module that imports it, and only when a template is rendered.

A template is a folder with `copier.yml` and `template/`: no tasks, no extensions, no git. copier renders into a
temporary folder with `unsafe=False`, so a template that wants to run something is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from mcpfactory_codegen.servers.lock import fingerprint
from mcpfactory_codegen.text import nearest
from mcpfactory_runtime.errors import Exit, McpfactoryError

__all__ = [
    "ScaffoldError",
    "ServerTemplate",
    "UnknownTemplateError",
    "find_template",
    "render",
    "template_version",
    "templates",
]

_SHIPPED: Final = Path(__file__).parents[1] / "_templates"
_SETTINGS: Final = "copier.yml"
_LITTER: Final = re.compile(r"\.git|\.venv|__pycache__|\.\w+_cache|\.DS_Store|.*\.py[co]")


class ScaffoldError(McpfactoryError):
    """A template cannot be found or rendered. `hint` says what to do."""

    exit_code = Exit.BAD_INPUT


class UnknownTemplateError(ScaffoldError):
    """There is no template of that name."""

    exit_code = Exit.NOT_FOUND


@dataclass(frozen=True, slots=True)
class ServerTemplate:
    """A template that can be used: its name, its folder, and its first comment line as a sentence about it."""

    name: str
    folder: Path
    about: str

    @property
    def of_document(self) -> bool:
        """Whether it is for servers that are made from an API document: it asks where that lies."""
        return re.search(r"^document:", (self.folder / _SETTINGS).read_text("utf-8"), re.M) is not None


def templates() -> tuple[ServerTemplate, ...]:
    """Return the templates that are shipped, by name."""
    folders = sorted(path.parent for path in _SHIPPED.glob(f"*/{_SETTINGS}"))
    return tuple(ServerTemplate(folder.name, folder, _about(folder)) for folder in folders)


def _about(folder: Path) -> str:
    first = (folder / _SETTINGS).read_text("utf-8").partition("\n")[0]
    return first.removeprefix("#").strip() if first.startswith("#") else ""


def find_template(name: str) -> ServerTemplate:
    """Return a shipped template by name, or a template of the user's by the path of its folder.

    Raises:
        UnknownTemplateError: there is none.
    """
    for template in templates():
        if template.name == name:
            return template
    folder = Path(name)
    if (folder / _SETTINGS).is_file():
        folder = folder.resolve()
        return ServerTemplate(folder.name, folder, _about(folder))
    known = ", ".join(template.name for template in templates())
    close = nearest(name, [template.name for template in templates()])
    guess = f"did you mean {close!r}? " if close else ""
    raise UnknownTemplateError(
        f"there is no template {name!r}", f"{guess}use one of {known}, or a folder with a {_SETTINGS}"
    )


def template_version(name: str) -> str:
    """`sha256:…` of a template's files with their paths; "" for one that is neither shipped nor named by an absolute path."""
    folder = (_SHIPPED / name).resolve()
    files = {
        path.relative_to(folder).as_posix(): f"sha256:{fingerprint(path.read_bytes())}"
        for path in (folder.rglob("*") if name else ())
        if path.is_file() and not any(_LITTER.fullmatch(part) for part in path.relative_to(folder).parts)
    }
    return f"sha256:{fingerprint(json.dumps(files, sort_keys=True).encode())}" if files else ""


def render(template: str, data: Mapping[str, Any]) -> dict[str, str]:
    """Return the template's files, by path; `data` answers its questions, and those left over take their defaults.

    Raises:
        ScaffoldError: there is no such template, it is broken, or it wants to run something.
    """
    from copier import run_copy  # noqa: PLC0415 - 600 modules, needed only when a template is rendered
    from copier.errors import CopierError  # noqa: PLC0415 - as above

    found = find_template(template)
    with TemporaryDirectory(prefix="mcpfactory-template-") as folder:
        try:
            run_copy(str(found.folder), folder, dict(data), defaults=True, overwrite=True, quiet=True, unsafe=False)
        except (CopierError, ValueError, OSError) as error:
            message = f"template {found.name} cannot be rendered: {str(error) or type(error).__name__}"
            raise ScaffoldError(message, f"see {found.folder / _SETTINGS}; templates may not run anything") from None
        return _read(Path(folder))


def _read(root: Path) -> dict[str, str]:
    files = {}
    for path in sorted(root.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        try:
            files[path.relative_to(root).as_posix()] = path.read_text("utf-8")
        except UnicodeDecodeError:
            hint = "templates hold text files in UTF-8"
            raise ScaffoldError(f"{path.relative_to(root)} of the template is not text", hint) from None
    return files
