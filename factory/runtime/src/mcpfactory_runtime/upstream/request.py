"""Conversion of an operation and arguments into an HTTP request (OpenAPI 3.x §4.8.10 – §4.8.15, RFC 7578).

No argument can change another part of the request, because `encoding` escapes values. This module refuses the path
segments `.`, `..` and "", header values with line ends, and headers of the HTTP client.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.auth import NO_CREDENTIALS, AwsKeys, Credentials
from mcpfactory_runtime.upstream.encoding import (
    DELIMITERS,
    JSON_LINES,
    UNSET,
    compact_json,
    delimited,
    encode,
    is_json,
    media_type,
    nested_encoder,
    path_value,
    query_pairs,
    text_of,
    utf8,
)
from mcpfactory_runtime.upstream.operation import (
    EXPLODED,
    STYLES,
    Body,
    CookieStyle,
    Field,
    HeaderStyle,
    Operation,
    Parameter,
    ParameterLocation,
    check_table_complete,
    forbidden_header_reason,
)
from mcpfactory_runtime.upstream.truncate import check_jmespath
from mcpfactory_runtime.upstream.xml import build_xml
from mcpfactory_runtime.urls import Redirect

_TEMPLATE: Final = re.compile(r"\{([^{}]*)\}")
_SLASH: Final = re.compile(r"/(?![^{}]*\})")  # a slash that is not in a template expression
_LITERAL: Final = ":/?@!$&'()*+,;=%"
# Header parameters with these names are ignored (OpenAPI 3.1 §4.8.12.1).
_NAMED_ELSEWHERE: Final = frozenset({"accept", "content-type", "authorization"})


@dataclass(frozen=True, slots=True, repr=False)
class UpstreamRequest:
    """HTTP request. `keys` sign each attempt of the request."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    content: bytes | None = None
    keys: AwsKeys | None = None
    once: bool = False

    def __repr__(self) -> str:
        """Return a text without parts that may contain secrets, such as query, header values and body."""
        names = ", ".join(name for name, _ in self.headers)
        size = "no body" if self.content is None else f"{len(self.content)} bytes"
        return f"UpstreamRequest({self.method} {self.url.partition('?')[0]}, headers {names or 'none'}, {size})"

    def redirected(self, redirect: Redirect) -> UpstreamRequest:
        """Return the request for the target of a redirect, without `Content-` headers if the body is dropped."""
        kept = (
            self.headers
            if redirect.keeps_body
            else tuple(one for one in self.headers if not one[0].lower().startswith("content-"))
        )
        content = self.content if redirect.keeps_body else None
        return replace(self, method=redirect.method, url=redirect.url, headers=kept, content=content)


@dataclass(slots=True)
class _Parts:
    path: dict[str, str] = field(default_factory=dict)
    query: list[str] = field(default_factory=list)
    headers: list[tuple[str, str]] = field(default_factory=list)
    cookies: list[str] = field(default_factory=list)


def build_request(
    operation: Operation,
    arguments: Mapping[str, Any],
    base_url: str,
    credentials: Credentials = NO_CREDENTIALS,
) -> UpstreamRequest:
    """Return the HTTP request for a call of an operation. A value that is not allowed in its location raises ToolError.

    UNSET values and unknown names in `arguments` are not sent. A URL in `operation.server` takes precedence over
    `base_url`.
    """
    given = {name: value for name, value in arguments.items() if value is not UNSET}
    if operation.select in given:
        check_jmespath(given[operation.select])
    parts = _Parts()
    for parameter in operation.parameters:
        if parameter.argument in given:
            _WRITERS[parameter.place](parts, parameter, given[parameter.argument])
    content, content_type = build_body(operation.body, given) if operation.body else (None, "")
    parts.query += [f"{encode(name)}={encode(value)}" for name, value in credentials.query]
    parts.cookies += [f"{name}={encode(value)}" for name, value in credentials.cookies]
    headers = [("Accept", operation.accept)] if operation.accept else []
    headers += [("Content-Type", content_type)] if content is not None else []
    taken = {name.lower() for name, _ in (*headers, *credentials.headers)}
    headers += [(name, value) for name, value in parts.headers if name.lower() not in taken]
    headers += credentials.headers
    if parts.cookies:
        headers.append(("Cookie", "; ".join(parts.cookies)))
    url = _url(operation, base_url, parts)
    return UpstreamRequest(operation.method.upper(), url, tuple(headers), content, credentials.keys, operation.once)


def _url(operation: Operation, base_url: str, parts: _Parts) -> str:
    base = urlsplit(operation.server if "://" in operation.server else base_url)
    template, _, query = operation.path.partition("#")[0].partition("?")
    path = "/".join(_segment(segment, parts.path) for segment in _SLASH.split(template))
    prefix, path = base.path.rstrip("/"), path if path.startswith("/") else f"/{path}"
    if operation.body is not None and operation.body.graphql:  # the endpoint of GraphQL is the base URL
        prefix, path = base.path, ""
    queries = [base.query, _fill(query, parts.path), *parts.query]
    target = "&".join(one for one in queries if one)
    return f"{base.scheme}://{base.netloc}{prefix}{path}" + (f"?{target}" if target else "")


