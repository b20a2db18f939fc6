"""Operation and arguments → the HTTP request, as a pure function (OpenAPI 3.x §4.8.10 – §4.8.15, Swagger 2.0 by way of it).

No argument can leave its place: see `encoding` for values; here a path segment that would become `.`, `..` or empty, a
header value with a line end, and a header that belongs to the HTTP client are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.auth import NO_CREDENTIALS, AwsKeys, Credentials
from mcpfactory_runtime.upstream.body import build_body
from mcpfactory_runtime.upstream.encoding import (
    UNSET,
    compact_json,
    delimited,
    encode,
    is_json,
    media_type,
    path_value,
    query_pairs,
    text_of,
    utf8,
)
from mcpfactory_runtime.upstream.operation import (
    EXPLODED,
    STYLES,
    CookieStyle,
    HeaderStyle,
    Operation,
    Parameter,
    ParameterLocation,
    complete,
    unusable_header,
)
from mcpfactory_runtime.upstream.truncate import check
from mcpfactory_runtime.urls import Redirect

_TEMPLATE: Final = re.compile(r"\{([^{}]*)\}")
_SLASH: Final = re.compile(r"/(?![^{}]*\})")  # not one inside a template expression
_LITERAL: Final = ":/?@!$&'()*+,;=%"
_NAMED_ELSEWHERE: Final = frozenset(
    {"accept", "content-type", "authorization"}
)  # §4.8.12.1: such parameters are ignored


@dataclass(frozen=True, slots=True, repr=False)
class UpstreamRequest:
    """HTTP request.

    `url` is encoded and complete; `content` is None without a body; `keys` sign it when it is sent. `once`: it is
    never sent a second time.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    content: bytes | None = None
    keys: AwsKeys | None = None
    once: bool = False

    def __repr__(self) -> str:
        """Without query, header values and body, which may hold secrets."""
        names = ", ".join(name for name, _ in self.headers)
        size = "no body" if self.content is None else f"{len(self.content)} bytes"
        return f"UpstreamRequest({self.method} {self.url.partition('?')[0]}, headers {names or 'none'}, {size})"

    def redirected(self, redirect: Redirect) -> UpstreamRequest:
        """Return the request that goes where a redirect leads; without a body it has no headers of one."""
        kept = self.headers if redirect.keeps_body else tuple(one for one in self.headers if not _of_body(one[0]))
        content = self.content if redirect.keeps_body else None
        return replace(self, method=redirect.method, url=redirect.url, headers=kept, content=content)


def _of_body(header: str) -> bool:
    return header.lower().startswith("content-")


@dataclass(slots=True)
class _Parts:
    """The request while it is being put together."""

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
    """Put the arguments where the operation says they travel.

    Args:
        operation: the binding.
        arguments: values by argument name; UNSET ones and unknown names are not sent.
        base_url: where the operation's server is, with or without a path; a URL as `server` goes before it.
        credentials: what `auth.credentials_for` found.

    Raises:
        ToolError: a value cannot stand in its place.
    """
    given = {name: value for name, value in arguments.items() if value is not UNSET}
    if operation.select in given:
        check(given[operation.select])
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
    if operation.body is not None and operation.body.graphql:  # the base URL is the endpoint
        prefix, path = base.path, ""
    queries = [base.query, _fill(query, parts.path), *parts.query]
    target = "&".join(one for one in queries if one)
    return f"{base.scheme}://{base.netloc}{prefix}{path}" + (f"?{target}" if target else "")


def _fill(template: str, values: Mapping[str, str]) -> str:
    """Literal text of the template, encoded where a URL needs it, with the parameters filled in."""
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
    """One segment of the path. What an argument put there stays one segment, also for servers that decode before routing."""
    filled = _fill(template, values)
    if "{" in template:
        inside = re.split(r"[/\\]", unquote(filled))
        if filled == "" or inside == ["."] or ".." in inside:
            raise ToolError(
                f"The value for {template} makes the path segment {unquote(filled)!r}, which would address another resource."
            )
    return filled


def _style(parameter: Parameter) -> tuple[str, bool]:
    style = parameter.style or STYLES[parameter.place][0]
    return style, EXPLODED[style] if parameter.explode is None else parameter.explode


