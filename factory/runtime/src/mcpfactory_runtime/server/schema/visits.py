"""How often one call may try definitions that apply several schemas: thirty that each refer to the next twice are a billion tries."""

from __future__ import annotations

from typing import Any, Final

from pydantic_core import core_schema

__all__ = ["TooManyVisitsError", "Visits", "counted"]

_ALWAYS: Final = 10_000  # visits; some 0.1 seconds
_PER_VALUE: Final = 100  # more for each value in the arguments, so that long lists pass


class TooManyVisitsError(Exception):
    """Not a ValueError, so that it ends the whole validation and not one branch."""


class Visits:
    """The visits of one call, which is its validation's context."""

    __slots__ = ("_arguments", "_left")

    def __init__(self, arguments: Any) -> None:
        self._arguments = arguments
        self._left = _ALWAYS

    def count(self) -> None:
        """One more.

        Raises:
            TooManyVisitsError: they are too many for these arguments.
        """
        self._left -= 1
        if self._left < 0:
            if self._arguments is None:
                raise TooManyVisitsError
            self._left = _PER_VALUE * _values(self._arguments)
            self._arguments = None  # only once


def counted(definition: core_schema.CoreSchema) -> core_schema.CoreSchema:
    """Return the definition, whose every use counts as a visit."""
    return core_schema.with_info_before_validator_function(_visit, definition)


def _visit(value: Any, info: core_schema.ValidationInfo[Any]) -> Any:
    if isinstance(info.context, Visits):
        info.context.count()
    return value


def _values(arguments: Any) -> int:
    count, waiting = 0, [arguments]
    while waiting:
        one = waiting.pop()
        count += 1
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return count
