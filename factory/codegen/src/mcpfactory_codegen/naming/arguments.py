"""Argument names: the API's own spelling where Python allows it, so that models see the words of its documentation.

`bookId` stays `bookId`; `X-Request-Id` becomes `x_request_id`. When two places use one name, the first of path, query,
querystring, header, cookie, body keeps it and the others say their place: `limit` and `body_limit`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from mcpfactory_codegen.inputs import PLACES, Input
from mcpfactory_codegen.text import digest, identifier, is_identifier, shorten, words

__all__ = ["may_be_argument", "name_arguments"]


_ARGUMENT_LIMIT: Final = 64
_RESERVED_ARGUMENTS: Final = frozenset({"api", "self", "cls", "_", "match", "case"})
_WHOLE: Final = {"body": "body", "form": "form", "querystring": "querystring"}


def may_be_argument(name: str) -> bool:
    """Whether a generated function can take an argument of this name."""
    return (
        is_identifier(name)
        and not name.startswith("__")
        and name not in _RESERVED_ARGUMENTS
        and len(name) <= _ARGUMENT_LIMIT
    )


def name_arguments(items: Iterable[Input], taken: Iterable[str] = ()) -> dict[tuple[str, str], str]:
    """Return the argument of each input, by (place, wire name); unique within the operation and none of `taken`."""
    waiting = sorted(items, key=lambda item: (PLACES.index(item.place), item.name))
    order = [item.slot for item in waiting]
    names: dict[tuple[str, str], str] = {}
    used = set(taken)
    for phase in range(3):
        for place in PLACES:
            claims: dict[str, list[Input]] = defaultdict(list)
            for item in waiting:
                if item.place == place and item.slot not in names:
                    claims[_argument_candidate(item, phase)].append(item)
            for name, claimants in sorted(claims.items()):
                exact = [item for item in claimants if item.name == name] or claimants
                if name not in used and len(exact) == 1:
                    names[exact[0].slot] = name
                    used.add(name)
    for slot in order:
        if slot not in names:  # two names that differ only in what an identifier cannot show, twice over
            names[slot] = f"{slot[0]}_{digest(slot[1], 16)}"
    return names


def _argument_candidate(item: Input, phase: int) -> str:
    plain = _plain_argument(item)
    if phase == 0:
        return plain
    if phase == 1:
        return _shortened(f"{item.place}_{plain.rstrip('_')}", item)
    return _shortened(f"{item.place}_{plain.rstrip('_')}", item, 7) + "_" + digest(item.name, 6)


def _plain_argument(item: Input) -> str:
    if not item.name:
        return _WHOLE.get(item.place, item.place)
    if is_identifier(item.name) and not item.name.startswith("__"):
        name = item.name + "_" if item.name in _RESERVED_ARGUMENTS else item.name
    else:
        name = identifier(item.name, prefix=item.place, reserved=_RESERVED_ARGUMENTS)
    return _shortened(name, item)


def _shortened(name: str, item: Input, room: int = 0) -> str:
    if len(name) <= _ARGUMENT_LIMIT - room:
        return name
    return shorten(words(name), _ARGUMENT_LIMIT - room, item.name)
