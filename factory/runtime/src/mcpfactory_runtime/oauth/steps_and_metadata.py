"""Procedures and records of the OAuth client: steps, server metadata, challenges.

A procedure is a generator without I/O, so that a test needs no server. A procedure yields steps, and finally returns a
result. A procedure receives the `HttpAnswer` after a `Fetch`, and the redirect's URL after a `Visit`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

from mcpfactory_runtime.types import Json

T = TypeVar("T")
FETCH_TIME: Final = 30.0  # maximum seconds of a request to an authorization server
FETCH_SIZE: Final = 1_000_000  # maximum bytes of a response of an authorization server


class OAuthError(Exception):
    """No token is available. `code` is an OAuth error code of the server, or a code of the client.

    Codes of the client: `unsafe_url`, `bad_metadata`, `resource_mismatch`, `issuer_mismatch`, `no_pkce`,
    `no_registration`, `no_issuer`, `state_mismatch`, `bad_response`, `unsupported_method`, `no_browser`, `no_library`,
    `bad_key`, `refused`, `unreachable`, `no_store`, `no_login`.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Fetch:
    """An HTTP request, whose redirects are not followed."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP response with header names in lower case."""

    status: int
    headers: dict[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class Visit:
    """A page for the user's browser. The procedure receives the complete URL to which the browser was redirected.

    If `code` is set, the user enters the code on the page, possibly on another device, and the procedure receives "".
    """

    url: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause in seconds."""

    seconds: float


Steps = Generator[Fetch | Visit | Pause, Any, T]


async def drive(
    steps: Steps[T],
    fetch: Callable[[Fetch], Awaitable[HttpAnswer]],
    visit: Callable[[Visit], Awaitable[str]] | None = None,
) -> T:
    """Execute a procedure and return the result. A `Visit` without `visit` raises OAuthError (`no_browser`)."""
    answer: Any = None
    try:
        while True:
            step = steps.send(answer)
            if isinstance(step, Fetch):
                answer = await fetch(step)
            elif isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                answer = None
            elif visit is None:
                raise OAuthError("no_browser", "no browser is available for the login")
            else:
                answer = await visit(step)
    except StopIteration as end:
        outcome: T = end.value
        return outcome
    finally:
        steps.close()


def fetch(request: Fetch) -> Steps[HttpAnswer]:
    """Yield one request, and return the response."""
    answer = yield request
    assert isinstance(answer, HttpAnswer)
    return answer


def post_form(url: str, form: dict[str, str], headers: dict[str, str]) -> Steps[HttpAnswer]:
    """Yield a POST request with a form, and return the response."""
    content = urlencode(form).encode()
    kind = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    return (yield from fetch(Fetch("POST", url, {**kind, **headers}, content)))


def parse_json_body(answer: HttpAnswer, what: str) -> Json:
    """Return the body as a JSON object, or raise OAuthError."""
    try:
        value = json.loads(answer.content)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise OAuthError("bad_response", f"{what} is not a JSON object (HTTP status {answer.status})")
    return value


def check_metadata_url(url: Any, server: str, what: str) -> str:
    """Return a URL from a server's metadata, or raise OAuthError if the URL is unsafe.

    An https URL is safe. A loopback URL is safe only if `server` is also a loopback URL, because a remote server must
    not refer to local servers (Security Considerations, Communication Security).
    """
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        local = parts is not None and is_loopback(parts.hostname)
    except ValueError:
        parts, local = None, False
    if parts is not None and parts.hostname and not parts.username and not parts.fragment:
        if local:
            safe = parts.scheme in ("http", "https") and is_loopback(urlsplit(server).hostname)
        else:
            safe = parts.scheme == "https"
        if safe:
            return str(url)
    raise OAuthError(
        "unsafe_url",
        f"{what} is not a safe URL: {url!r}\nhint: use an https URL (http only for a server on this machine)",
    )


def is_loopback(host: str | None) -> bool:
    """Return True if the host is a loopback address or `localhost`."""
    if host == "localhost":
        return True
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return False


def origin(url: str) -> str:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def is_same_issuer(one: str, other: str) -> bool:
    """Return True if two issuers are equal, or differ only in `/` and an empty path (RFC 3986 §6.2.3).

    Both have the same metadata URL. Many servers add the slash to the issuer in their resource metadata. For the
    parameter `iss` of a redirect, RFC 9207 requires an exact comparison instead.
    """
    return _without_root_slash(one) == _without_root_slash(other)


def _without_root_slash(issuer: str) -> str:
    return issuer.removesuffix("/") if issuer.count("/") == 3 else issuer  # two slashes follow the scheme


def string_list(value: Any) -> tuple[str, ...]:
    """Return the strings of a list, or () if the value is not a list."""
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


_WORD: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_SCHEME: Final = re.compile(rf"[\s,]*({_WORD})(?:[ \t]+|(?=,)|$)")
_BLOB: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*[ \t]*(?=,|$)")
_PARAMETER: Final = re.compile(
    rf'[\s,]*({_WORD})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|({_WORD}))[ \t]*(?=,|$)', re.DOTALL
)


@dataclass(frozen=True, slots=True)
class AuthChallenge:
    """A challenge, whose scheme and parameter names are in lower case."""

    scheme: str
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def scopes(self) -> tuple[str, ...]:
        """Return the requested scopes."""
        return tuple(self.parameters.get("scope", "").split())


def read_challenges(header: str) -> Iterator[AuthChallenge]:
    """Yield the challenges of a header, up to the first invalid challenge."""
    at = 0
    while scheme := _SCHEME.match(header, at):
        at = scheme.end()
        parameters: dict[str, str] = {}
        if token68 := _BLOB.match(header, at):
            at = token68.end()
        while parameter := _PARAMETER.match(header, at):
            name, quoted, plain = parameter.groups()
            parameters[name.lower()] = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            at = parameter.end()
        yield AuthChallenge(scheme[1].lower(), parameters)


def bearer_challenge(header: str) -> AuthChallenge:
    """Return the challenge with the scheme `Bearer`, or an empty challenge."""
    return next((one for one in read_challenges(header) if one.scheme == "bearer"), AuthChallenge("bearer"))


ANY_METHOD: Final = ("client_secret_basic", "client_secret_post", "none")
"""Client authentication methods, in order of preference for a client with a secret."""

_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "device_authorization_endpoint")


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """Metadata of an authorization server (RFC 8414, OpenID Connect Discovery).

    `issuer` is "" if only the endpoints are known, for example from an OpenAPI document.
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    device_endpoint: str = ""
    scopes: tuple[str, ...] = ()
    auth_methods: tuple[str, ...] = ("client_secret_basic",)  # default of RFC 8414 §2
    names_issuer: bool = False
    takes_documents: bool = False

    @property
    def name(self) -> str:
        """Return the server's name for messages."""
        return self.issuer or origin(self.token_endpoint)

    @classmethod
    def from_metadata(cls, data: Json, issuer: str, url: str, endpoints: Iterable[str]) -> AuthorizationServer:
        """Return the authorization server from its metadata, which refers to the API or MCP server at `url`.

        Raises:
            OAuthError: `unsafe_url`: one of the `endpoints` has an unsafe URL.
        """
        found = {name: check_metadata_url(data[name], url, name) for name in endpoints if data.get(name) is not None}
        return cls(
            issuer,
            found.get("authorization_endpoint", ""),
            found.get("token_endpoint", ""),
            found.get("registration_endpoint", ""),
            found.get("device_authorization_endpoint", ""),
            scopes=string_list(data.get("scopes_supported")),
            auth_methods=string_list(data.get("token_endpoint_auth_methods_supported")) or ("client_secret_basic",),
            names_issuer=data.get("authorization_response_iss_parameter_supported") is True,
            takes_documents=data.get("client_id_metadata_document_supported") is True,
        )


def fetch_server_metadata(url: str, base_url: str) -> Steps[AuthorizationServer]:
    """Return the metadata at an `openIdConnectUrl` or an `oauth2MetadataUrl`.

    If `url` has no well-known path, OpenID's path is appended. The issuer must have the origin of `url`, so that a
    document cannot describe another host's issuer. `base_url` is the base URL of the API, and only an API on this
    machine may have loopback endpoints.
    """
    if "/.well-known/" not in urlsplit(url).path:
        url = f"{url.rstrip('/')}/.well-known/openid-configuration"
    answer = yield from fetch(
        Fetch("GET", check_metadata_url(url, base_url, "the metadata URL"), {"Accept": "application/json"})
    )
    if answer.status != 200:
        raise OAuthError("bad_metadata", f"{url} returned HTTP status {answer.status}")
    data = parse_json_body(answer, f"the metadata at {url}")
    issuer = data.get("issuer")
    if not isinstance(issuer, str) or origin(issuer) != origin(url):
        raise OAuthError("issuer_mismatch", f"the metadata at {url} is from another issuer: {issuer!r}")
    server = AuthorizationServer.from_metadata(data, issuer, base_url, _ENDPOINTS)
    if not server.token_endpoint:
        raise OAuthError("bad_metadata", f"the metadata at {url} has no token endpoint")
    return server