def _typed(parameter: Parameter, value: Any) -> Any:
    """Return the value of a parameter described by `content`: already one text."""
    if not parameter.content_type:
        return value
    return compact_json(value) if is_json(parameter.content_type) else text_of(value)


def _write_path(parts: _Parts, parameter: Parameter, value: Any) -> None:
    style, explode = _style(parameter)
    text = path_value(parameter.name, _typed(parameter, value), style, explode, parameter.allow_reserved)
    parts.path[parameter.name] = text


def _write_query(parts: _Parts, parameter: Parameter, value: Any) -> None:
    style, explode = _style(parameter)
    pairs = query_pairs(parameter.name, _typed(parameter, value), style, explode, parameter.allow_reserved)
    parts.query += [f"{name}={text}" for name, text in pairs]


def _write_querystring(parts: _Parts, parameter: Parameter, value: Any) -> None:
    """Write a value that is the whole query (OpenAPI 3.2 §4.12.1)."""
    if isinstance(value, Mapping) and media_type(parameter.content_type) == "application/x-www-form-urlencoded":
        pairs = [pair for name, item in value.items() for pair in query_pairs(str(name), item, "form", True, False)]
        parts.query += [f"{name}={text}" for name, text in pairs]
    else:
        parts.query.append(encode(_typed(parameter, value) if parameter.content_type else text_of(value)))


def _write_header(parts: _Parts, parameter: Parameter, value: Any) -> None:
    name = parameter.name.lower()
    if name in _NAMED_ELSEWHERE or value is None:
        return
    if unusable_header(name):
        raise ToolError(
            f"The argument {parameter.argument!r} would set the header {parameter.name!r}, which is not for arguments."
        )
    style, explode = _style(parameter)
    text = _HEADERS[style](_typed(parameter, value), explode)
    parts.headers.append((parameter.name, _line(parameter, text.strip(" \t"))))


def _simple_header(value: Any, explode: bool) -> str:
    return delimited(value, ",", _as_is, pairs=explode) if isinstance(value, Mapping | list) else text_of(value)


_HEADERS: Final[Mapping[str, Callable[[Any, bool], str]]] = complete(
    {"simple": _simple_header}, HeaderStyle, "upstream/request.py _HEADERS"
)


def _write_cookie(parts: _Parts, parameter: Parameter, value: Any) -> None:
    style, explode = _style(parameter)
    pairs = _COOKIES[style](parameter.name, _typed(parameter, value), explode)
    parts.cookies += [f"{name}={_line(parameter, text, forbidden=';')}" for name, text in pairs]


def _form_cookies(name: str, value: Any, explode: bool) -> list[tuple[str, str]]:
    return query_pairs(name, value, "form", explode, allow_reserved=False)


def _plain_cookies(name: str, value: Any, explode: bool) -> list[tuple[str, str]]:
    """OpenAPI 3.2 §4.12.2.2: nothing is encoded, so what would end the cookie cannot be sent."""
    if isinstance(value, Mapping) and explode:
        return [(encode(str(key)), text_of(item)) for key, item in value.items() if item is not None]
    if isinstance(value, list) and explode:
        return [(encode(name), text_of(item)) for item in value if item is not None]
    text = delimited(value, ",", _as_is, pairs=False) if isinstance(value, Mapping | list) else text_of(value)
    return [] if value is None else [(encode(name), text)]


_COOKIES: Final[Mapping[str, Callable[[str, Any, bool], list[tuple[str, str]]]]] = complete(
    {"form": _form_cookies, "cookie": _plain_cookies}, CookieStyle, "upstream/request.py _COOKIES"
)


def _as_is(text: str) -> str:
    return text


def _line(parameter: Parameter, text: str, forbidden: str = "") -> str:
    """Return a text that stays on its header line."""
    utf8(text)
    if any(
        (ord(character) < 32 and character != "\t") or ord(character) == 127 or character in forbidden
        for character in text
    ):
        raise ToolError(
            f"The argument {parameter.argument!r} holds a character that a {parameter.place} cannot carry (a line end?)."
        )
    return text


_WRITERS: Final[Mapping[str, Callable[[_Parts, Parameter, Any], None]]] = complete(
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
