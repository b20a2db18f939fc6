"""Upstream operations as data: methods, paths, parameter styles, names.

The code generator writes these records into generated servers as literals, and `request.build_request` reads them. The
records contain no code, so a generated server shows completely how arguments become requests.

Each module that serializes values has a table with a row for each style. `check_table_complete` checks the table when
the module is loaded. A new style is refused until every table has a row for the style.
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
# Compiled at first use, because the compilation takes 20 ms and few servers use XML.
_NAME: Final = f"{_PART}(?::{_PART})?\\Z"  # XML 1.0 §2.3, with at most one colon (Namespaces in XML §4)


def is_xml_name(name: str) -> bool:
    """Return True if a name is valid for an XML element or attribute, with or without a prefix."""
    return len(name) <= 1000 and re.match(_NAME, name) is not None


def forbidden_header_reason(name: str) -> str:
    """Return the reason why no argument may set a header, or "" if an argument may set the header."""
    if not _TOKEN.fullmatch(name):
        return "is not a valid header name"
    if name.lower() in _CONNECTION_HEADERS or name.lower().startswith("proxy-"):
        return "belongs to the connection"
    return ""


ParameterLocation = Literal["path", "query", "querystring", "header", "cookie"]
"""Location of a parameter, the value of `in`."""

# The first style in each list is the default.
PathStyle = Literal["simple", "label", "matrix", "segments"]
"""Styles of path parameters. `segments` permits slashes, as `{+name}` of discovery documents (RFC 6570 §3.2.3)."""
QueryStyle = Literal["form", "spaceDelimited", "pipeDelimited", "deepObject", "tabDelimited"]
"""Styles of query parameters and of form bodies (Encoding Objects). `tabDelimited` is `tsv` of Swagger 2.0."""
HeaderStyle = Literal["simple"]
CookieStyle = Literal["form", "cookie"]

Style = Literal["", PathStyle, QueryStyle, HeaderStyle, CookieStyle]
"""Serialization style, where "" is the default of the location."""

STYLES: Final[Mapping[ParameterLocation, tuple[Style, ...]]] = {
    "path": get_args(PathStyle),
    "query": get_args(QueryStyle),
    "querystring": (),  # a parameter that is the whole query has no style, only `content`
    "header": get_args(HeaderStyle),
    "cookie": get_args(CookieStyle),
}

FORM_STYLES: Final[tuple[QueryStyle, ...]] = get_args(QueryStyle)

K = TypeVar("K", bound=str)
V = TypeVar("V")


def check_table_complete(table: Mapping[K, V], kinds: Any, name: str) -> Mapping[K, V]:
    """Check that a table has exactly one row for each value of a Literal, and return the table.

    A missing or unknown row raises NotImplementedError.
    """
    wanted = [kind for kind in get_args(kinds) if kind]
    for kind in wanted:
        if kind not in table:
            raise NotImplementedError(
                f"internal error: {name} has no row for {kind!r} (this is a bug; please report it)"
            )
    for kind in table:
        if kind not in wanted:
            raise NotImplementedError(
                f"internal error: {name} has a row for the unknown {kind!r} (this is a bug; please report it)"
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
"""Style → default of `explode`."""


def check_style(place: ParameterLocation, style: str) -> None:
    """Check a location and its style, or raise ValueError."""
    if place not in STYLES:
        raise ValueError(f"{place!r} is not a valid parameter location; use one of {', '.join(STYLES)}")
    if style and style not in STYLES[place]:
        known = ", ".join(STYLES[place]) or "none"
        raise ValueError(
            f"unknown style {style!r} of a {place} parameter; known styles: {known}\nhint: update mcpfactory-runtime"
        )


@dataclass(frozen=True, slots=True)
class Parameter:
    """One OpenAPI parameter, and the tool argument with its value (OpenAPI 3.1 §4.8.12).

    If `style` is "" or `explode` is None, the default of the location applies. A parameter with `content` instead of a
    `schema` has a `content_type`, which determines the serialization. `nested` has the styles of arrays in the array,
    outermost first.
    """

    argument: str
    place: ParameterLocation
    name: str
    style: Style = ""
    explode: bool | None = None
    allow_reserved: bool = False
    content_type: str = ""
    nested: tuple[QueryStyle, ...] = ()

    def __post_init__(self) -> None:
        check_style(self.place, self.style)


@dataclass(frozen=True, slots=True)
class Field:
    """One tool argument in the request body.

    `path` is the location of the argument's value. The path () is the whole body, and ("a", "b") is the property b of
    the object in the property a. `content_type`, `style`, `explode`, `allow_reserved` and `file` come from the Encoding
    Object of a form (OpenAPI 3.1 §4.8.15). `nested` has the styles of arrays in the array, outermost first.
    """

    argument: str
    path: tuple[str, ...] = ()
    content_type: str = ""
    style: Literal["", QueryStyle] = ""
    explode: bool | None = None
    allow_reserved: bool = False
    file: bool = False
    nested: tuple[QueryStyle, ...] = ()

    def __post_init__(self) -> None:
        check_style("query", self.style)


@dataclass(frozen=True, slots=True)
class Xml:
    """XML node of a value in a request body (OpenAPI 3.1 §4.8.26, 3.2 §4.8.26).

    If `name` is empty, the name is that of the member with the value. An array's items have the array's name. A value
    of kind "none" has no node, and the parent gets its members. `members` contains members that are not simply elements
    under their own names. `items` describes each item of an array. `wrapped` encloses the items in a node. Several
    values can share `members` and `items`, in the entry `shape` of `Body.shapes`.
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
    """Request body, with its media type and arguments.

    `xml` is the root of an XML body, and `shapes` are the shapes to which `xml` refers. Without `xml`, an XML body is a
    string argument. `graphql` is the document of a GraphQL request, which is sent as `query` (GraphQL over HTTP §5.2).
    The fields of the body are then the variables of the document.
    """

    content_type: str
    fields: tuple[Field, ...]
    required: bool = False
    xml: Xml | None = None
    shapes: tuple[tuple[str, Xml], ...] = ()
    graphql: str = ""


