"""Changes to JSON that leave it JSON: what byte by byte a search would seldom reach."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

__all__ = ["mutate_json", "mutate_lines"]

Bytes = Callable[[bytes, int], bytes]
ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    5,
    2.5,
    1e308,
    10**19,
    10**400,
    "",
    "5",
    "true",
    "null",
    "[]",
    "é\x00",
    [],
    {},
    [[]],
    [None],
)


def mutate_json(data: bytes, size: int, seed: int, words: tuple[str, ...], plain: Bytes) -> bytes:
    """Another JSON text near `data`; every third time, or when it is none, bytes changed by `plain`.

    Args:
        data: what to change.
        size: the most bytes that may come back.
        seed: decides everything.
        words: texts that may stand as keys and values.
        plain: the byte-wise mutation to fall back on.
    """
    random = Random(seed)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return plain(data, size)
    if random.random() < 0.3:
        return plain(data, size)
    for _ in range(random.randint(1, 4)):
        value = _changed(value, random, words)
    text = json.dumps(value).encode()
    return text if len(text) <= size else plain(data, size)


def mutate_lines(data: bytes, size: int, seed: int, words: tuple[str, ...], plain: Bytes) -> bytes:
    """The same for one of several lines; now and then a line is doubled, moved or dropped instead."""
    random = Random(seed)
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    match random.randrange(6):
        case 0:
            lines.insert(random.randrange(len(lines) + 1), lines[at])
        case 1 if len(lines) > 1:
            lines.insert(random.randrange(len(lines)), lines.pop(at))
        case 2 if len(lines) > 1:
            del lines[at]
        case _:
            room = size - len(data) + len(lines[at])
            lines[at] = mutate_json(lines[at], max(room, 1), random.getrandbits(32), words, plain)
    return b"\n".join(lines)[:size]


def _changed(value: Any, random: Random, words: tuple[str, ...]) -> Any:
    """The value with one place in it replaced, added, doubled or removed."""
    places = list(_places(value))
    if not places:
        return random.choice(ODD)
    container, key = random.choice(places)
    source, name = random.choice(places)
    new = deepcopy(random.choice((random.choice(ODD), random.choice(words), source[name], [source[name]])))
    match random.randrange(4):
        case 0:
            del container[key]
        case 1 if isinstance(container, dict):
            container[random.choice(words)] = new
        case 2 if isinstance(container, list):
            container.insert(random.randrange(len(container) + 1), new)
        case _:
            container[key] = new
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every value inside."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from _places(inner)
