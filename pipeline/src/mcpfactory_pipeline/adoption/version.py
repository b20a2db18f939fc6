"""Which version the files of an adopted server say that it is."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.adoption.sources import LOCKS
from mcpfactory_pipeline.workspace.adopted import Adopted

__all__ = ["adopted_version"]


def adopted_version(adopted: Adopted, folder: Path) -> str:
    """Return the version of the server in `folder`, which is `servers/<name>`; "" when its files do not say one."""
    read = _SAYS.get(adopted.kind)
    if read is None:
        return adopted.version
    place, content, keys = read
    own = folder if place == "beside" else adopted.folder(folder.parents[1])
    try:
        found: Any = content(own or folder)
        for key in keys:
            found = found[key]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return found if isinstance(found, str) else ""


def _toml(folder: Path) -> Any:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def _package(folder: Path) -> Any:
    return json.loads((folder / "package.json").read_bytes())


def _offers(folder: Path) -> Any:
    return json.loads((folder / LOCKS["url"]).read_bytes())


_SAYS: Final[Mapping[str, tuple[str, Callable[[Path], Any], tuple[str, ...]]]] = {
    "python": ("own", _toml, ("project", "version")),
    "node": ("own", _package, ("version",)),
    "url": ("beside", _offers, ("server", "version")),
}
