"""Reading what Reonomy answers, which need not have the form that its reference says: nothing is made up of what cannot be read."""

from __future__ import annotations

from calendar import monthrange
from datetime import date
from math import isfinite
from typing import Any

from mcpfactory_runtime import ToolError

__all__ = ["Row", "day", "items", "months_later", "number", "objects", "properties_of", "property_of"]

Row = dict[str, Any]


def items(page: Any, of: str, *, first: bool = True) -> list[Row]:
    """Return the properties of an answer of a search.

    Args:
        page: the answer.
        of: the tool that gave it.
        first: whether this is the first page: that there are none is believed only when it says `count` 0.

    Raises:
        ToolError: these are no properties.
    """
    found = page.get("items") if isinstance(page, dict) else None
    if not isinstance(found, list) or not all(map(_is_property, found)):
        raise _unexpected(of, "an object with `items`, each an object with a text `id`")
    if first and not found and number(page.get("count")) != 0:
        raise _unexpected(of, "`items` that are not empty, or `count` 0")
    return found


def property_of(answer: Any) -> Row:
    """Return the property that `get_property` gave.

    Raises:
        ToolError: it is none.
    """
    if not _is_property(answer):
        raise _unexpected("get_property", "an object with a text `id`")
    return dict(answer)


def properties_of(answer: Any) -> list[Row]:
    """Return the properties that `get_many_properties` gave; rows without an id are left out.

    Raises:
        ToolError: there are none, and an empty list was not given either.
    """
    rows = answer.get("result") if isinstance(answer, dict) else answer  # a list is told as `result`
    found = [row for row in rows if _is_property(row)] if isinstance(rows, list) else []
    if not found and rows != []:
        raise _unexpected("get_many_properties", "a list of objects with a text `id`")
    return found


def _is_property(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("id"), str) and bool(row["id"])


def _unexpected(of: str, expected: str) -> ToolError:
    return ToolError(
        f"Reonomy's answer to {of} is none that its reference knows; expected {expected}.\n"
        f"hint: nothing is known by this, not even that there is nothing; call {of} by itself to see the answer, or try again later."
    )


def number(value: Any) -> float | None:
    """Return a number that may be written as a text; None for what is none."""
    try:
        found = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        return None
    return found if found is not None and isfinite(found) else None


def day(value: Any) -> date | None:
    """Return the day of a text such as 2026-11-24 or 2026-11-24T00:00:00; None for what is none."""
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


def objects(value: Any) -> list[Row]:
    """Return the objects of a list; none where it is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def months_later(first: date, months: int) -> date:
    """Return the same day so many months later, or earlier; the last of the month where that has no such day."""
    year, month = divmod(first.year * 12 + first.month - 1 + months, 12)
    return date(year, month + 1, min(first.day, monthrange(year, month + 1)[1]))
