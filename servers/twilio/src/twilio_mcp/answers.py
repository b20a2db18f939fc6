"""Twilio's answers to tools of ours: JSON of the documented form, or an error that says what was expected; and what became of a request that failed."""

from __future__ import annotations

import re
from typing import Any, Final

from mcpfactory_runtime import ToolError

__all__ = ["is_refusal", "number", "retry_after", "rows", "status_of", "text"]

_FAILED: Final = re.compile(r"[A-Z]+ \S+ failed: (\d{3})\b")
_GAVE_UP: Final = frozenset({408, 499})
_WAIT: Final = re.compile(r"^Retry-After: (\d{1,5}) seconds$", re.MULTILINE)


def rows(found: Any, name: str, tool: str) -> list[dict[str, Any]]:
    """Return the list of objects of that name in an answer.

    Raises:
        ToolError: the answer has none.
    """
    listed = found.get(name) if isinstance(found, dict) else None
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        said = str(found)[:200]
        raise ToolError(
            f"{tool} was expected to answer with an object whose `{name}` is a list of objects, and answered: {said}\n"
            "hint: try again later; if it stays so, the person who runs this server checks the addresses of the APIs"
        )
    return listed


def text(one: dict[str, Any], name: str) -> str:
    """Return a member that should be a text; "" where it is none."""
    value = one.get(name)
    return value if isinstance(value, str) else ""


def number(one: dict[str, Any], name: str) -> int:
    """Return a member that should be a whole number; 0 where it is none."""
    value = one.get(name)
    return value if isinstance(value, int) else 0


def status_of(error: str) -> int:
    """Return the HTTP status by which a request failed; 0 where there was no answer, or one that nobody can read."""
    found = _FAILED.match(error)
    return int(found[1]) if found else 0


def is_refusal(error: str) -> bool:
    """Return whether a request failed so that it was surely not carried out.

    408 and 499 say that somebody gave up waiting, here or in between: Twilio may have done it all the same.
    """
    return 400 <= (status := status_of(error)) < 500 and status not in _GAVE_UP


def retry_after(error: str, default: float = 1.0) -> float:
    """Return the seconds that Twilio asks to wait."""
    found = _WAIT.search(error)
    return float(found[1]) if found else default
