"""Arguments → the bytes of a request body, per media type (OpenAPI 3.1 §4.8.13 – §4.8.15, RFC 7578 for multipart)."""

from __future__ import annotations

import hashlib
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from typing import Any, Final

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.encoding import (
    UNSET,
    compact_json,
    delimited,
    is_json,
    media_type,
    query_pairs,
    text_of,
    utf8,
)
from mcpfactory_runtime.upstream.operation import EXPLODED, Body, Field, QueryStyle, complete
from mcpfactory_runtime.upstream.xml import build_xml

_FORM: Final = "application/x-www-form-urlencoded"
JSON_LINES: Final = frozenset(
    {
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/x-jsonl",
        "application/x-jsonlines",
    }
)
_DELIMITERS: Final = complete(
    {"form": ",", "spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t", "deepObject": ","},
    QueryStyle,
    "upstream/body.py _DELIMITERS",
)
"""Between items that share one part of a multipart body; `deepObject` says nothing about these."""


def build_body(body: Body, arguments: Mapping[str, Any]) -> tuple[bytes | None, str]:
    """Return the content and its Content-Type; (None, "") when no field was given and the body is not required.

    Raises:
        ToolError: a value cannot be sent as this media type.
    """
    fields = [one for one in body.fields if arguments.get(one.argument, UNSET) is not UNSET]
    if not fields and not body.graphql and (not body.required or any(one.path == () for one in body.fields)):
        return None, ""
    value = _merge(fields, arguments)
    if body.graphql:
        value = {"query": body.graphql, **({"variables": value} if fields else {})}
    kind = media_type(body.content_type)
    if is_json(kind):
        return utf8(compact_json(value)), body.content_type
    if body.xml is not None and isinstance(value, Mapping | list):
        return build_xml(value, body.xml, dict(body.shapes)), body.content_type
    encodings = {one.path[0]: one for one in body.fields if one.path}
    if kind == _FORM and isinstance(value, Mapping):
        return _form(value, encodings), body.content_type
    if kind.startswith("multipart/") and isinstance(value, Mapping):
        return _multipart(value, encodings, kind)
    return _raw(value, body.content_type)


def _merge(fields: list[Field], arguments: Mapping[str, Any]) -> Any:
    """Return the value of the body: the whole, or an object with every field at its path."""
    value: Any = None
    for one in sorted(fields, key=lambda one: len(one.path)):
        given = arguments[one.argument]
        if not one.path:
            value = dict(given) if isinstance(given, Mapping) else given
            continue
        if not isinstance(value, dict):
            value = {}
        place = value
        for key in one.path[:-1]:
            inner = place.get(key)
            place[key] = dict(inner) if isinstance(inner, Mapping) else {}
            place = place[key]
        place[one.path[-1]] = given
    return {} if value is None and not any(one.path == () for one in fields) else value


# --- forms ---


def _form(value: Mapping[str, Any], encodings: Mapping[str, Field]) -> bytes:
    pairs = [pair for name, item in value.items() for pair in _form_pairs(str(name), item, encodings.get(name))]
    return "&".join(f"{name}={text}" for name, text in pairs).encode("ascii")


def _form_pairs(name: str, value: Any, encoding: Field | None) -> list[tuple[str, str]]:
    if encoding and (encoding.style or encoding.explode is not None or encoding.allow_reserved):
        style = encoding.style or "form"
        explode = EXPLODED[style] if encoding.explode is None else encoding.explode
        return query_pairs(name, value, style, explode, encoding.allow_reserved)
    if encoding and is_json(encoding.content_type):
        return query_pairs(name, compact_json(value), "form", True, False)
    if isinstance(value, Mapping) or (
        isinstance(value, list) and any(isinstance(one, Mapping | list) for one in value)
    ):
        return query_pairs(name, compact_json(value), "form", True, False)
    return query_pairs(name, value, "form", True, False)


# --- multipart ---


