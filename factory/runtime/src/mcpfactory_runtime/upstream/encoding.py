"""Encoding of arguments in URLs, headers and forms, by OpenAPI parameter styles.

Rules:

1. Values are percent-encoded, except unreserved characters. A delimiter between items of an array or object is not
   encoded, but an equal character inside an item is encoded.
2. With `allowReserved`, reserved characters and triples such as %2F are not encoded. Characters that would end the
   value are always encoded: `/ ? #` in a path, `# [ ] & +` in a query or form. Style `segments` allows `/`, but encodes
   triples.
3. Null items and null members are omitted (RFC 6570 calls them undefined).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Any, Final, Literal
from urllib.parse import quote

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.operation import PathStyle, QueryStyle, check_table_complete

Pair = tuple[str, str]
Encoder = Callable[[Any], str]
"""Function that returns the text of an item or a name."""

_PATH_RESERVED: Final = ":@!$&'()*+,;=[]"
_QUERY_RESERVED: Final = ":@!$'()*,;=/?"
JSON_LINES: Final = frozenset(
    {
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/x-jsonl",
        "application/x-jsonlines",
    }
)
_TRIPLE: Final = re.compile(r"(%[0-9A-Fa-f]{2})")


DELIMITERS: Final[Mapping[QueryStyle, str]] = check_table_complete(
    {"form": ",", "spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t", "deepObject": ","},
    QueryStyle,
    "upstream/encoding.py DELIMITERS",
)
"""Style → delimiter of items. OpenAPI defines no delimiter for `deepObject`."""


def text_of(value: Any) -> str:
    """Return a string unchanged, and other values as compact JSON."""
    if isinstance(value, str):
        return value
    return compact_json(value)


def compact_json(value: Any) -> str:
    """Return compact JSON with unescaped non-ASCII characters."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise ToolError("An argument contains a value that JSON cannot express (NaN, infinity, a cycle).") from None


