"""Values of a server's `mcpfactory.toml`: read with the reason why one cannot be used, and written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mcpfactory_codegen.text import clean
from mcpfactory_runtime.errors import Exit, McpfactoryError

__all__ = ["ServerConfigError", "quoted", "table_of", "text_of", "texts_of", "written"]


class ServerConfigError(McpfactoryError):
    """A server's configuration cannot be used. `hint` says what to change."""

    exit_code = Exit.BAD_INPUT


def table_of(data: Mapping[str, Any], key: str, path: Path) -> dict[str, Any]:
    """Return the table at `key`, {} when there is none. Raises `ServerConfigError` for anything else."""
    value = data.get(key, {})
    if not isinstance(value, dict):
        raise ServerConfigError(f"{path}: {key} is not a table", f"write [{key}]")
    return value


def text_of(table: Mapping[str, Any], key: str, path: Path) -> str:
    """Return the text at `key`, "" when there is none. Raises `ServerConfigError` for anything else."""
    value = table.get(key, "")
    if not isinstance(value, str):
        raise ServerConfigError(f"{path}: {key} is not a text", f'write {key} = "…"')
    return value


def texts_of(table: Mapping[str, Any], key: str, path: Path, where: str) -> tuple[str, ...]:
    """Return the texts at `key`, () when there are none. Raises `ServerConfigError` for anything else."""
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ServerConfigError(f"{path}: {where}.{key} is not a list of texts", f'write {key} = ["…"]')
    return tuple(value)


def written(value: str | Sequence[str]) -> str:
    """Return a value as TOML."""
    return quoted(value) if isinstance(value, str) else f"[{', '.join(quoted(item) for item in value)}]"


def quoted(text: str) -> str:
    """Return a string literal of TOML and of Python: what JSON escapes, both read alike; what only they would is cleaned away."""
    return json.dumps(clean(text), ensure_ascii=False)
