"""What an origin means for the files of a workspace: the line in `mcpfactory.toml`, the folder of wheels, the tables for uv.

Texts are edited in place: nothing else in them changes, which is checked by parsing the result; where that cannot be, the file is
left to its owner.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.ci.origin import FOLDER, Origin, uv_tables
from mcpfactory_pipeline.ci.vendored import NEWER, differences, refresh

__all__ = ["apply_origin", "record_origin", "stale_wheels", "unconfigured_project", "with_origin", "with_uv_tables"]

_PROJECT: Final = "pyproject.toml"


def record_origin(config: Path, origin: Origin) -> bool:
    """Write the origin into a root `mcpfactory.toml`; return whether that changed it.

    Raises:
        ConfigError: there is no table `[workspace]` to write it into.
    """
    return _rewrite(config, with_origin(_read(config), origin))


def apply_origin(root: Path, origin: Origin) -> list[str]:
    """Write what the origin needs below the root; return the paths that changed.

    A `pyproject.toml` that has tables of its own is left as it is; `unconfigured_project` says what to add.

    Raises:
        StageError: a wheel cannot be built or found.
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
        pass  # `unconfigured_project` says what to add
    return changed


def stale_wheels(root: Path, origin: Origin) -> ConfigError | None:
    """Return an error, with what to do, when the wheels below the root are not those of the factory that runs; None when they are, or none are kept."""
    wheels = differences(root / origin.place) if origin.kind == FOLDER else []
    if not wheels:
        return None
    found = "; ".join(" ".join(filter(None, (one.name, one.there, one.words))) for one in wheels)
    newer = any(one.words == NEWER for one in wheels)
    remedy = f"python -m pip install {origin.place}mcpfactory*.whl, or mcpfactory ci" if newer else "mcpfactory ci"
    return ConfigError(
        f"{origin.place} has not what is at work here, mcpfactory {wheels[-1].here}: {found}", hint=remedy
    )


def unconfigured_project(root: Path, origin: Origin) -> ConfigError | None:
    """Return an error, with what to do, when uv does not find the runtime by the root's `pyproject.toml`; None when it does, or there is none."""
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


_BEGIN: Final = "# Where uv finds the runtime of servers. Written by `mcpfactory ci`:"
_END: Final = "# (end)"
_BLOCK: Final = re.compile(rf"\n?^{re.escape(_BEGIN)}\n.*?^{re.escape(_END)}\n", re.MULTILINE | re.DOTALL)
_HEADER: Final = re.compile(r"\s*\[\s*workspace\s*\]\s*(#.*)?")
_RUNTIME: Final = "mcpfactory-runtime"


def with_origin(text: str, origin: Origin) -> str:
    """Return the text of a root `mcpfactory.toml` with that origin in its table `[workspace]`.

    Raises:
        ConfigError: there is no such table to write it into.
    """
    line = f"factory = {json.dumps(str(origin))}"
    lines = text.split("\n")
    header = next((number for number, one in enumerate(lines) if _HEADER.fullmatch(one.rstrip("\r"))), None)
    if header is not None:
        end = next((n for n in range(header + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
        old = next((n for n in range(header + 1, end) if re.match(r"\s*factory\s*=", lines[n])), None)
        if old is None:
            name = next((n for n in range(header + 1, end) if re.match(r"\s*name\s*=", lines[n])), header)
            lines.insert(name + 1, line)
        else:
            lines[old] = line
    edited, wanted = "\n".join(lines), _toml(text, "mcpfactory.toml")
    if header is None or _toml(edited, "mcpfactory.toml") != {
        **wanted,
        "workspace": {**wanted["workspace"], "factory": str(origin)},
    }:
        raise ConfigError("mcpfactory.toml: nowhere to put the line safely", hint=f"write below [workspace]: {line}")
    return edited


def with_uv_tables(text: str, origin: Origin) -> str:
    """Return the text of a root `pyproject.toml` in which uv finds the runtime there.

    Raises:
        ConfigError: it has tables of its own for uv.
    """
    tables = uv_tables(origin)
    block = f"{_BEGIN}\n{tables}{_END}\n" if tables else ""
    if _BLOCK.search(text):
        edited = _BLOCK.sub(lambda found: (found[0][:1] if found[0][0] == "\n" else "") + block if block else "", text)
    elif not block or _RUNTIME in _toml(text, "pyproject.toml").get("tool", {}).get("uv", {}).get("sources", {}):
        return text  # the person has said where it is
    else:
        edited = f"{text.rstrip()}\n\n{block}" if text.strip() else block
    try:
        changed = _without_runtime(_toml(edited, "pyproject.toml")) != _without_runtime(_toml(text, "pyproject.toml"))
    except ConfigError:
        changed = True
    if changed:
        remedy = (
            f"add to them: {_one_line(tables)}" if tables else f"take the line of {_RUNTIME} out of [tool.uv.sources]"
        )
        raise ConfigError("pyproject.toml has tables of its own for uv", hint=remedy)
    return edited


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is not TOML: {error}", hint="mend the line that is named") from error


def _without_runtime(data: dict[str, Any]) -> dict[str, Any]:
    """All that the tables above do not say."""
    tool = data.get("tool", {})
    uv = tool.get("uv", {})
    sources = {name: value for name, value in uv.get("sources", {}).items() if name != _RUNTIME}
    return {**data, "tool": {**tool, "uv": {**uv, "sources": sources}}}


def _one_line(tables: str) -> str:
    return "; ".join(line for line in tables.splitlines() if line)