def _multipart(value: Mapping[str, Any], encodings: Mapping[str, Field], kind: str) -> tuple[bytes, str]:
    parts = [part for name, item in value.items() for part in _parts(str(name), item, encodings.get(name))]
    boundary = "mcpfactory-" + hashlib.sha256(b"\r\n".join(parts)).hexdigest()[:40]  # the same body, the same bytes
    lines = b"".join(b"--" + boundary.encode() + b"\r\n" + part + b"\r\n" for part in parts)
    return lines + f"--{boundary}--\r\n".encode(), f"{kind}; boundary={boundary}"


def _parts(name: str, value: Any, encoding: Field | None) -> list[bytes]:
    """Return an array makes one part for each item, unless its encoding says that the items share one."""
    if value is None:
        return []
    encoding = encoding or Field("")
    if isinstance(value, list) and encoding.explode is False:
        value = delimited(value, _DELIMITERS[encoding.style or "form"], str, pairs=False)
    items = value if isinstance(value, list) else [value]
    return [_part(name, item, encoding) for item in items if item is not None]


def _part(name: str, value: Any, encoding: Field) -> bytes:
    disposition = f'form-data; name="{_quoted(name)}"'
    content_type = _one_type(encoding.content_type)
    if encoding.file:
        data, filename, given_type = _file(value)
        disposition += f'; filename="{_quoted(filename or name)}"'
        content_type = given_type or content_type or "application/octet-stream"
    elif isinstance(value, Mapping | list) or is_json(content_type):
        data, content_type = utf8(compact_json(value)), content_type or "application/json"
    else:
        data = utf8(text_of(value))
    head = f"Content-Disposition: {disposition}\r\n" + (f"Content-Type: {content_type}\r\n" if content_type else "")
    return utf8(head) + b"\r\n" + data


def _quoted(text: str) -> str:
    """Return a name inside quotes, escaped as browsers do (HTML, multipart/form-data encoding algorithm)."""
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _one_type(content_type: str) -> str:
    """Return the first of a list of types, if it is a definite one."""
    first = content_type.partition(",")[0].strip()
    return "" if "*" in first else first


def _file(value: Any) -> tuple[bytes, str, str]:
    """Return a file argument: text, or an object with `text` or `base64`, and perhaps `filename` and `content_type`.

    Returns:
        Content, file name and content type; the last two "" when not given. Local paths are never read.
    """
    if not isinstance(value, Mapping):
        return utf8(text_of(value)), "", ""
    name, content_type = str(value.get("filename") or ""), str(value.get("content_type") or "")
    if any(ord(character) < 32 or ord(character) == 127 for character in content_type):
        raise ToolError("The content_type of a file holds a control character.")
    if isinstance(value.get("base64"), str):
        try:
            return b64decode(value["base64"], validate=True), name, content_type
        except (Base64Error, ValueError):
            raise ToolError("The base64 of a file argument is not valid base64.") from None
    if isinstance(value.get("text"), str):
        return utf8(value["text"]), name, content_type
    raise ToolError('A file argument is a text, or an object with "text" or "base64"; local paths are not read.')


# --- everything else ---


def _raw(value: Any, content_type: str) -> tuple[bytes, str]:
    """Text as UTF-8, files as their bytes."""
    kind = media_type(content_type)
    if "*" in kind:
        kind = content_type = _guess(value)
    if is_json(kind):
        return utf8(compact_json(value)), content_type
    if kind in JSON_LINES and isinstance(value, list):
        return utf8("".join(compact_json(line) + "\n" for line in value)), content_type
    if isinstance(value, Mapping) and {"text", "base64"} & set(value):
        data, _, given_type = _file(value)
        return data, given_type or content_type
    if isinstance(value, Mapping | list):
        raise ToolError(f"The body is {kind} and must be given as one text.")
    charset = "; charset=utf-8" if kind.startswith("text/") and "charset" not in content_type.lower() else ""
    return utf8(text_of(value)), content_type + charset


def _guess(value: Any) -> str:
    """Return a definite type for a range such as */*."""
    if isinstance(value, Mapping):
        return "application/octet-stream" if {"text", "base64"} & set(value) else "application/json"
    return "application/json" if isinstance(value, list) else "text/plain"
