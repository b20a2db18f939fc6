"""Upstream operations as data: methods, paths, parameter styles, names.

The code generator writes these records into generated servers as literals, and `request.build_request` reads them. The
records contain no code, so a generated server shows completely how arguments become requests.

Each module that serializes values has a table with a row per style. `check_table_complete` checks the table when the
module is loaded. There is no default: a new style is refused until every table has a row for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, get_args

_CONNECTION_HEADERS: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect"}
)
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIRST: Final = (
    "A-Z_a-z\\xC0-\\xD6\\xD8-\\xF6\\xF8-\\u02FF\\u0370-\\u037D\\u037F-\\u1FFF\\u200C\\u200D\\u2070-\\u218F"
    "\\u2C00-\\u2FEF\\u3001-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFFD\\U00010000-\\U000EFFFF"
)
_PART: Final = f"[{_FIRST}][{_FIRST}\\-.0-9\\xB7\\u0300-\\u036F\\u203F\\u2040]*"
# Compiled at first use, because compilation takes 20 ms and few servers use XML.
_NAME: Final = f"{_PART}(?::{_PART})?\\Z"  # XML 1.0 §2.3, with at most one colon (Namespaces in XML §4)


def is_xml_name(name: str) -> bool:
    """Return True if the name is valid for an XML element or attribute, with or without a prefix."""
    return len(name) <= 1000 and re.match(_NAME, name) is not None


def forbidden_header_reason(name: str) -> str:
    """Return why no argument may set a header ("belongs to the connection"), or "" if an argument may set it."""
    if not _TOKEN.fullmatch(name):
        return "is not a valid header name"
    if name.lower() in _CONNECTION_HEADERS or name.lower().startswith("proxy-"):
        return "belongs to the connection"
    return ""


ParameterLocation = Literal["path", "query", "querystring", "header", "cookie"]
"""Location of a parameter: the values of `in`."""

# The first style in each list is the default.
PathStyle = Literal["simple", "label", "matrix", "segments"]
"""`segments` is `{+name}` of discovery documents (RFC 6570 §3.2.3): slashes in the value separate path segments."""
QueryStyle = Literal["form", "spaceDelimited", "pipeDelimited", "deepObject", "tabDelimited"]
"""Styles of query parameters and of form bodies (Encoding Objects). `tabDelimited` is `tsv` of Swagger 2.0."""
HeaderStyle = Literal["simple"]
CookieStyle = Literal["form", "cookie"]

Style = Literal["", PathStyle, QueryStyle, HeaderStyle, CookieStyle]
"""Serialization style; "" is the default of the location."""

STYLES: Final[Mapping[ParameterLocation, tuple[Style, ...]]] = {
    "path": get_args(PathStyle),
    "query": get_args(QueryStyle),
    "querystring": (),  # a parameter in the query string has no style, only `content`
    "header": get_args(HeaderStyle),
    "cookie": get_args(CookieStyle),
}

FORM_STYLES: Final[tuple[QueryStyle, ...]] = get_args(QueryStyle)

K = TypeVar("K", bound=str)
V = TypeVar("V")


def check_table_complete(table: Mapping[K, V], kinds: Any, name: str) -> Mapping[K, V]:
    """Check that the table has exactly one row for each style (or location) in `kinds`, and return the table.

    Args:
        table: rows by style.
        kinds: a Literal of this module.
        name: file and name of the table, for the message.

    Raises:
        NotImplementedError: a row is missing or unknown.
    """
    wanted = [kind for kind in get_args(kinds) if kind]
    for kind in wanted:
        if kind not in table:
            raise NotImplementedError(f"{name} has no row for {kind!r} of upstream/operation.py: add a row")
    for kind in table:
        if kind not in wanted:
            raise NotImplementedError(
                f"{name} has a row for {kind!r}, which upstream/operation.py does not list: remove the row"
            )
    return table


check_table_complete(STYLES, ParameterLocation, "upstream/operation.py STYLES")

EXPLODED: Final[Mapping[str, bool]] = check_table_complete(
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
    "upstream/operation.py EXPLODED",
)
"""Default of `explode` by style."""


def check_style(place: ParameterLocation, style: str) -> None:
    """Check a location and its style.

    Raises:
        ValueError: the location or its style is unknown.
    """
    if place not in STYLES:
        raise ValueError(f"{place!r} is not a valid place for a parameter; use one of {', '.join(STYLES)}")
    if style and style not in STYLES[place]:
        known = ", ".join(STYLES[place]) or "none"
        raise ValueError(
            f"the style {style!r} does not exist in {place} (known styles: {known}); update mcpfactory-runtime?"
        )


@dataclass(frozen=True, slots=True)
class Parameter:
    """One OpenAPI parameter and the tool argument that fills it (OpenAPI 3.1 §4.8.12).

    If `style` is "" or `explode` is None, the default of the parameter's location applies. A parameter that is
    described by `content` instead of `schema` has a `content_type`, and is serialized as that media type.
    """

    argument: str
    place: ParameterLocation
    name: str
    style: Style = ""
    explode: bool | None = None
    allow_reserved: bool = False
    content_type: str = ""

    def __post_init__(self) -> None:
        check_style(self.place, self.style)


@dataclass(frozen=True, slots=True)
class Field:
    """One tool argument inside the request body.

    `path` locates the argument's value: () is the whole body; ("a", "b") is the property b of the object in the
    property a. `content_type`, `style`, `explode`, `allow_reserved` and `file` come from the Encoding Object of form
    bodies (OpenAPI 3.1 §4.8.15); `file` marks a part that is sent as a file.
    """

    argument: str
    path: tuple[str, ...] = ()
    content_type: str = ""
    style: Literal["", QueryStyle] = ""
    explode: bool | None = None
    allow_reserved: bool = False
    file: bool = False

    def __post_init__(self) -> None:
        check_style("query", self.style)


@dataclass(frozen=True, slots=True)
class Xml:
    """XML node of a value in a request body (OpenAPI 3.1 §4.8.26, 3.2 §4.8.26).

    An empty `name` stands for the name of the member with the value; an item of an array takes the name of the array.
    A value of kind "none" has no node; the value's members become members of the parent. `members` describes the
    members of an object that are not simply elements under their own names. `items` describes each item of an array;
    items are siblings unless `wrapped` in a node. If several values share `members` and `items`, `shape` is the name of
    their entry in `Body.shapes`.
    """

    name: str = ""
    kind: Literal["element", "attribute", "text", "cdata", "none"] = "element"
    namespace: str = ""
    prefix: str = ""
    wrapped: bool = False
    members: tuple[tuple[str, Xml], ...] = ()
    items: Xml | None = None
    shape: str = ""


@dataclass(frozen=True, slots=True)
class Body:
    """Request body: its media type, and the arguments that it contains.

    `xml` is the root of a body that is sent as XML; `shapes` are the shapes that `xml` refers to. Without `xml`, an XML
    body is a string argument. `graphql` is the document of a GraphQL request. The document is sent as `query` (GraphQL
    over HTTP §5.2); the fields are its variables.
    """

    content_type: str
    fields: tuple[Field, ...]
    required: bool = False
    xml: Xml | None = None
    shapes: tuple[tuple[str, Xml], ...] = ()
    graphql: str = ""


@dataclass(frozen=True, slots=True)
class Paging:
    """Pagination of the list that an operation returns, with `argument` for the next page (see `paging`).

    kind      value of `argument` in the next call
    link      from the Link header only
    cursor    the value in the answer at `next`, or the query of a URL there
    last      the value at `next`, or the ID of the last of `items`
    page      the next page; the first is `first`
    offset    the number of items so far

    Paths are member names from the root of the answer; () as `items` is the answer itself. `size` is the argument that
    limits the size of a page; `limit` is the argument's default (0 if unknown). `more` is the path of a flag that
    reports further items. `done` is the path of a flag that reports the last page. `total` is the path of the total
    number of items. `pages` is the path of the total number of pages.
    """

    kind: Literal["link", "cursor", "last", "page", "offset"]
    argument: str
    next: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    size: str = ""
    limit: int = 0
    first: int = 1
    more: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    total: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of an upstream API.

    `security` lists alternatives; each alternative is a set of schemes (by name) that must all be satisfied. () means
    that the operation needs no credentials; with an empty alternative, credentials are optional. `scopes` are the
    scopes that the operation needs from its OAuth schemes, by scheme name. `server` is the name of a server of the API
    other than its root; "" is the root. In older generated servers it is a URL, which settings cannot change. `accept`
    is sent as the Accept header ("": not set). If the body is a GraphQL request, the base URL is the endpoint, and
    `path` contains only the operation's name. `paging` describes how to get the next page if the answer is one page of
    a list. `select` names the argument that holds a JMESPath expression. The result is the selected part of the
    response. `lists` are pairs of element names in an XML response: the wrapper of a list (or ""), and its item.
    `once`: never retry a call, even of an idempotent method, because each call has another effect.
    """

    method: str
    path: str
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    security: tuple[tuple[str, ...], ...] = ()
    server: str = ""
    accept: str = "application/json"
    scopes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    paging: Paging | None = None
    select: str = ""
    lists: tuple[tuple[str, str], ...] = ()
    once: bool = False


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Server of the API other than its root (OpenAPI 3.1 §4.8.5).

    `name` appears in the variable for the server's address, `MCPF_<SERVER>_<NAME>_BASE_URL`.
    """

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class OAuthFlow:
    """OAuth flow to get a token (OpenAPI 3.2 §4.29). URLs may be relative to the API's base URL; an unused URL is "".

    `discovery`: all settings are in the metadata at `metadata_url` (OpenID Connect Discovery, RFC 8414).
    `serviceAccount`: the key of a separate account signs an assertion, and the assertion is exchanged for a token (RFC
    7523).
    """

    grant: Literal["clientCredentials", "authorizationCode", "deviceAuthorization", "discovery", "serviceAccount"]
    token_url: str = ""
    authorization_url: str = ""
    device_url: str = ""
    refresh_url: str = ""
    metadata_url: str = ""


@dataclass(frozen=True, slots=True)
class SecurityScheme:
    """Security scheme: how a credential is sent, and its environment variables (OpenAPI 3.1 §4.8.27).

    Each kind, its variables and the form in which it is sent::

        kind        variables                     sent as
        apiKey      (key,)                        `name` in `place`
        basic       (username, password)          Authorization: Basic
        bearer      (token,)                      Authorization: Bearer, a token made elsewhere
        oauth2      (token, client id, secret,    Authorization: Bearer, that token or one from `flows`; older servers
                     refresh token, account)      have the first three; variables that the flows do not use are absent
        mutualTLS   (certificate, key)            TLS, with these PEM files (paths); the key may be in the
                                                  certificate's file
        awsSigV4    (key id, secret, session      Authorization: AWS4-HMAC-SHA256, a signature of the request; the
                     token, region)               session token is for temporary keys, the region for hosts without one

    `scopes` are all scopes that the server's operations need from an oauth2 scheme; a login requests them. `service` is
    the service of an AWS signature; "" stands for the service in the address.
    """

    name: str
    kind: Literal["apiKey", "basic", "bearer", "oauth2", "mutualTLS", "awsSigV4"]
    variables: tuple[str, ...]
    place: Literal["", "query", "header", "cookie"] = ""
    parameter: str = ""
    flows: tuple[OAuthFlow, ...] = ()
    scopes: tuple[str, ...] = ()
    service: str = ""
