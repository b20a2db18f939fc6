"""Expected request of a call, computed without the runtime's request builder.

This module implements the OpenAPI rules for values without delimiters (3.1 §4.8.12 and §4.8.15) a second time, to test
the request builder. Tests do not compare parts of a request that the rules do not cover. `strict` means that `query` is
the complete query.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from mcpfactory_codegen.inputs import Input
from mcpfactory_codegen.ir import Api, ApiOperation, Encoding
from mcpfactory_codegen.naming import Names
from mcpfactory_runtime.upstream.encoding import is_json, media_type
from mcpfactory_runtime.upstream.operation import CookieStyle, HeaderStyle, PathStyle, QueryStyle, check_table_complete

_FORM: Final = "application/x-www-form-urlencoded"
# OpenAPI ignores these header parameters (§4.8.12.1)
_OF_THE_CLIENT: Final = frozenset({"accept", "content-type", "authorization"})
_ENDS_PATH: Final = re.compile(r"[?#]")
# joined values with one of these characters are not tested, because their encoding is not defined
_ENDS: Final = re.compile(r"[,;|&=\s%+#\[\]]")

Given = Sequence[tuple[Input, Any]]
Pairs = list[list[Any]]


def expected_request(
    operation: ApiOperation, items: Sequence[Input], values: Mapping[tuple[str, str], Any], api: Api, names: Names
) -> dict[str, Any]:
    """Return the `request` of a case, or {} for an unsupported path.

    The path is relative to the API's base URL. The path of an operation on another server starts with the server's
    name.
    """
    given = [(item, values[item.slot]) for item in items if item.slot in values]
    path = _path(operation.path, given)
    if path is None:
        return {}
    folder = f"/{operation.server}" if operation.server else ""
    request: dict[str, Any] = {"method": operation.method, "path": f"{folder}{path}", "strict": True}
    template = _ENDS_PATH.split(operation.path, maxsplit=1)[0]
    within = sum(
        str(value).count("/")
        # the path may contain the parameter several times, or only in its query
        * template.count(f"{{{item.name}}}")
        for item, value in given
        if item.place == "path" and not _is_segments(item)
    )
    if within or any(_is_segments(item) for item, _ in given):
        request["segments"] = request["path"].count("/") - within
    query = _query(given)
    if query is not None and "?" not in operation.path:
        request["query"] = query
    elif "?" in operation.path and "{" not in operation.path.partition("?")[2]:
        literal = parse_qsl(operation.path.partition("?")[2], keep_blank_values=True)
        request["query"] = [[name, value] for name, value in literal]
        request["strict"] = False
    credentials = _credentials(operation, api, names)
    taken = {str(one["name"]).lower() for one in credentials if one["in"] == "header"} | _OF_THE_CLIENT
    headers = {
        item.name: text
        for item, value in given
        if item.place == "header"
        and item.name.lower() not in taken
        and (text := _HEADERS[_style(item, "simple")](item, value))
    }
    cookies = [
        pair for item, value in given if item.place == "cookie" for pair in _COOKIES[_style(item, "form")](item, value)
    ]
    request |= {"headers": headers} if headers else {}
    request |= {"cookies": cookies} if cookies else {}
    request |= {"credentials": credentials} if credentials else {}
    return request | _body(operation, given)


# --- path, query, headers, cookies ---


def _style(item: Input, default: str) -> str:
    return (item.parameter.style if item.parameter else "") or default


def _is_segments(item: Input) -> bool:
    """Return True if a path parameter can contain slashes."""
    return item.place == "path" and _style(item, "simple") == "segments"


def _path(template: str, given: Given) -> str | None:
    """Return the decoded path below the API's base URL, or None for an unsupported parameter."""
    values = {item.name: (item, value) for item, value in given if item.place == "path"}
    parts = re.split(r"\{([^{}]*)\}", _ENDS_PATH.split(template, maxsplit=1)[0])
    for at in range(1, len(parts), 2):
        item, value = values.get(parts[at], (None, None))
        if item is None or item.parameter is None or item.parameter.content_type:
            return None
        text = _in_path(item, value)
        if text is None:
            return None
        parts[at] = text
    parts[::2] = [unquote(literal) for literal in parts[::2]]
    return "".join(parts)


def _stays(text: str, style: str, reserved: bool) -> bool:
    """Return True if a decoded value appears unchanged in a path."""
    return all(one and not set(one) <= {"."} for one in text.split("/")) and not (
        reserved and re.search(r"[?#%\\]" if style == "segments" else r"[/?#%\\]", text)
    )


