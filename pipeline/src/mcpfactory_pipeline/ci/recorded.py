"""Where the factory is taken from, as it stands in the workspace's own files: texts changed in place. Pure.

Nothing else in a file changes, which is shown by reading the result; a file where that cannot be is left to its owner.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.ci.origin import Origin, uv_tables

__all__ = ["recorded", "with_uv_tables"]

_BEGIN: Final = "# Where uv finds the runtime of servers. Written by `mcpfactory ci`:"
_END: Final = "# (end)"
_BLOCK: Final = re.compile(rf"\n?^{re.escape(_BEGIN)}\n.*?^{re.escape(_END)}\n", re.MULTILINE | re.DOTALL)
_HEADER: Final = re.compile(r"\s*\[\s*workspace\s*\]\s*(#.*)?")
_RUNTIME: Final = "mcpfactory-runtime"


def recorded(text: str, origin: Origin) -> str:
    """Return the text of a root `mcpfactory.toml` with that origin in its table `[workspace]`. Raises `ConfigError`."""
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
    made, wanted = "\n".join(lines), _toml(text, "mcpfactory.toml")
    if header is None or _toml(made, "mcpfactory.toml") != {
        **wanted, "workspace": {**wanted["workspace"], "factory": str(origin)}
    }:  # fmt: skip
        raise ConfigError("mcpfactory.toml: nowhere to put the line safely", hint=f"write below [workspace]: {line}")
    return made


def with_uv_tables(text: str, origin: Origin) -> str:
    """Return the text of a root `pyproject.toml` in which uv finds the runtime there. Raises `ConfigError`."""
    tables = uv_tables(origin)
    block = f"{_BEGIN}\n{tables}{_END}\n" if tables else ""
    if _BLOCK.search(text):
        made = _BLOCK.sub(lambda found: (found[0][:1] if found[0][0] == "\n" else "") + block if block else "", text)
    elif not block or _named(_toml(text, "pyproject.toml")):
        return text  # the person has said where it is
    else:
        made = f"{text.rstrip()}\n\n{block}" if text.strip() else block
    try:
        changed = _others(_toml(made, "pyproject.toml")) != _others(_toml(text, "pyproject.toml"))
    except ConfigError:
        changed = True
    if changed:
        mend = (
            f"add to them: {_in_a_line(tables)}" if tables else f"take the line of {_RUNTIME} out of [tool.uv.sources]"
        )
        raise ConfigError("pyproject.toml has tables of its own for uv", hint=mend)
    return made


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is not TOML: {error}", hint="mend the line that is named") from error


def _named(data: dict[str, Any]) -> bool:
    return _RUNTIME in data.get("tool", {}).get("uv", {}).get("sources", {})


def _others(data: dict[str, Any]) -> dict[str, Any]:
    """All that the tables above do not say."""
    tool = data.get("tool", {})
    uv = tool.get("uv", {})
    sources = {name: value for name, value in uv.get("sources", {}).items() if name != _RUNTIME}
    return {**data, "tool": {**tool, "uv": {**uv, "sources": sources}}}


def _in_a_line(tables: str) -> str:
    return "; ".join(line for line in tables.splitlines() if line)
