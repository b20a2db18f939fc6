"""Parameter styles and places of OpenAPI (3.2 §4.12.2, §4.15): the one list that readers, the IR and request builders share.

Whoever writes values has a table with a row for each style, checked by `complete` when its module is loaded. There is no
default: a style that is added here is refused until every table has its row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeVar, get_args

__all__ = [
    "EXPLODED",
    "FORM_STYLES",
    "STYLES",
    "CookieStyle",
    "HeaderStyle",
    "ParameterLocation",
    "PathStyle",
    "QueryStyle",
    "Style",
    "check_style",
    "complete",
]

ParameterLocation = Literal["path", "query", "querystring", "header", "cookie"]
"""Where a parameter travels: the words of `in`."""

# The first style of a place is its default.
PathStyle = Literal["simple", "label", "matrix", "segments"]
"""`segments` is `{+name}` of discovery documents (RFC 6570 §3.2.3): a text whose slashes part segments."""
QueryStyle = Literal["form", "spaceDelimited", "pipeDelimited", "deepObject", "tabDelimited"]
"""Form bodies have the same (Encoding Objects). `tabDelimited` is `tsv` of Swagger 2.0."""
HeaderStyle = Literal["simple"]
CookieStyle = Literal["form", "cookie"]

Style = Literal["", PathStyle, QueryStyle, HeaderStyle, CookieStyle]
""""" stands for the default of the place."""

STYLES: Final[Mapping[ParameterLocation, tuple[Style, ...]]] = {
    "path": get_args(PathStyle),
    "query": get_args(QueryStyle),
    "querystring": (),  # described by `content` alone
    "header": get_args(HeaderStyle),
    "cookie": get_args(CookieStyle),
}

FORM_STYLES: Final[tuple[QueryStyle, ...]] = get_args(QueryStyle)

K = TypeVar("K", bound=str)
V = TypeVar("V")


def complete(table: Mapping[K, V], kinds: Any, name: str) -> Mapping[K, V]:
    """Return a table that has a row for each style (or place) of `kinds`, and no other.

    Args:
        table: what to do, by style.
        kinds: a Literal of this module.
        name: file and name of the table, for the message.

    Raises:
        NotImplementedError: a style has no row, so that its values could not be written.
    """
    wanted = [kind for kind in get_args(kinds) if kind]
    for kind in wanted:
        if kind not in table:
            raise NotImplementedError(f"{name} has no row for {kind!r} of upstream/styles.py: add one")
    for kind in table:
        if kind not in wanted:
            raise NotImplementedError(
                f"{name} has a row for {kind!r}, which upstream/styles.py does not list: remove it"
            )
    return table


complete(STYLES, ParameterLocation, "upstream/styles.py STYLES")

EXPLODED: Final[Mapping[str, bool]] = complete(
    {
        "simple": False,
        "label": False,
        "matrix": False,
        "segments": False,
        "form": True,
        "spaceDelimited": False,
        "pipeDelimited": False,
        "tabDelimited": False,
        "deepObject": True,
        "cookie": True,
    },
    Style,
    "upstream/styles.py EXPLODED",
)
"""What `explode` is by default."""


def check_style(place: ParameterLocation, style: str) -> None:
    """Refuse a style that a place does not have.

    Raises:
        ValueError: the place or its style is unknown.
    """
    if place not in STYLES:
        raise ValueError(f"no parameter is in {place!r}; one of {', '.join(STYLES)}")
    if style and style not in STYLES[place]:
        known = ", ".join(STYLES[place]) or "none"
        raise ValueError(
            f"the style {style!r} does not exist in {place} (there are: {known}); update mcpfactory-runtime?"
        )