def _in_path(item: Input, value: Any) -> str | None:
    """Return a value as decoded path text, or None for an unsupported value."""
    assert item.parameter is not None
    style, reserved = _style(item, "simple"), item.parameter.allow_reserved
    prefix, joint = _PATH[style]
    explode = item.parameter.explode is True and isinstance(value, list | dict)
    texts = _texts([*value, *value.values()] if isinstance(value, dict) else value)
    if not texts or any(not _stays(text, style, reserved) for text in texts):
        return None
    if isinstance(value, dict):
        members = list(zip(texts[: len(value)], texts[len(value) :], strict=True))
        texts = ["=".join(member) for member in members] if explode else [text for member in members for text in member]
    elif explode and style == "matrix":
        texts = [f"{item.name}={text}" for text in texts]
    named = f"{item.name}=" if style == "matrix" and not explode else ""
    return prefix + named + (joint if explode else ",").join(texts)


_PATH: Final[Mapping[str, tuple[str, str]]] = check_table_complete(
    {"simple": ("", ","), "segments": ("", ","), "label": (".", "."), "matrix": (";", ";")},
    PathStyle,
    "cases/expected.py _PATH",
)
"""For each style, the prefix of a value and the separator of exploded items."""


def _query(given: Given) -> Pairs | None:
    pairs: Pairs = []
    for item, value in given:
        if item.place == "querystring":
            return None
        if item.place != "query" or item.parameter is None:
            continue
        parameter = item.parameter
        if parameter.content_type:
            if not is_json(parameter.content_type):
                return None
            built: Pairs | None = [[item.name, json.dumps(value, separators=(",", ":"), ensure_ascii=False)]]
        else:
            built = None if parameter.allow_reserved else _pairs(item.name, value, parameter.style, parameter.explode)
        if built is None:
            return None
        pairs += built
    return pairs


def _pairs(name: str, value: Any, style: str, explode: bool | None) -> Pairs | None:
    delimiter, exploded = _QUERY[style or "form"]
    explode = exploded if explode is None else explode
    if delimiter is None and isinstance(value, dict | list):
        return _deep(name, value)
    if isinstance(value, dict):
        texts = {key: _scalar(one) for key, one in value.items()}
        if any(text is None for text in texts.values()):
            return None
        if explode:
            return [[key, text] for key, text in texts.items()]
        return _joined(name, [text for pair in texts.items() for text in pair if text is not None], delimiter)
    listed = _texts(value)
    if listed is None:
        return None
    if explode or not isinstance(value, list):
        return [[name, text] for text in listed]
    return _joined(name, listed, delimiter)


_QUERY: Final[Mapping[str, tuple[str | None, bool]]] = check_table_complete(
    {
        "form": (",", True),
        "spaceDelimited": (" ", False),
        "pipeDelimited": ("|", False),
        "tabDelimited": ("\t", False),
        "deepObject": (None, True),
    },
    QueryStyle,
    "cases/expected.py _QUERY",
)
"""For each style, the separator of items in one value and the default of `explode`."""


def _joined(name: str, texts: list[str], delimiter: str | None) -> Pairs | None:
    if delimiter is None or any(_ENDS.search(text) for text in texts):
        return None
    return [[name, delimiter.join(texts)]] if texts else []


def _deep(prefix: str, value: Any) -> Pairs | None:
    """Return the members of an object as pairs `name[member]=…`.

    OpenAPI does not define arrays in `deepObject`. Each array item repeats the array's name; items with members also
    have an index.
    """
    if isinstance(value, dict | list):
        named = isinstance(value, dict) or any(isinstance(one, dict | list) for one in value)
        inner = [
            _deep(f"{prefix}[{key}]" if named else prefix, one)
            for key, one in (value.items() if isinstance(value, dict) else enumerate(value))
        ]
        return None if None in inner else [pair for pairs in inner if pairs is not None for pair in pairs]
    text = _scalar(value)
    return None if text is None else [[prefix, text]]


def _header(item: Input, value: Any) -> str:
    if item.parameter is None or item.parameter.content_type:
        return ""
    texts = _texts(value)
    if texts is None or (len(texts) > 1 and any(_ENDS.search(text) for text in texts)):
        return ""
    text = ",".join(texts)
    return text if text.strip() == text and text.isprintable() and text.isascii() else ""