def utf8(text: str) -> bytes:
    """Encode a text as UTF-8."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError("An argument contains half a surrogate pair, which UTF-8 cannot encode.") from None


def encode(text: str, safe: str = "") -> str:
    """Percent-encode a text, except unreserved characters (RFC 3986 §2.3) and characters in `safe`."""
    return quote(utf8(text), safe)


def encoder(place: str, *, allow_reserved: bool, nested: tuple[QueryStyle, ...] = ()) -> Encoder:
    """Return the encoder for rule 1, or with `allow_reserved` for rule 2."""
    safe = _PATH_RESERVED if place == "path" else _QUERY_RESERVED

    def encoded(value: Any) -> str:
        return encode(text_of(value))

    def reserved(value: Any) -> str:
        pieces = _TRIPLE.split(text_of(value))
        return "".join(part if at % 2 else encode(part, safe) for at, part in enumerate(pieces))

    return nested_encoder(reserved if allow_reserved else encoded, nested, lambda text: encode(text, ","))


def nested_encoder(plain: Encoder, nested: tuple[QueryStyle, ...], delimiter: Callable[[str], str] = str) -> Encoder:
    """Return an encoder of items that can be arrays, where `nested` has a style for each level of arrays."""
    if not nested:
        return plain
    inner, joint = nested_encoder(plain, nested[1:], delimiter), delimiter(DELIMITERS[nested[0]])
    return lambda value: (
        joint.join(inner(one) for one in value if one is not None) if isinstance(value, list) else plain(value)
    )


def delimited(value: Any, delimiter: str, encoded: Encoder, *, pairs: bool) -> str:
    """Join the items of an array or the members of an object, which are `name=value` with `pairs`."""
    if isinstance(value, Mapping):
        joint = "=" if pairs else delimiter
        members = [(str(name), item) for name, item in value.items() if item is not None]
        return delimiter.join(f"{encoded(name)}{joint}{encoded(item)}" for name, item in members)
    return delimiter.join(encoded(item) for item in value if item is not None)


def path_value(
    name: str, value: Any, style: str, explode: bool, allow_reserved: bool, *, nested: tuple[QueryStyle, ...] = ()
) -> str:
    """Return the encoded text of a path parameter."""
    return _PATH[style](encode(name), value, explode, encoder("path", allow_reserved=allow_reserved, nested=nested))


def _prefixed(prefix: str, name: str, value: Any, explode: bool, encoded: Encoder) -> str:
    """Encode a value in style `simple` or `label`. In style `label`, the prefix also separates exploded items."""
    if isinstance(value, Mapping | list):
        return prefix + delimited(value, (explode and prefix) or ",", encoded, pairs=explode)
    return prefix + encoded(value)


def _matrix(name: str, value: Any, explode: bool, encoded: Encoder) -> str:
    if isinstance(value, Mapping) and explode:
        return "".join(f";{encode(str(key))}={encoded(item)}" for key, item in value.items() if item is not None)
    if isinstance(value, list) and explode:
        return "".join(f";{name}={encoded(item)}" for item in value if item is not None)
    text = delimited(value, ",", encoded, pairs=False) if isinstance(value, Mapping | list) else encoded(value)
    return f";{name}={text}" if text else f";{name}"


def _segments(_name: str, value: Any, _explode: bool, _encoded: Encoder) -> str:
    """Return the encoded text of several path segments, but refuse `.`, `..` and empty segments."""
    parts = text_of(value).split("/")
    if wrong := [part for part in parts if part in {"", ".", ".."}]:
        raise ToolError(
            f"{text_of(value)[:200]!r} has the path segment {wrong[0]!r}, which would address another resource."
        )
    return "/".join(encode(part, _PATH_RESERVED) for part in parts)


_PATH: Final[Mapping[str, Callable[[str, Any, bool, Encoder], str]]] = check_table_complete(
    {"simple": partial(_prefixed, ""), "label": partial(_prefixed, "."), "matrix": _matrix, "segments": _segments},
    PathStyle,
    "upstream/encoding.py _PATH",
)


def query_pairs(
    name: str, value: Any, style: str, explode: bool, allow_reserved: bool, *, nested: tuple[QueryStyle, ...] = ()
) -> list[Pair]:
    """Return the encoded names and values of a parameter in a query or form."""
    encoded = encoder("query", allow_reserved=allow_reserved, nested=nested)
    if value is None:
        return []
    if not isinstance(value, Mapping | list):
        return [(encode(name), encoded(value))]
    return _QUERY[style](name, value, explode, encoded)


def _listed(delimiter: str, name: str, value: Any, explode: bool, encoded: Encoder) -> list[Pair]:
    if explode:
        members = value.items() if isinstance(value, Mapping) else [(name, item) for item in value]
        return [(encode(str(key)), encoded(item)) for key, item in members if item is not None]
    return [(encode(name), delimited(value, delimiter, encoded, pairs=False))] if value else []


def _deep(name: str, value: Any, explode: bool, encoded: Encoder) -> list[Pair]:
    """Encode a value in style `deepObject` (`name[a][b]=…`).

    Array items repeat the array's name. Items with members also have an index, because their members would mix.
    """
    if not isinstance(value, Mapping | list):
        return [] if value is None else [(encode(name), encoded(value))]
    if isinstance(value, Mapping):
        members = [(f"{name}[{key}]", item) for key, item in value.items()]
    else:
        indexed = any(isinstance(item, Mapping | list) for item in value)
        members = [(f"{name}[{index}]" if indexed else name, item) for index, item in enumerate(value)]
    return [pair for inner, item in members for pair in _deep(inner, item, explode, encoded)]


_QUERY: Final[Mapping[str, Callable[[str, Any, bool, Encoder], list[Pair]]]] = {
    **{style: partial(_listed, encode(delimiter, ",")) for style, delimiter in DELIMITERS.items()},
    "deepObject": _deep,
}


def media_type(content_type: str) -> str:
    """Return `type/subtype` of a Content-Type in lower case."""
    return content_type.partition(";")[0].strip().lower()


def is_json(content_type: str) -> bool:
    """Return True if a media type is application/json, text/json, or has the suffix +json."""
    kind = media_type(content_type)
    return kind in ("application/json", "text/json") or kind.endswith("+json")


def is_xml(content_type: str) -> bool:
    """Return True if a media type stands for XML data, unlike XML images and XHTML pages."""
    kind = media_type(content_type)
    data = kind.endswith("+xml") and not kind.startswith("image/") and kind != "application/xhtml+xml"
    return data or kind in ("application/xml", "text/xml")


class Unset(Enum):
    """The type of UNSET, for annotations: `limit: int | Unset = UNSET`.

    Type checkers narrow members of an enumeration by `is`, and a copy of a member is the same object.
    """

    UNSET = "UNSET"

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""The value of a missing argument, which is not sent."""


def piece(text: str | Unset, separator: str, index: int, count: int, kind: str) -> Any:
    """Split a text into `count` pieces, and return one piece as JSON type `kind`. If the text is UNSET, return UNSET.

    Raises:
        ToolError: the number of pieces is not `count`, or the piece is not a value of that type.
    """
    if isinstance(text, Unset):
        return text
    pieces = [one.strip() for one in text.split(separator)]
    if len(pieces) != count:
        raise ToolError(f"{text!r} has {len(pieces)} parts; {count} parts are needed, separated by {separator!r}.")
    if kind not in {"integer", "number", "boolean"}:
        return pieces[index]
    try:
        value = json.loads(pieces[index])
    except ValueError:
        value = None
    fits = {"integer": type(value) is int, "number": type(value) in (int, float), "boolean": type(value) is bool}
    if not fits[kind]:
        raise ToolError(f"The part {pieces[index]!r} of {text!r} must be of type {kind}.")
    return value