def _fill(template: str, values: Mapping[str, str]) -> str:
    """Encode the literal text of a template, and replace parameters by their values."""
    pieces = _TEMPLATE.split(template)
    for at, piece in enumerate(pieces):
        if at % 2 == 0:
            pieces[at] = encode(piece, _LITERAL)
        elif piece in values:
            pieces[at] = values[piece]
        else:
            raise ToolError(f"The path parameter {piece!r} has no value.")
    return "".join(pieces)


def _segment(template: str, values: Mapping[str, str]) -> str:
    """Return a path segment, but refuse values that servers with early decoding would split."""
    filled = _fill(template, values)
    if "{" in template:
        inside = re.split(r"[/\\]", unquote(filled))
        if filled == "" or inside == ["."] or ".." in inside:
            raise ToolError(
                f"The value for {template} makes the path segment {unquote(filled)!r}, which would address "
                "another resource."
            )
    return filled


def _style(parameter: Parameter) -> tuple[str, bool]:
    style = parameter.style or STYLES[parameter.place][0]
    return style, EXPLODED[style] if parameter.explode is None else parameter.explode


def _content_text(parameter: Parameter, value: Any) -> Any:
    """Return a parameter's value, serialized to a string if the parameter has `content`."""
    if not parameter.content_type:
        return value
    return compact_json(value) if is_json(parameter.content_type) else text_of(value)


def _write_path(parts: _Parts, parameter: Parameter, value: Any) -> None:
    style, explode = _style(parameter)
    content, reserved = _content_text(parameter, value), parameter.allow_reserved
    text = path_value(parameter.name, content, style, explode, reserved, nested=parameter.nested)
    parts.path[parameter.name] = text


def _write_query(parts: _Parts, parameter: Parameter, value: Any) -> None:
    style, explode = _style(parameter)
    content, reserved = _content_text(parameter, value), parameter.allow_reserved
    pairs = query_pairs(parameter.name, content, style, explode, reserved, nested=parameter.nested)
    parts.query += [f"{name}={text}" for name, text in pairs]


def _write_querystring(parts: _Parts, parameter: Parameter, value: Any) -> None:
    """Write a value that is the whole query (OpenAPI 3.2 §4.12.1)."""
    if isinstance(value, Mapping) and media_type(parameter.content_type) == "application/x-www-form-urlencoded":
        pairs = [pair for name, item in value.items() for pair in query_pairs(str(name), item, "form", True, False)]
        parts.query += [f"{name}={text}" for name, text in pairs]
    else:
        parts.query.append(encode(_content_text(parameter, value) if parameter.content_type else text_of(value)))


def _write_header(parts: _Parts, parameter: Parameter, value: Any) -> None:
    name = parameter.name.lower()
    if name in _NAMED_ELSEWHERE or value is None:
        return
    if forbidden_header_reason(name):
        raise ToolError(
            f"The argument {parameter.argument!r} would set the header {parameter.name!r}, which arguments "
            "must not set."
        )
    if parameter.nested and isinstance(value, list):
        value = list(map(nested_encoder(text_of, parameter.nested), value))
    style, explode = _style(parameter)
    text = _HEADERS[style](_content_text(parameter, value), explode)
    parts.headers.append((parameter.name, _check_line(parameter, text.strip(" \t"))))


def _simple_header(value: Any, explode: bool) -> str:
    return delimited(value, ",", text_of, pairs=explode) if isinstance(value, Mapping | list) else text_of(value)


_HEADERS: Final[Mapping[str, Callable[[Any, bool], str]]] = check_table_complete(
    {"simple": _simple_header}, HeaderStyle, "upstream/request.py _HEADERS"
)


def _write_cookie(parts: _Parts, parameter: Parameter, value: Any) -> None:
    style, explode = _style(parameter)
    pairs = _COOKIES[style](parameter.name, _content_text(parameter, value), explode)
    parts.cookies += [f"{name}={_check_line(parameter, text, forbidden=';')}" for name, text in pairs]


def _form_cookies(name: str, value: Any, explode: bool) -> list[tuple[str, str]]:
    return query_pairs(name, value, "form", explode, allow_reserved=False)


def _plain_cookies(name: str, value: Any, explode: bool) -> list[tuple[str, str]]:
    """Return cookies with unencoded values (OpenAPI 3.2 §4.12.2.2)."""
    if isinstance(value, Mapping) and explode:
        return [(encode(str(key)), text_of(item)) for key, item in value.items() if item is not None]
    if isinstance(value, list) and explode:
        return [(encode(name), text_of(item)) for item in value if item is not None]
    text = delimited(value, ",", text_of, pairs=False) if isinstance(value, Mapping | list) else text_of(value)
    return [] if value is None else [(encode(name), text)]