def _cookie(item: Input, value: Any) -> Pairs:
    text = _scalar(value)
    plain = item.parameter is not None and not item.parameter.content_type and text and not _ENDS.search(text)
    return [[item.name, text]] if plain else []


_HEADERS: Final = check_table_complete({"simple": _header}, HeaderStyle, "cases/expected.py _HEADERS")
_COOKIES: Final = check_table_complete({"form": _cookie, "cookie": _cookie}, CookieStyle, "cases/expected.py _COOKIES")


# --- body ---


def _body(operation: ApiOperation, given: Given) -> dict[str, Any]:
    inside = [(item, value) for item, value in given if item.place in {"body", "form"}]
    if operation.body is None:
        return {"empty": True}
    if operation.body.graphql:
        variables = {"variables": {item.name: one for item, one in inside}} if inside else {}
        return {"content_type": "application/json", "json": {"query": operation.body.graphql, **variables}}
    if not inside:
        return {} if operation.body.required else {"empty": True}
    media = media_type(operation.body.content_type)
    first, value = inside[0]
    whole = first.name == ""
    if is_json(media):
        return {"content_type": media, "json": value if whole else {item.name: one for item, one in inside}}
    if whole and isinstance(value, str) and media and "*" not in media:
        return {"content_type": media, "text": value}
    if whole and not isinstance(value, dict):
        return {}
    members = (
        [(name, one, None) for name, one in value.items()]
        if whole
        else [(item.name, one, item.encoding) for item, one in inside]
    )
    if media == _FORM:
        fields = [_form_field(*member) for member in members]
        return _stated(media, "form", fields)
    if media.startswith("multipart/"):
        fields = [_part(*member) for member in members]
        return _stated(media, "parts", fields)
    return {}


def _stated(media: str, key: str, fields: Sequence[Pairs | None]) -> dict[str, Any]:
    if any(field is None for field in fields):
        return {"content_type": media}
    return {"content_type": media, key: [pair for field in fields if field is not None for pair in field]}


def _form_field(name: str, value: Any, encoding: Encoding | None) -> Pairs | None:
    """Return the pairs of a form field.

    Scalars and arrays of scalars are encoded as in a query. All other values are encoded as JSON.
    """
    if encoding is not None and encoding.allow_reserved:
        return None
    if encoding is not None and (encoding.style or encoding.explode is not None):
        return _pairs(name, value, encoding.style, encoding.explode)
    texts = _texts(value)
    if texts is None or (encoding is not None and is_json(encoding.content_type)):
        return [[name, {"json": value}]]
    return [[name, text] for text in texts]


def _part(name: str, value: Any, encoding: Encoding | None) -> Pairs | None:
    """Return a part for each item: a file as text, an object or array as JSON."""
    if encoding is not None and encoding.explode is False:
        return None
    parts: Pairs = []
    for one in value if isinstance(value, list) else [value]:
        text = _scalar(one)
        if encoding is not None and encoding.file:
            parts.append([name, one["text"] if isinstance(one, dict) else one])
        elif text is None or (encoding is not None and is_json(encoding.content_type)):
            parts.append([name, {"json": one}])
        else:
            parts.append([name, text])
    return parts


# --- credentials ---


def _credentials(operation: ApiOperation, api: Api, names: Names) -> list[dict[str, Any]]:
    """Return the credentials of the first alternative, which the runtime uses because tests set all variables."""
    schemes = {scheme.name: scheme for scheme in api.security_schemes}
    usable = [one for one in operation.security if one and all(name in schemes for name in one)]
    built: list[dict[str, Any]] = []
    for name in usable[0] if usable else ():
        scheme = schemes[name]
        if scheme.kind == "mutualTLS":  # the credential is part of TLS, not of the request
            continue
        kind = "bearer" if scheme.kind == "oauth2" else scheme.kind
        variables = list(names.variables[name][: {"basic": 2, "awsSigV4": 0}.get(kind, 1)])
        place, header = (
            ("header", "Authorization") if kind != "apiKey" else (scheme.place or "header", scheme.parameter)
        )
        built.append({"kind": kind, "in": place, "name": header, "variables": variables})
    return built


# --- texts ---


def _texts(value: Any) -> list[str] | None:
    """Return the texts of a scalar or an array of scalars, or None for a nested value."""
    texts = [_scalar(one) for one in (value if isinstance(value, list) else [value])]
    return None if None in texts else [text for text in texts if text is not None]


def _scalar(value: Any) -> str | None:
    """Return a number or boolean as JSON text, and a string unchanged. Return None for any other value."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int | float) else None
