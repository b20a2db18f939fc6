"""Names that were probably meant: for hints about a mistyped name, and for keys that nobody reads. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Final

__all__ = ["listed", "nearest", "unknown_field"]

_SHOWN: Final = 20
_LONGEST: Final = 100  # characters of a name that are compared and shown


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known name that was most likely meant by the word: close to it, its letters in another order, or begun; else ""."""
    by_fold = {name.casefold(): name for name in known}
    asked = word.casefold()[:_LONGEST]
    close = get_close_matches(asked, by_fold, 1)
    turned = [name for name in by_fold if sorted(name) == sorted(asked)]
    begun = [name for name in by_fold if asked and name.startswith(asked)]
    return next((by_fold[name] for name in (*close, *turned, *begun)), "")


def listed(word: str, known: Collection[str], what: str) -> str:
    """Return a hint: the name that was probably meant, and those that there are, as `did you mean 'shop'? servers: books, shop`."""
    names = list(known)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    there = f"{what}: {', '.join(names[:_SHOWN])}{more}" if names else f"{what}: none"
    meant = nearest(word, names)
    return f"did you mean {meant!r}? {there}" if meant else there


def unknown_field(table: Mapping[str, object], known: Collection[str], where: str) -> tuple[str, str] | None:
    """Return what is wrong, and a hint, when a table has a key that nobody reads; None when it has none.

    A key that is ignored is a decision that somebody believes to have made.
    """
    for key in table:
        if key not in known:
            return f"{where} has an unknown field {str(key)[:_LONGEST]!r}", listed(str(key), known, "fields")
    return None