_COOKIES: Final[Mapping[str, Callable[[str, Any, bool], list[tuple[str, str]]]]] = check_table_complete(
    {"form": _form_cookies, "cookie": _plain_cookies}, CookieStyle, "upstream/request.py _COOKIES"
)


def _check_line(parameter: Parameter, text: str, forbidden: str = "") -> str:
    """Return the text, or raise ToolError if the text contains control characters or characters in `forbidden`."""
    utf8(text)
    if any(
        (ord(character) < 32 and character != "\t") or ord(character) == 127 or character in forbidden
        for character in text
    ):
        raise ToolError(
            f"The argument {parameter.argument!r} contains a character that a {parameter.place} cannot contain (a line end?)."
        )
    return text


_WRITERS: Final[Mapping[str, Callable[[_Parts, Parameter, Any], None]]] = check_table_complete(
    {
        "path": _write_path,
        "query": _write_query,
        "querystring": _write_querystring,
        "header": _write_header,
        "cookie": _write_cookie,
    },
    ParameterLocation,
    "upstream/request.py _WRITERS",
)


_FORM: Final = "application/x-www-form-urlencoded"


def build_body(body: Body, arguments: Mapping[str, Any]) -> tuple[bytes | None, str]:
    """Return the content and its Content-Type, or (None, "") for an optional body without fields."""
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
    """Return the value of the body: the field for the whole body, with each other field at its path."""
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
        return query_pairs(name, value, style, explode, encoding.allow_reserved, nested=encoding.nested)
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
    boundary = "mcpfactory-" + hashlib.sha256(b"\r\n".join(parts)).hexdigest()[:40]  # reproducible
    lines = b"".join(b"--" + boundary.encode() + b"\r\n" + part + b"\r\n" for part in parts)
    return lines + f"--{boundary}--\r\n".encode(), f"{kind}; boundary={boundary}"


def _parts(name: str, value: Any, encoding: Field | None) -> list[bytes]:
    """Return the parts for a value: one for each item of an array, unless its encoding joins the items or is JSON."""
    if value is None:
        return []
    encoding = encoding or Field("")
    encoded = nested_encoder(text_of, encoding.nested)
    whole = is_json(encoding.content_type) and not (encoding.explode or encoding.file)
    if isinstance(value, list) and encoding.explode is False and not whole:
        value = delimited(value, DELIMITERS[encoding.style or "form"], encoded, pairs=False)
    items = value if isinstance(value, list) and not whole else [value]
    items = list(map(encoded, items)) if encoding.nested else items
    return [_part(name, item, encoding) for item in items if item is not None]


def _part(name: str, value: Any, encoding: Field) -> bytes:
    disposition = f'form-data; name="{_quoted(name)}"'
    content_type = _definite_type(encoding.content_type)
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
    """Escape a name for use inside quotes, like browsers (HTML, multipart/form-data encoding algorithm)."""
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _definite_type(content_type: str) -> str:
    """Return the first of a list of media types, or "" if this type is a range."""
    first = content_type.partition(",")[0].strip()
    return "" if "*" in first else first


def _file(value: Any) -> tuple[bytes, str, str]:
    """Return content, file name and content type of a file argument.

    The argument is text, or an object with `text` or `base64`, and optionally `filename` and `content_type`. Local
    paths are never read.
    """
    if not isinstance(value, Mapping):
        return utf8(text_of(value)), "", ""
    name, content_type = str(value.get("filename") or ""), str(value.get("content_type") or "")
    if any(ord(character) < 32 or ord(character) == 127 for character in content_type):
        raise ToolError("The content_type of a file contains a control character.")
    if isinstance(value.get("base64"), str):
        try:
            return b64decode(value["base64"], validate=True), name, content_type
        except (Base64Error, ValueError):
            raise ToolError("A file argument contains invalid base64.") from None
    if isinstance(value.get("text"), str):
        return utf8(value["text"]), name, content_type
    raise ToolError('A file argument must be a string, or an object with "text" or "base64"; local paths are not read.')


# --- other bodies ---


def _raw(value: Any, content_type: str) -> tuple[bytes, str]:
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
        raise ToolError(f"The body is {kind} and must be given as one string.")
    charset = "; charset=utf-8" if kind.startswith("text/") and "charset" not in content_type.lower() else ""
    return utf8(text_of(value)), content_type + charset


def _guess(value: Any) -> str:
    if isinstance(value, Mapping):
        return "application/octet-stream" if {"text", "base64"} & set(value) else "application/json"
    return "application/json" if isinstance(value, list) else "text/plain"
