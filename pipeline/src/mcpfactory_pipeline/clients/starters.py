"""The programs of this machine that entries start: mcpfactory itself, and uvx, both by their whole path.

A client that is started from a desktop has not the `PATH` of a shell, so that a name alone is not found there.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from mcpfactory_pipeline.clients.errors import ClientError

__all__ = ["Starter", "factory", "uvx"]

_FACTORY: Final = "mcpfactory"
_PASSING: Final = ("archive-v", "environments-v")  # folders in the cache of uv, where `uvx mcpfactory` runs

_INDEXES: Final = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")


class Starter(NamedTuple):
    """A program: its name, where it is here, the arguments that come before all others, and what a person should do about it."""

    program: str
    path: str
    arguments: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()


def factory() -> Starter:
    """Return the mcpfactory that runs now. A link to it on the `PATH` is taken before it, as that stays when it is installed anew."""
    beside = shutil.which(_FACTORY, path=str(Path(sys.executable).parent))
    if beside is None:  # started as a module
        return Starter(_FACTORY, sys.executable, ("-m", _FACTORY), _passing())
    linked = shutil.which(_FACTORY)
    path = linked if linked and Path(linked).resolve() == Path(beside).resolve() else beside
    return Starter(_FACTORY, str(Path(path).absolute()), (), _passing())


def uvx(environ: Mapping[str, str]) -> Starter:
    """Return the program of uv that starts packages; `environ` is what a shell has set. Raises `ClientError` when it is not here."""
    found = shutil.which("uvx") or shutil.which("uvx", path=str(Path(sys.executable).parent))
    if found is None:
        raise ClientError("uvx is not here, which starts servers from packages", hint="install uv, or --from source")
    todo = [
        f"{name} is set here, and not for clients that start from a desktop: put it into uv.toml"
        for name in _INDEXES
        if environ.get(name)
    ]
    return Starter("uvx", str(Path(found).absolute()), todo=tuple(todo))


def _passing() -> tuple[str, ...]:
    if not any(part.startswith(_PASSING) for part in Path(sys.prefix).resolve().parts):
        return ()
    return (
        "mcpfactory is in the cache of uv, and gone when that is cleaned: uv tool install mcpfactory, then install again",
    )
