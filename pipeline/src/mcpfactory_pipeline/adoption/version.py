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
    file, parse, keys = read
    own = adopted.folder(folder.parents[1]) if adopted.kind != "url" else None
    try:
        found: Any = parse(((own or folder) / file).read_text(encoding="utf-8"))
        for key in keys:
            found = found[key]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return found if isinstance(found, str) else ""


# Kind → the file that says it, how that is read, and the keys that lead there.
_SAYS: Final[Mapping[str, tuple[str, Callable[[str], Any], tuple[str, ...]]]] = {
    "python": ("pyproject.toml", tomllib.loads, ("project", "version")),
    "node": ("package.json", json.loads, ("version",)),
    "url": (LOCKS["url"], json.loads, ("server", "version")),
}
