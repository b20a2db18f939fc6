"""`--explain RULE` of `mcpfactory validate` and `mcpfactory audit`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from mcpfactory import output
from mcpfactory.exits import Exit

__all__ = ["explain"]


class _Named(Protocol):
    @property
    def id(self) -> str: ...


R = TypeVar("R", bound=_Named)


def explain(
    wanted: str, rules: Iterable[R], text: Callable[[R], str], data: Callable[[R], dict[str, Any]], *, as_json: bool
) -> None:
    """Print what a rule says, as text or as data; end the command, with the nearest names, where there is none of this name."""
    known = {one.id: one for one in rules}
    if wanted not in known:
        near = difflib.get_close_matches(wanted, known, 3, 0.4) or [one for one in known if wanted in one][:3]
        hint = f"did you mean {', '.join(near or list(known)[:3])}?"
        output.fail(f"there is no rule {wanted!r}", hint, Exit.NOT_FOUND)
    if as_json:
        output.data(data(known[wanted]))
    else:
        output.raw(text(known[wanted]))
