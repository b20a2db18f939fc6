"""Checks of Twilio's responses, and classification of failed requests."""

from __future__ import annotations

import re
from typing import Any, Final

from mcpfactory_runtime import ToolError

__all__ = ["is_refusal", "number", "retry_after", "rows", "status_of", "text"]

_FAILED: Final = re.compile(r"[A-Z]+ \S+ failed: (\d{3})\b")
_GAVE_UP: Final = frozenset({408, 499})
_WAIT: Final = re.compile(r"^Retry-After: (\d{1,5}) seconds$", re.MULTILINE)


def rows(found: Any, name: str, tool: str) -> list[dict[str, Any]]:
    """Return the list of objects of this name in a response.

    Raises:
        ToolError: there is no such list, or an item is not an object.
    """
    listed = found.get(name) if isinstance(found, dict) else None
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        said = str(found)[:200]
        raise ToolError(
            f"{tool}: expected an object whose `{name}` is a list of objects, got: {said}\n"
            "hint: try again later; if it persists, check the base URLs of the APIs"
        )
    return listed


def text(one: dict[str, Any], name: str) -> str:
    """Return a string member, or ""."""
    value = one.get(name)
    return value if isinstance(value, str) else ""


def number(one: dict[str, Any], name: str) -> int:
    """Return an integer member, or 0."""
    value = one.get(name)
    return value if isinstance(value, int) else 0


def status_of(error: str) -> int:
    """Return the HTTP status of a failed request, or 0 if there was no readable response."""
    found = _FAILED.match(error)
    return int(found[1]) if found else 0


def is_refusal(error: str) -> bool:
    """Return True if a failed request was certainly not executed.

    408 and 499 mean that a client or proxy stopped waiting: Twilio may have executed the request anyway.
    """
    return 400 <= (status := status_of(error)) < 500 and status not in _GAVE_UP


def retry_after(error: str, default: float = 1.0) -> float:
    """Return the seconds of the Retry-After header in an error message."""
    found = _WAIT.search(error)
    return float(found[1]) if found else default
