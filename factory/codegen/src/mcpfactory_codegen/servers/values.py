"""Known keys and values of a server's `mcpfactory.toml`.

`None` marks tables with user-defined keys, and tables whose own reader is equally strict.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.select import Selection
from mcpfactory_codegen.text import clean, unknown_field
from mcpfactory_runtime.errors import Exit, McpfactoryError


class ServerConfigError(McpfactoryError):
    """A server's configuration cannot be used. `hint` says what to change."""

    exit_code = Exit.BAD_INPUT


def table_of(data: Mapping[str, Any], key: str, path: Path) -> dict[str, Any]:
    """Return the table at `key`, {} if missing. Raises `ServerConfigError` for other types."""
    value = data.get(key, {})
    if not isinstance(value, dict):
        raise ServerConfigError(f"{path}: {key} is not a table", f"write [{key}]")
    return value


def text_of(table: Mapping[str, Any], key: str, path: Path) -> str:
    """Return the string at `key`, "" if missing. Raises `ServerConfigError` for other types."""
    value = table.get(key, "")
    if not isinstance(value, str):
        raise ServerConfigError(f"{path}: {key} must be a string", f'write {key} = "…"')
    return value


def texts_of(table: Mapping[str, Any], key: str, path: Path, where: str) -> tuple[str, ...]:
    """Return the strings at `key`, () if missing. Raises `ServerConfigError` for other types."""
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ServerConfigError(f"{path}: {where}.{key} must be a list of strings", f'write {key} = ["…"]')
    return tuple(value)


def written(value: str | Sequence[str]) -> str:
    """Return a value as TOML."""
    return quoted(value) if isinstance(value, str) else f"[{', '.join(quoted(item) for item in value)}]"


def quoted(text: str) -> str:
    """Return a string literal of TOML and of Python: what JSON escapes, both read alike; what only they would is cleaned away."""
    return json.dumps(clean(text), ensure_ascii=False)


SERVER_FIELDS: Final[Mapping[str, Collection[str] | None]] = {
    "server": ("name", "package", "template", "mode", "profile", "dialect", "environment"),
    "adopted": None,
    "build": ("allow",),
    "api": ("label", "document", "source", "credentials", "allow_private", *Selection.model_fields, "overlays"),
    "credentials": ("parameters", "arguments"),
    "answers": None,
    "names": None,
    "tools": None,
    "profiles": None,
    "responses": None,
    "workflows": None,
    "publish": (
        "targets", "mcp_name", "title", "description", "website", "repository", "subfolder", "icons", "packages",
        "remotes", "environment",
    ),
}  # fmt: skip


def unread(data: Mapping[str, Any], fields: Mapping[str, Collection[str] | None]) -> tuple[str, str] | None:
    """Return an error and a hint if a file has an unknown table or field; None otherwise."""
    if found := unknown_field(data, tuple(fields), "the file"):
        message, hint = found
        return message, hint.replace("fields: ", "tables: ")
    for name, known in fields.items():
        value = data.get(name)
        for table in value if isinstance(value, list) else [value]:
            if known is not None and isinstance(table, Mapping) and (found := unknown_field(table, known, f"[{name}]")):
                return found
    return None
