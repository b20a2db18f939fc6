"""Upstream operations as data: methods, paths, parameter styles, names.

These records are written into generated servers as literals, built by the code generator and read by
`request.build_request`. They hold no behaviour, so that a reader of a generated server sees the whole binding.

Whoever writes values has a table with a row for each style, checked by `complete` when its module is loaded. There is no
default: a style that is added here is refused until every table has its row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, get_args

_OF_THE_CLIENT: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect"}
)
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIRST: Final = (
    "A-Z_a-z\\xC0-\\xD6\\xD8-\\xF6\\xF8-\\u02FF\\u0370-\\u037D\\u037F-\\u1FFF\\u200C\\u200D\\u2070-\\u218F"
    "\\u2C00-\\u2FEF\\u3001-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFFD\\U00010000-\\U000EFFFF"
)
_PART: Final = f"[{_FIRST}][{_FIRST}\\-.0-9\\xB7\\u0300-\\u036F\\u203F\\u2040]*"
_NAME: Final = re.compile(f"{_PART}(?::{_PART})?\\Z")  # XML 1.0 §2.3, with at most one colon (Namespaces in XML §4)


def is_xml_name(name: str) -> bool:
    """Whether an element or attribute may be called so, with or without a prefix."""
    return len(name) <= 1000 and _NAME.match(name) is not None


def unusable_header(name: str) -> str:
    """Why no argument can set the header of this name ("is no …"); "" when one can."""
    if not _TOKEN.fullmatch(name):
        return "is no name of a header"
    if name.lower() in _OF_THE_CLIENT or name.lower().startswith("proxy-"):
        return "belongs to the connection"
    return ""


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
            raise NotImplementedError(f"{name} has no row for {kind!r} of upstream/operation.py: add one")
    for kind in table:
        if kind not in wanted:
            raise NotImplementedError(
                f"{name} has a row for {kind!r}, which upstream/operation.py does not list: remove it"
            )
    return table


complete(STYLES, ParameterLocation, "upstream/operation.py STYLES")

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
    "upstream/operation.py EXPLODED",
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


@dataclass(frozen=True, slots=True)
class Parameter:
    """One OpenAPI parameter and the tool argument that fills it (OpenAPI 3.1 §4.8.12).

    `style` "" and `explode` None mean the default of the place; `content_type` is set for a parameter that is
    described by `content` instead of `schema` and is then serialised as that media type.
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

    `path` is where its value goes: () is the whole body, ("a", "b") the property b of the object at property a.
    `content_type`, `style`, `explode`, `allow_reserved` and `file` come from the Encoding Object of form bodies
    (OpenAPI 3.1 §4.8.15); `file` marks a part that travels as a file.
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
    """The node that a value becomes in an XML body (OpenAPI 3.1 §4.8.26, 3.2 §4.8.26).

    `name` "" is the name of the member that holds the value; an item of an array takes that of the array. A value of kind
    "none" has no node of its own: its members become its holder's. `members` are those of an object that are not plainly
    elements under their own names; `items` is what each item of an array becomes, side by side unless `wrapped` in a node.
    `shape` names the one of `Body.shapes` that has `members` and `items` for several values.
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
    """The request body: its media type and the arguments it is made of.

    `xml` is the root of a body that travels as XML, `shapes` what it refers to; without it XML is given as one text.
    `graphql` is the document of a GraphQL request, which is sent as `query` (GraphQL over HTTP §5.2); the fields are its variables.
    """

    content_type: str
    fields: tuple[Field, ...]
    required: bool = False
    xml: Xml | None = None
    shapes: tuple[tuple[str, Xml], ...] = ()
    graphql: str = ""


@dataclass(frozen=True, slots=True)
class Paging:
    """How the list that an operation returns goes on, by way of `argument` (see `paging`).

    kind      the next call has in `argument`
    link      what a Link header says; nothing in the answer does
    cursor    what stands in the answer at `next`: the value itself, or a URL whose query has it
    last      what stands at `next`, or the id of the last of `items`
    page      the next page; the first is `first`
    offset    the number of items so far

    Paths are member names from the root of the answer; () as `items` is the answer itself. `size` is the argument that
    bounds a page, `limit` its default (0: unknown). `more` leads to a flag that there is more, `done` to one that there is not,
    `total` to the number of all items, `pages` to that of all pages.
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

    `security` lists alternatives; each is the set of scheme names that must be satisfied together. () means that the
    operation needs no credentials; an empty alternative among others makes them optional. `scopes` are those that it asks
    of its OAuth schemes, by scheme name.
    `server` is the name of another server of the API than its root, which is ""; servers made before there were names have
    a URL here, which nothing moves.
    `accept` is sent as the Accept header ("" sends none of ours).
    Where the body is a GraphQL request, the base URL is the endpoint, and `path` only the operation's name.
    `paging` says how to go on where the answer is one page of a list. `select` names the argument that holds a JMESPath
    expression; what it selects of the answer is the result.
    `lists` are pairs of names of elements in an XML answer: the second is an item of a list, the first stands around the items, or is "".
    `once`: a call is never repeated, also where the method could be: each does more than the one before.
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
    """A server of the API beside its root (OpenAPI 3.1 §4.8.5). `name` leads the variable that moves it, `MCPF_<SERVER>_<NAME>_BASE_URL`."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class OAuthFlow:
    """One way to a token (OpenAPI 3.2 §4.29). URLs may be relative to the API's base URL; "" where the flow has none.

    `discovery`: everything is in the metadata at `metadata_url` (OpenID Connect Discovery, RFC 8414). `serviceAccount`: the key
    of an account of its own signs what is exchanged for a token (RFC 7523), as at Google.
    """

    grant: Literal["clientCredentials", "authorizationCode", "deviceAuthorization", "discovery", "serviceAccount"]
    token_url: str = ""
    authorization_url: str = ""
    device_url: str = ""
    refresh_url: str = ""
    metadata_url: str = ""


@dataclass(frozen=True, slots=True)
class SecurityScheme:
    """How a credential travels, and which environment variables hold it (OpenAPI 3.1 §4.8.27).

    Each kind, its variables and what is sent::

        kind        variables                     sent as
        apiKey      (key,)                        `name` in `place`
        basic       (username, password)          Authorization: Basic
        bearer      (token,)                      Authorization: Bearer, a token made elsewhere
        oauth2      (token, client id, secret,    Authorization: Bearer, that token or one that `flows` give; servers of earlier
                     refresh token, account)      versions have the first three, and no scheme has what its flows do not use
        mutualTLS   (certificate, key)            paths of PEM files for the connection; the key may be in the certificate's file
        awsSigV4    (key id, secret, session      Authorization: AWS4-HMAC-SHA256, made of the request and the secret; the token
                     token, region)               is for temporary keys, the region for addresses that do not name it

    `scopes` are all that the server's operations ask of an oauth2 scheme: what a login asks for. `service` is what an AWS
    signature is for; "" is what the address says.
    """

    name: str
    kind: Literal["apiKey", "basic", "bearer", "oauth2", "mutualTLS", "awsSigV4"]
    variables: tuple[str, ...]
    place: Literal["", "query", "header", "cookie"] = ""
    parameter: str = ""
    flows: tuple[OAuthFlow, ...] = ()
    scopes: tuple[str, ...] = ()
    service: str = ""
