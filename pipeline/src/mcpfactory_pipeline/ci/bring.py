"""Making a workspace follow its origin: the line in `mcpfactory.toml`, the folder of wheels, and the tables for uv."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.ci.origin import FOLDER, Origin
from mcpfactory_pipeline.ci.recorded import recorded, with_uv_tables
from mcpfactory_pipeline.ci.vendored import NEWER, differences, refresh

__all__ = ["bring", "record", "stale_wheels", "untold_project"]

_PROJECT: Final = "pyproject.toml"


def record(config: Path, origin: Origin) -> bool:
    """Write the origin into a root `mcpfactory.toml`; say whether that changed it. Raises `ConfigError`."""
    return _rewrite(config, recorded(_read(config), origin))


def bring(root: Path, origin: Origin) -> list[str]:
    """Write what the origin needs below the root; return the paths that changed.

    Raises `StageError` when a wheel cannot be had. A `pyproject.toml` that has tables of its own is left as it is;
    `untold_project` tells.
    """
    changed = []
    folder = root / origin.place
    if origin.kind == FOLDER and differences(folder):
        changed += [f"{origin.place}{name}" for name in refresh(folder)]
    project = root / _PROJECT
    try:
        if project.is_file() and _rewrite(project, with_uv_tables(_read(project), origin)):
            changed.append(_PROJECT)
    except ConfigError:
        pass  # `untold_project` says what to add
    return changed


def stale_wheels(root: Path, origin: Origin) -> ConfigError | None:
    """That the wheels below the root are not what is at work here, with what to do; None when they are, or none are kept."""
    wheels = differences(root / origin.place) if origin.kind == FOLDER else []
    if not wheels:
        return None
    told = "; ".join(" ".join(filter(None, (one.name, one.there, one.words))) for one in wheels)
    newer = any(one.words == NEWER for one in wheels)
    mend = f"python -m pip install {origin.place}mcpfactory*.whl, or mcpfactory ci" if newer else "mcpfactory ci"
    return ConfigError(f"{origin.place} has not what is at work here, mcpfactory {wheels[-1].here}: {told}", hint=mend)


def untold_project(root: Path, origin: Origin) -> ConfigError | None:
    """That uv does not find the runtime by the root's `pyproject.toml`, with what to do; None when it does, or there is none."""
    project = root / _PROJECT
    try:
        if project.is_file() and with_uv_tables(_read(project), origin) != _read(project):
            return ConfigError(f"{_PROJECT} does not say where uv finds the runtime", hint="mcpfactory ci")
    except ConfigError as error:
        return error
    return None


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")  # as it is: line ends are the owner's
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", hint="make it readable") from error


def _rewrite(file: Path, text: str) -> bool:
    if text == _read(file):
        return False
    replace_file(file, text.encode())
    return True
