"""Which tables and fields a server's `mcpfactory.toml` may have: one table, asked by whoever reads the file.

`None` stands for tables whose keys are names that the person chose, or whose own reader is as strict.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from mcpfactory_codegen.text import unknown_field

__all__ = ["LISTS", "SERVER_FIELDS", "unread"]

LISTS: Final = ("include_tags", "include_paths", "include_operations", "include_methods")
SERVER_FIELDS: Final[Mapping[str, Collection[str] | None]] = {
    "server": ("name", "package", "template", "mode", "profile", "dialect", "environment"),
    "adopted": None,
    "build": ("allow",),
    "api": ("label", "document", "source", "credentials", "allow_private", *LISTS, "overlays"),
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
    """Return what is wrong, and a hint, when a file has a table or a field that nobody reads; None when it has none."""
    if found := unknown_field(data, tuple(fields), "the file"):
        message, hint = found
        return message, hint.replace("fields: ", "tables: ")
    for name, known in fields.items():
        value = data.get(name)
        for table in value if isinstance(value, list) else [value]:
            if known is not None and isinstance(table, Mapping) and (found := unknown_field(table, known, f"[{name}]")):
                return found
    return None
