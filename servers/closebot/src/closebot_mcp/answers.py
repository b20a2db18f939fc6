"""CloseBot's answers to tools of ours: JSON of the documented form, or an error that says what was expected."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from mcpfactory_runtime import ToolError

from .secrets import hidden_text

__all__ = ["amount", "members", "record", "rows", "text", "time"]


def record(found: Any, tool: str, *needed: str) -> dict[str, Any]:
    """Return an answer that is an object, and has texts of these names.

    Raises:
        ToolError: it is none, or has not.
    """
    if isinstance(found, dict) and all(isinstance(found.get(name), str) and found[name] for name in needed):
        return found
    raise _unexpected(found, tool, "an object" + (f" with {', '.join(needed)}" if needed else ""))


def rows(found: Any, tool: str, name: str = "result") -> list[dict[str, Any]]:
    """Return the objects of an answer that is a list, which structured content has as `result`, or of the list of that name in it.

    Raises:
        ToolError: there is no such list, or something else in it.
    """
    listed = found.get(name) if isinstance(found, dict) else found
    if isinstance(listed, list) and all(isinstance(one, dict) for one in listed):
        return listed
    raise _unexpected(found, tool, "a list of objects" + (f" in `{name}`" if name != "result" else ""))


def members(of: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the objects of a list in an object; none where there is no such list."""
    value = of.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text(of: Any, *path: str) -> str:
    """Return a text by the names that lead to it; "" where there is none."""
    for name in path:
        of = of.get(name) if isinstance(of, dict) else None
    return of if isinstance(of, str) else ""


def amount(of: dict[str, Any], name: str) -> float:
    """Return a number; 0 where there is none."""
    value = of.get(name)
    return value if isinstance(value, int | float) else 0


def time(written: str) -> datetime | None:
    """Return a time of ISO 8601, in UTC where it says no zone; None where it is none."""
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _unexpected(found: Any, tool: str, wanted: str) -> ToolError:
    said = hidden_text(found if isinstance(found, str) else repr(found))[:200]
    return ToolError(
        f"{tool} was expected to answer with {wanted}, and answered: {said or 'nothing'}\n"
        "hint: try again later; if it stays so, the person who runs this server checks CLOSEBOT_BASE_URL"
    )
