"""JSONPath (RFC 9535): the places that a path finds. The one module that loads the library, and only when a path is asked."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["MOST_NODES", "PathError", "find"]

MOST_NODES: Final = 200_000  # that one path may find


class PathError(Exception):
    """A text is no JSONPath, or finds too much; `hint` says what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def find(data: Any, path: str) -> list[tuple[tuple[Any, ...], Any]]:
    """(keys and indexes that lead there, value) of each place in `data` that a JSONPath finds. Raises PathError."""
    from jsonpath import JSONPathEnvironment, JSONPathError  # noqa: PLC0415 - 70 ms, only where there are paths

    found: list[tuple[tuple[Any, ...], Any]] = []
    try:
        compiled = JSONPathEnvironment().compile(path)
        if not isinstance(data, dict | list):  # the library would read a text as JSON
            return [((), data)] if path.strip() == "$" else []
        for match in compiled.finditer(data):
            found.append((tuple(match.parts), match.obj))
            if len(found) > MOST_NODES:
                raise PathError(f"it finds more than {MOST_NODES:,} places", "narrow it")
    except (JSONPathError, RecursionError) as error:
        told = " ".join(str(error).partition("\n")[0].split())[:200] or type(error).__name__
        raise PathError(f"{path[:200]!r} is no JSONPath: {told}", "see RFC 9535") from None
    return found
