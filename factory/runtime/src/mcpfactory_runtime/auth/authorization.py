"""`Authorization`: accepted tokens, required scopes, and metadata for clients (RFC 9728)."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from mcpfactory_runtime.auth.jwks import FAMILIES
from mcpfactory_runtime.auth.tokens import ClaimRules, merge_scopes

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
SERVER_WELL_KNOWN: Final = "/.well-known/oauth-authorization-server"

_LOCAL: Final = {"localhost", "127.0.0.1", "::1"}


def is_local_url(url: str) -> bool:
    """Return True if a URL points to this machine."""
    return urlsplit(url).hostname in _LOCAL


def canonical(url: str) -> str:
    """Return the canonical URL of a resource (RFC 8707 §2). The host is in lower case, and the path `/` is omitted.

    A URL that is not https, or that has a user name, query or fragment, raises ValueError. Only a URL of this machine
    may use http.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError(f"{url!r} cannot be a protected resource\nhint: use a URL such as https://mcp.example.com/mcp")
    if parts.scheme == "http" and not is_local_url(url):
        raise ValueError(f"{url!r} would send tokens without encryption\nhint: use https://")
    return urlunsplit((parts.scheme, parts.netloc.lower(), "" if parts.path == "/" else parts.path, "", ""))


def resource_metadata_url(resource: str) -> str:
    """Return the URL of a resource's metadata (RFC 9728 §3.1)."""
    parts = urlsplit(resource)
    return urlunsplit((parts.scheme, parts.netloc, WELL_KNOWN + parts.path, "", ""))


def issuer_metadata_url(issuer: str) -> str:
    """Return the URL of an authorization server's metadata (RFC 8414 §3.1)."""
    parts = urlsplit(issuer)
    return urlunsplit((parts.scheme, parts.netloc, SERVER_WELL_KNOWN + parts.path.rstrip("/"), "", ""))


def resource_metadata_paths(resource: str, endpoint: str) -> frozenset[str]:
    """Return the paths of the server's metadata: the well-known path, alone or with the path of an endpoint."""
    return frozenset({WELL_KNOWN, WELL_KNOWN + endpoint.rstrip("/"), WELL_KNOWN + urlsplit(resource).path.rstrip("/")})


def document(
    resource: str, issuers: Sequence[str], scopes: Sequence[str], name: str, documentation: str | None
) -> dict[str, Any]:
    """Return the metadata of a protected resource, without the scope `offline_access`."""
    metadata: dict[str, Any] = {
        "resource": resource,
        "authorization_servers": list(issuers),
        "bearer_methods_supported": ["header"],
        "resource_name": name,
    }
    supported = [scope for scope in scopes if scope != "offline_access"]
    if supported:
        metadata["scopes_supported"] = supported
    if documentation is not None:
        metadata["resource_documentation"] = documentation
    return metadata


Json = Mapping[str, Any]
Fetch = Callable[[str], Awaitable[bytes]]
Verify = Callable[[str], Json | Awaitable[Json | None] | None]

PREFIX: Final = "MCPFACTORY_AUTH_"
DEFAULT_FAILURES: Final = "600/m"
_RATE: Final = re.compile(r"[1-9][0-9]{0,8}/[smh]|off")