@dataclass(frozen=True, slots=True)
class Paging:
    """Pagination of the list that an operation returns.

    `kind` determines the value of `argument` in the next call.

    `link` uses only the Link header. `cursor` uses the value at `next` in the answer, or the query of the URL at
    `next`. `last` uses the value at `next`, or the ID of the last item. `page` uses the number of the next page, and
    the first page is `first`. `offset` uses the number of items so far.

    A path consists of member names from the root of the answer. `items` is the path of the list, and () is the answer
    itself. `size` is the argument that limits the size of a page, and `limit` is its default, or 0 if unknown. `more`
    is the path of a flag that reports further items. `done` is the path of a flag that reports the last page. `total`
    is the path of the total number of items. `pages` is the path of the total number of pages.
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

    `security` lists alternatives, in each of which all schemes must be satisfied. The value () means no credentials,
    and an empty alternative means optional credentials. `scopes` maps the name of an OAuth scheme to the scopes that
    the operation needs. `server` is the name of a server of the API, and "" is the root. In older generated servers,
    `server` is a URL, which settings cannot change. `accept` is the Accept header, and an empty value omits the header.
    For a GraphQL request, the base URL is the endpoint, and `path` contains only the operation's name.

    `select` is the name of the argument with a JMESPath expression, which selects a part of the response. `lists` has
    pairs of element names in an XML response, the wrapper of a list (which may be "") and the item. `once` forbids
    retries, for calls that have an effect each time. `headers` are the response headers that results show, in lower
    case.
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
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Server of an API other than the root (OpenAPI 3.1 §4.8.5).

    The variable `MCPF_<SERVER>_<NAME>_BASE_URL` for the server's address contains `name`.
    """

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class OAuthFlow:
    """OAuth flow to get a token (OpenAPI 3.2 §4.29). An unused URL is "". URLs may be relative to the API's base URL.

    With `discovery`, the metadata at `metadata_url` contains all settings (OpenID Connect Discovery, RFC 8414). With
    `serviceAccount`, the key of a separate account signs an assertion, which is exchanged for a token (RFC 7523).
    """

    grant: Literal["clientCredentials", "authorizationCode", "deviceAuthorization", "discovery", "serviceAccount"]
    token_url: str = ""
    authorization_url: str = ""
    device_url: str = ""
    refresh_url: str = ""
    metadata_url: str = ""


@dataclass(frozen=True, slots=True)
class SecurityScheme:
    """Security scheme (OpenAPI 3.1 §4.8.27). `kind` determines the variables and how a credential is sent.

    `apiKey` sends the variable (key,) as `parameter` in `place`. `basic` sends (username, password) as HTTP Basic.
    `bearer` sends (token,) as a bearer token. `oauth2` has (token, client ID, secret, refresh token, account). The
    token, or a token from `flows`, is sent as a bearer token. Variables that the flows do not use are omitted. Older
    servers have only the first three variables. `mutualTLS` uses (certificate, key), which are paths of PEM files.
    `awsSigV4` signs the request with (key ID, secret, session token, region). The session token is for temporary keys,
    and the region is for hosts whose name contains no region.

    `scopes` are all scopes that the server's operations need from an oauth2 scheme. A login requests these scopes.
    `service` is the service of an AWS signature, and "" stands for the service in the address.
    """

    name: str
    kind: Literal["apiKey", "basic", "bearer", "oauth2", "mutualTLS", "awsSigV4"]
    variables: tuple[str, ...]
    place: Literal["", "query", "header", "cookie"] = ""
    parameter: str = ""
    flows: tuple[OAuthFlow, ...] = ()
    scopes: tuple[str, ...] = ()
    service: str = ""
