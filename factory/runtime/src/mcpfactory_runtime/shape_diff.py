"""Differences in shape between an answer and a documented one: missing members, other types or text formats. Pure.

An API model that omits a member, or returns a number although the API returns digits in a string, lets a server pass
its tests and fail on the API. The documented answer is an example of shape: types are compared, not values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from typing import Any, Final

_DAY: Final = r"\d{4}-\d\d-\d\d"
_TIME: Final = r"\d\d:\d\d(:\d\d)?"
_FORMS: Final = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("digits", r"\d+"),
        ("a decimal number", r"-?\d+\.\d+"),
        ("a date", _DAY),
        ("a date and time that ends in Z", rf"{_DAY}T{_TIME}Z"),
        ("a date and time with fractions of a second, that ends in Z", rf"{_DAY}T{_TIME}\.\d+Z"),
        ("a date and time with an offset like +0000", rf"{_DAY}T{_TIME}[+-]\d{{4}}"),
        ("a date and time with an offset like +00:00", rf"{_DAY}T{_TIME}(\.\d+)?[+-]\d\d:\d\d"),
        ("a date as in mails (RFC 2822)", rf"[A-Z][a-z]{{2}}, \d\d [A-Z][a-z]{{2}} \d{{4}} {_TIME} [+-]\d{{4}}"),
        ("a phone number (E.164)", r"\+\d{6,15}"),
        ("a UUID", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
        ("a URL", r"https?://\S+"),
        ("a path", r"/\S*"),
        ("a word in capitals", r"[A-Z][A-Z0-9_]+"),
    )
)
"""Formats of strings, the narrowest first; other strings count as any text."""


def differences(documented: Any, answered: Any) -> list[str]:
    """Return a sentence, with the path, for each difference in shape between `answered` and `documented`.

    Every member of a documented object must exist with the same JSON type; additional members are ignored. A string
    must have the format of the documented one: digits, a date, a URL … The last element of a documented list
    represents all that follow, and the answered list must not be empty. A documented null permits any value, an empty
    string any string.

    Args:
        documented: an example of the answer: JSON, with a set of values for an enumeration, a compiled pattern for a
            string.
        answered: the actual answer.
    """
    return [f"{place.lstrip('.') or 'the answer'}: {what}" for place, what in _differences(documented, answered, "")]


def _differences(documented: Any, answered: Any, place: str) -> Iterator[tuple[str, str]]:
    match documented:
        case None:
            return
        case Mapping() if isinstance(answered, Mapping):
            for name, value in documented.items():
                if name in answered:
                    yield from _differences(value, answered[name], f"{place}.{name}")
                else:
                    yield f"{place}.{name}", f"is missing; documented is {_form(value)}"
        case list() if isinstance(answered, list):
            if documented and not answered:
                yield place, f"is an empty list; documented is one of {_form(documented[0])}"
            for number, value in enumerate(answered if documented else ()):
                yield from _differences(documented[min(number, len(documented) - 1)], value, f"{place}[{number}]")
        case _ if not _like(documented, answered):
            yield (
                place,
                f"is {_form(answered)}: {answered!r:.80}; documented is {_form(documented)}: {documented!r:.80}",
            )


def _like(documented: Any, answered: Any) -> bool:
    """Return True if a scalar has the form of a documented one."""
    match documented:
        case Set():
            return answered in documented
        case re.Pattern():
            return isinstance(answered, str) and documented.fullmatch(answered) is not None
        case "":
            return isinstance(answered, str)
        case float():
            return isinstance(answered, int | float) and not isinstance(answered, bool)
    return _form(documented) in (_form(answered), "a text") and isinstance(answered, type(documented))


def _form(value: Any) -> str:
    """Return a description of a value's form."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int():
            return "a whole number"
        case float():
            return "a number"
        case str():
            return next((name for name, pattern in _FORMS if pattern.fullmatch(value)), "a text")
        case re.Pattern():
            return "a text of a pattern"
        case Set():
            return "a value of an enumeration"
        case list():
            return "a list"
    return "an object"
