"""Checks of CloseBot's responses; an unexpected form is a ToolError."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from mcpfactory_runtime import ToolError

from .secrets import hidden_text

__all__ = ["amount", "members", "record", "rows", "text", "time"]


def record(found: Any, tool: str, *needed: str) -> dict[str, Any]:
    """Return a response after checking that it is an object with non-empty strings for the `needed` names.

    Raises:
        ToolError: the response has another form.
    """
    if isinstance(found, dict) and all(isinstance(found.get(name), str) and found[name] for name in needed):
        return found
    raise _unexpected(found, tool, "an object" + (f" with {', '.join(needed)}" if needed else ""))


def rows(found: Any, tool: str, name: str = "result") -> list[dict[str, Any]]:
    """Return the list of objects in a response, under `name`. Structured content wraps a top-level list as `result`.

    Raises:
        ToolError: there is no such list, or an item is not an object.
    """
    listed = found.get(name) if isinstance(found, dict) else found
    if isinstance(listed, list) and all(isinstance(one, dict) for one in listed):
        return listed
    raise _unexpected(found, tool, "a list of objects" + (f" in `{name}`" if name != "result" else ""))


def members(of: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the objects in a list of an object, or [] if there is no list."""
    value = of.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text(of: Any, *path: str) -> str:
    """Return the string at a path of names, or ""."""
    for name in path:
        of = of.get(name) if isinstance(of, dict) else None
    return of if isinstance(of, str) else ""


def amount(of: dict[str, Any], name: str) -> float:
    """Return a number of an object, or 0."""
    value = of.get(name)
    return value if isinstance(value, int | float) else 0


def time(written: str) -> datetime | None:
    """Parse an ISO 8601 time, by default in UTC; None if it is invalid."""
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _unexpected(found: Any, tool: str, wanted: str) -> ToolError:
    said = hidden_text(found if isinstance(found, str) else repr(found))[:200]
    return ToolError(
        f"{tool}: expected {wanted}, got: {said or 'nothing'}\n"
        "hint: try again later; if it persists, check CLOSEBOT_BASE_URL"
    )
