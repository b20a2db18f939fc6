"""Parsing of Reonomy's responses, which may differ from its reference. Unreadable values stay unknown."""

from __future__ import annotations

from calendar import monthrange
from datetime import date
from math import isfinite
from typing import Any

from mcpfactory_runtime import ToolError

__all__ = ["Row", "day", "items", "months_later", "number", "objects", "properties_of", "property_of"]

Row = dict[str, Any]


def items(page: Any, of: str, *, first: bool = True) -> list[Row]:
    """Return the properties of a search result.

    Args:
        page: the response.
        of: name of the tool.
        first: True for the first page, which may be empty only if `count` is 0.

    Raises:
        ToolError: the response has another form.
    """
    found = page.get("items") if isinstance(page, dict) else None
    if not isinstance(found, list) or not all(map(_is_property, found)):
        raise _unexpected(of, "an object with `items`, each an object with a text `id`")
    if first and not found and number(page.get("count")) != 0:
        raise _unexpected(of, "`items` that are not empty, or `count` 0")
    return found


def property_of(answer: Any) -> Row:
    """Return the property in a response of `get_property`.

    Raises:
        ToolError: the response is not a property.
    """
    if not _is_property(answer):
        raise _unexpected("get_property", "an object with a text `id`")
    return dict(answer)


def properties_of(answer: Any) -> list[Row]:
    """Return the properties in a response of `get_many_properties`, without rows that have no ID.

    Raises:
        ToolError: the response is not a list, or no row is a property.
    """
    rows = answer.get("result") if isinstance(answer, dict) else answer  # structured content wraps a list as `result`
    found = [row for row in rows if _is_property(row)] if isinstance(rows, list) else []
    if not found and rows != []:
        raise _unexpected("get_many_properties", "a list of objects with a text `id`")
    return found


def _is_property(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("id"), str) and bool(row["id"])


def _unexpected(of: str, expected: str) -> ToolError:
    return ToolError(
        f"Reonomy's response to {of} is not of a documented form; expected {expected}.\n"
        f"hint: the result is unknown, not empty; call {of} directly to see the response, or try again later"
    )


def number(value: Any) -> float | None:
    """Parse a number, which may be a string; None if it is invalid or infinite."""
    try:
        found = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        return None
    return found if found is not None and isfinite(found) else None


def day(value: Any) -> date | None:
    """Parse the date of a string such as 2026-11-24 or 2026-11-24T00:00:00; None if it is invalid."""
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


def objects(value: Any) -> list[Row]:
    """Return the objects in a list, or [] if the value is not a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def months_later(first: date, months: int) -> date:
    """Add calendar months to a date (negative: subtract), limited to the last day of the month."""
    year, month = divmod(first.year * 12 + first.month - 1 + months, 12)
    return date(year, month + 1, min(first.day, monthrange(year, month + 1)[1]))