class AuthorizationError(ValueError):
    """The configuration is incomplete or contradictory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Authorization:
    """Access rules for a server over HTTP: `server.run_http(auth=Authorization(…))`.

    Exactly one of `jwks_url`, `jwks` and `verify` selects how tokens are checked.

    Args:
        issuer: URL of the authorization server. Several URLs need `verify`, or a mapping as `jwks_url`.
        resource: URL of the MCP endpoint as clients write it. A token must have this URL as audience.
        jwks_url: URL of the issuer's published keys. For several issuers, a mapping from issuer to URL.
        jwks: the issuer's keys, a JWK Set.
        verify: function that returns the claims of an opaque token (RFC 7662), or None for an invalid token. The
            function may be async, and must not store the token.
        required_scopes: scopes that each request needs.
        scopes_supported: scopes in the metadata for clients. None means the required scopes and the scopes of the
            tools.
        scope_hierarchy: scope → scopes that it implies, such as `{"admin": ("read", "write")}`.
        audiences: additional accepted audiences. Some issuers cannot put a URL into tokens (`api://bookshop`).
        algorithms: accepted signature algorithms.
        leeway: allowed clock difference in seconds.
        documentation: URL of a page for developers.
        failures: maximum rate of invalid tokens per address, such as `600/m`. Above this rate, the server refuses all
            tokens from the address unchecked. `off` means no limit.
        clock: returns seconds since the epoch.
        fetch: function that returns the body at a key URL, or raises OSError. None means the built-in HTTP client.

    Raises:
        AuthorizationError: the configuration is incomplete or contradictory.
    """

    issuer: str | Sequence[str]
    resource: str
    jwks_url: str | Mapping[str, str] | None = None
    jwks: Json | None = None
    verify: Verify | None = None
    required_scopes: Sequence[str] = ()
    scopes_supported: Sequence[str] | None = None
    scope_hierarchy: Mapping[str, Sequence[str]] | None = None
    audiences: Sequence[str] = ()
    algorithms: Sequence[str] = tuple(FAMILIES)
    leeway: float = 30.0
    documentation: str | None = None
    failures: str = DEFAULT_FAILURES
    clock: Callable[[], float] = time.time
    fetch: Fetch | None = None

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "resource", canonical(self.resource))
            merge_scopes(self.required_scopes, self.scopes_supported or ())
            for word, implied in (self.scope_hierarchy or {}).items():
                merge_scopes((word,), implied)
        except (TypeError, ValueError) as error:
            raise AuthorizationError(str(error)) from None
        if (self.jwks_url is not None) + (self.jwks is not None) + (self.verify is not None) != 1:
            raise AuthorizationError(
                "exactly one way to check tokens is required\nhint: give one of jwks_url, jwks and verify"
            )
        if not self.issuers:
            raise AuthorizationError("the issuer is missing\nhint: set issuer='https://login.example.com'")
        for url in (*self.issuers, *self.key_urls.values()):
            _check_url(url)
        if self.verify is None and self.jwks is None and set(self.key_urls) != set(self.issuers):
            raise AuthorizationError(
                "jwks_url must have a URL for each issuer\nhint: write jwks_url={'https://a.example': 'https://…'}"
            )
        if self.jwks is not None and len(self.issuers) != 1:
            raise AuthorizationError("jwks supports only one issuer\nhint: give jwks_url as a mapping")
        if _RATE.fullmatch(self.failures) is None:
            raise AuthorizationError(
                f"failures={self.failures!r} is not a valid rate\nhint: use 600/m, 10/s, 36000/h, or off for no limit"
            )
        unknown = [name for name in self.algorithms if name not in FAMILIES]
        if unknown or not self.algorithms or isinstance(self.algorithms, str):
            raise AuthorizationError(f"algorithms {unknown} are not accepted\nhint: use only {', '.join(FAMILIES)}")

    @property
    def issuers(self) -> tuple[str, ...]:
        """Return all issuers."""
        return (self.issuer,) if isinstance(self.issuer, str) else tuple(self.issuer)

    @property
    def key_urls(self) -> dict[str, str]:
        """Return the key URL of each issuer."""
        if isinstance(self.jwks_url, str):
            return dict.fromkeys(self.issuers[:1], self.jwks_url)
        return dict(self.jwks_url or {})

    @property
    def rules(self) -> ClaimRules:
        """Return the rules that claims must satisfy."""
        implies = {word: tuple(implied) for word, implied in (self.scope_hierarchy or {}).items()}
        names = {self.resource, *self.audiences}
        if not urlsplit(self.resource).path:
            names.add(self.resource + "/")  # a URL without a path equals the URL with path "/" (RFC 3986 §6.2.3)
        return ClaimRules(self.issuers, frozenset(names), self.leeway, implies)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Authorization | None:
        """Return the authorization from the variables MCPFACTORY_AUTH_*, or None if no such variable is set.

        MCPFACTORY_AUTH_ISSUER, MCPFACTORY_AUTH_RESOURCE and MCPFACTORY_AUTH_JWKS_URL must be set together.
        MCPFACTORY_AUTH_SCOPES contains required scopes, and MCPFACTORY_AUTH_AUDIENCE contains audiences, separated by
        spaces. MCPFACTORY_AUTH_FAILURES is a rate.

        Raises:
            AuthorizationError: a variable is missing, unknown or invalid.
        """
        given = {name.removeprefix(PREFIX): value for name, value in environ.items() if name.startswith(PREFIX)}
        if not given:
            return None
        unknown = given.keys() - {"ISSUER", "RESOURCE", "JWKS_URL", "SCOPES", "AUDIENCE", "FAILURES"}
        absent = [name for name in ("ISSUER", "RESOURCE", "JWKS_URL") if not given.get(name)]
        if unknown or absent:
            wrong = [f"{PREFIX}{name} is unknown" for name in sorted(unknown)]
            wrong += [f"{PREFIX}{name} is missing" for name in absent]
            raise AuthorizationError(f"{'; '.join(wrong)}\nhint: set ISSUER, RESOURCE and JWKS_URL, or none of them")
        return cls(
            issuer=given["ISSUER"],
            resource=given["RESOURCE"],
            jwks_url=given["JWKS_URL"],
            required_scopes=given.get("SCOPES", "").split(),
            audiences=given.get("AUDIENCE", "").split(),
            failures=given.get("FAILURES", DEFAULT_FAILURES),
        )


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and is_local_url(url))):
        raise AuthorizationError(
            f"{url!r} must be an https URL\nhint: use https://; http:// is allowed only for this machine"
        )
