"""JMESPath: a part of an answer, chosen by the model. The one module here that imports the library, when it is first used."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from mcpfactory_runtime.server.errors import ToolError

__all__ = ["check", "select"]

_LONGEST: Final = 1_000  # characters of an expression


def check(expression: Any) -> None:
    """Refuse what is no expression, before anything is sent.

    Raises:
        ToolError: the expression cannot be used; the message says why.
    """
    _compiled(expression)


def select(expression: str, value: Any) -> Any:
    """Return what the expression selects of a JSON value; None when that is nothing.

    Raises:
        ToolError: the expression cannot be used on this value.
    """
    try:
        return _compiled(expression).search(value)
    except (
        ArithmeticError,
        AttributeError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:  # JMESPathError is a ValueError
        raise ToolError(
            f"The call was carried out, but its answer does not fit the expression {expression!r}: {error}"
        ) from None


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Any:
    import jmespath  # type: ignore[import-untyped]  # noqa: PLC0415 - it has no types; most servers select nothing

    try:
        if len(expression) > _LONGEST:
            raise ValueError(f"it has more than {_LONGEST:,} characters")
        return jmespath.compile(expression)
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise ToolError(
            f"{expression[:200]!r} is no JMESPath expression: {reason}\nhint: items[].{{id: id, name: name}}"
        ) from None
