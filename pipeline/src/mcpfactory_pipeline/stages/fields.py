"""Fields that the tables of `[[pipeline.stages]]` share, read strictly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpfactory_pipeline.workspace.workspace import setting_error

__all__ = ["read_texts"]


def read_texts(table: Mapping[str, Any], stage: str, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return a list of texts, `default` when the table does not have it.

    Raises:
        ConfigError: for anything else.
    """
    value = table.get(key, default)
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        example = default[0] if default else "build"
        raise setting_error(f"stage {stage}: {key} is not a list of texts", f'{key} = ["{example}"]')
    return tuple(value)
