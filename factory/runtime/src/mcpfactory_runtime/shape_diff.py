"""Where an answer is unlike a documented one: members that are missing, other JSON types, texts of another form. Pure.

A model of an API that leaves a member out, or gives a number where the API gives digits in a text, lets a server pass its tests and fail
on the API. The documented answer is an example of shape: its values are not compared, but what they are.
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
"""What texts look like, the narrowest first; what is none of these is any text."""


def differences(documented: Any, answered: Any) -> list[str]:
    """Return, by name, where `answered` has not the shape of `documented`; no sentence when it has.

    Every member of a documented object must be there, of the same JSON type; what is there besides does not matter. A text must have
    the form of the documented one: digits, a date, a URL … Of a documented list the last element stands for all that follow, and the
    answered one must not be empty. A documented null, or an empty text, lets any value, or any text, be there.

    Args:
        documented: an example of the answer: JSON, in which a set of values stands for an enumeration, a compiled pattern for a text.
        answered: what was answered.
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
    """Whether a value that holds no others has the form of a documented one."""
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
    """Return in words what a value is."""
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
