"""Which tables and fields the root `mcpfactory.toml` may have. A test holds the rows against those who read them.

It is checked whenever the file is read, so that a mistyped key is reported by the first command and not by the one that would have
needed it. What is below a field that stands here is checked by its own reader.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from mcpfactory_codegen.servers.keys import unread
from mcpfactory_codegen.text import listed

__all__ = ["FIELDS", "TARGET_FIELDS", "unknown_setting"]

FIELDS: Final[Mapping[str, Collection[str] | None]] = {
    "workspace": ("name", "factory"),
    "pipeline": (
        "attempts",
        "backoff",
        "executor",
        "channels",
        "stages",
        "limits",
        "events",
        "isolation",
        "container",
        "evaluation",
    ),
    "artifacts": ("keep",),
    "ci": ("jobs", "servers", "branch", "python", "channel", "environment", "image", "install"),
    "release": ("name", "packages"),
    "waivers": ("limit", "max_days", "by"),
    "owners": None,
    "publish": None,
}
TARGET_FIELDS: Final[Mapping[str, Collection[str]]] = {
    "pypi": ("url", "index", "auth", "user", "token_variable", "runtime"),
    "mcpb": ("type", "platform", "python", "author"),
    "oci": ("image", "user", "password_variable", "base", "base_user", "base_password_variable", "python"),
    "docker": ("base",),
    "sbom": ("resolve", "platform", "python"),
    "registry": ("url", "auth", "token_variable", "audience"),
}


def unknown_setting(data: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return what is wrong, and a hint, when the file has an unknown table or field; None when it has none."""
    if found := unread(data, FIELDS):
        return found
    targets = data.get("publish")
    if not isinstance(targets, Mapping):
        return None
    for name, table in targets.items():
        if name not in TARGET_FIELDS:
            return f"[publish.{name}] is of no target", listed(name, TARGET_FIELDS, "targets")
        for field in table if isinstance(table, Mapping) else ():
            if field not in TARGET_FIELDS[name]:
                message = f"publish.{name} has an unknown option {field!r}"
                return message, listed(field, TARGET_FIELDS[name], "options")
    return None
