"""Authentication of a request: token, claims, scopes → principal or challenge.

RFC 6750; RFC 9728 §5.1; RFC 9068 §4; basic/authorization, Token Handling.

The module is pure: the clock is an argument, and `jose` verifies signatures. Data that is read before
verification serves only to select the keys for it.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from types import MappingProxyType
from typing import Any, Final

from pydantic_core import from_json

from mcpfactory_runtime.types import Json

_SCOPE: Final = re.compile(r"[!#-\[\]-~]+")  # RFC 6749 §3.3


def union(*groups: Iterable[str]) -> tuple[str, ...]:
    """All words, each once, in the order of their first mention.

    Raises:
        TypeError: a group is one string instead of several.
        ValueError: a word cannot be a scope.
    """
    words: dict[str, None] = {}
    for group in groups:
        if isinstance(group, str):
            raise TypeError(f"scopes must be a sequence of strings, not one string\nhint: use ({group!r},)")
        for word in group:
            if not _SCOPE.fullmatch(word):
                raise ValueError(
                    f"{word!r} is not a valid scope\nhint: use printable ASCII without space, quote or backslash"
                )
            words[word] = None
    return tuple(words)


def read_granted(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return a token's granted scopes: `scope` (RFC 8693 §4.2), or `scp` for some issuers; a string or a list."""
    value = claims.get("scope", claims.get("scp"))
    if isinstance(value, str):
        return frozenset(value.split())
    if isinstance(value, list):
        return frozenset(word for word in value if isinstance(word, str))
    return frozenset()


def expand(granted: Iterable[str], implies: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return the granted scopes and all scopes that they imply; cycles are harmless."""
    found: set[str] = set()
    waiting = list(granted)
    while waiting:
        word = waiting.pop()
        if word not in found:
            found.add(word)
            waiting.extend(implies.get(word, ()))
    return frozenset(found)


def missing(needed: Iterable[str], held: frozenset[str]) -> tuple[str, ...]:
    """Return the words of `needed` that are not held."""
    return tuple(word for word in needed if word not in held)


# reason → what the client's developer reads; never a part of the token
REASONS: Final = {
    "malformed": "The access token is neither a signed JWT nor known otherwise",
    "type": "The token is of another type than access token",
    "algorithm": "The access token is signed with an algorithm that is not accepted here",
    "key": "The access token is signed with a key that its issuer does not publish",
    "signature": "The signature of the access token is wrong",
    "issuer": "The access token comes from an issuer that is not accepted here",
    "audience": "The access token is meant for another resource",
    "expired": "The access token has expired",
    "early": "The access token is not valid yet",
    "times": "The access token has no usable expiry",
    "identity": "The access token names neither a subject nor a client",
    "bound": "The access token is bound to a key that this server does not check",
    "inactive": "The access token is not active",
}

_COMPACT: Final = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+")
_TYPES: Final = {"jwt", "at+jwt", "application/at+jwt"}  # RFC 9068 §2.1; plain JWT is what most issuers write


MAX_TOKEN: Final = 16_384
"""Characters of the longest token that is looked at."""

_BEARER_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750 §2.1, b64token


@dataclass(frozen=True, slots=True)
class BearerChallenge:
    """Why a request is refused, as status and `WWW-Authenticate`.

    Attributes:
        status: 400 for a malformed header, 401 for no or a bad token, 403 for missing scopes.
        error: the code of RFC 6750 §3.1; None when no token was sent, for then there is nothing wrong yet.
        description: for developers; printable ASCII without quotes.
        scopes: everything that the request needs, in one go.
    """

    status: int
    error: str | None = None
    description: str | None = None
    scopes: tuple[str, ...] = ()

    def header(self, metadata_url: str) -> str:
        """Return the value of `WWW-Authenticate`."""
        fields: Iterable[tuple[str, str | None]] = (
            ("error", self.error),
            ("error_description", self.description),
            ("scope", " ".join(self.scopes) or None),
            ("resource_metadata", metadata_url),
        )
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in fields if value is not None)


def read_token(header: str | None, scopes: tuple[str, ...] = ()) -> str | BearerChallenge:
    """Return the token of an `Authorization` header, or the challenge to send.

    Args:
        header: its value; repeated headers are joined by commas, which makes them malformed. None: no header.
        scopes: scopes named in the challenge to a client without a token.
    """
    if header is None:
        return BearerChallenge(401, scopes=scopes)
    scheme, _, token = header.strip(" \t").partition(" ")
    if scheme.lower() != "bearer":  # other schemes carry no token for us
        return BearerChallenge(401, scopes=scopes)
    token = token.strip(" \t")
    if len(token) > MAX_TOKEN or not _BEARER_TOKEN.fullmatch(token):
        return BearerChallenge(400, "invalid_request", "The Authorization header must be Bearer and one token", scopes)
    return token


class TokenError(Exception):
    """A token is refused. `reason` is a key of `REASONS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(REASONS[reason])
        self.reason = reason


class Principal(str):
    """The caller. The string is the identity (issuer, subject and client), so equal principals are equal strings.

    Sessions, sealed states and tasks are bound to that string. The attributes belong to the token of one request: a
    client that returns with more scopes is the same principal.

    Attributes:
        issuer: the issuer of the token.
        subject: the user, or the client itself if it acts for no user; "" if the token names none.
        client: the OAuth client; "" if the token names none.
        scopes: the granted scopes, with all that they imply by the configured hierarchy.
        claims: all claims of the token, read-only. The token itself is not stored.
    """

    issuer: str
    subject: str
    client: str
    scopes: frozenset[str]
    claims: Mapping[str, Any]

    def __new__(cls, issuer: str, subject: str, client: str, scopes: frozenset[str], claims: Json) -> Principal:
        """See the attributes."""
        principal = super().__new__(cls, json.dumps([issuer, subject, client]))
        principal.issuer, principal.subject, principal.client, principal.scopes = issuer, subject, client, scopes
        principal.claims = MappingProxyType(claims)
        return principal

    def __repr__(self) -> str:
        return f"Principal(issuer={self.issuer!r}, subject={self.subject!r}, client={self.client!r})"


@dataclass(frozen=True, slots=True)
class Header:
    """Unverified facts about a token.

    Attributes:
        algorithm: the `alg`.
        key_id: the `kid`, if any.
        issuer: the `iss` of the payload, not verified; selects the issuer whose keys check the signature.
    """

    algorithm: str
    key_id: str | None
    issuer: str


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """Rules that claims must satisfy.

    Attributes:
        issuers: trusted issuers.
        audiences: the names of this server.
        leeway: allowed clock difference in seconds.
        implies: scope → scopes that it implies.
    """

    issuers: tuple[str, ...]
    audiences: frozenset[str]
    leeway: float = 30.0
    implies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_header(token: str, algorithms: Collection[str]) -> Header:
    """Header and issuer of a JWT in compact form.

    Raises:
        TokenError: malformed, type, algorithm.
    """
    parts = _COMPACT.fullmatch(token)
    if parts is None:
        raise TokenError("malformed")
    header, payload = _decode(parts[1]), _decode(parts[2])
    algorithm, key_id, kind, issuer = header.get("alg"), header.get("kid"), header.get("typ"), payload.get("iss")
    if "crit" in header:  # extensions that must be understood; we understand none (RFC 7515 §4.1.11)
        raise TokenError("malformed")
    if kind is not None and (not isinstance(kind, str) or kind.lower() not in _TYPES):
        raise TokenError("type")
    if not isinstance(algorithm, str) or algorithm not in algorithms:
        raise TokenError("algorithm")
    if not isinstance(issuer, str):
        raise TokenError("issuer")
    return Header(algorithm, key_id if isinstance(key_id, str) else None, issuer)


def read_claims(payload: bytes) -> Json:
    """Return the claims of a verified payload.

    Raises:
        TokenError: malformed.
    """
    try:
        claims = from_json(payload, allow_inf_nan=False)
    except ValueError:
        raise TokenError("malformed") from None
    if not isinstance(claims, dict):
        raise TokenError("malformed")
    return claims


def check_claims(claims: Json, rules: ClaimRules, now: float, *, signed: bool = True) -> Principal:
    """Return the caller, from the claims of a verified JWT or of a checked opaque token.

    Args:
        claims: the claims as the issuer wrote them.
        rules: rules that must hold.
        now: seconds since the epoch.
        signed: True for a JWT, which must name issuer and expiry. Token introspection (RFC 7662 §2.2) may omit them
            and return `active` instead.

    Raises:
        TokenError: see `REASONS`.
    """
    if not signed and claims.get("active", True) is not True:
        raise TokenError("inactive")
    issuer = claims.get("iss")
    if issuer is None and not signed and len(rules.issuers) == 1:
        issuer = rules.issuers[0]
    if issuer not in rules.issuers:
        raise TokenError("issuer")
    audience = claims.get("aud")
    named = audience if isinstance(audience, list) else [audience]
    if not any(isinstance(name, str) and name in rules.audiences for name in named):
        raise TokenError("audience")
    _check_times(claims, rules.leeway, now, signed=signed)
    if "cnf" in claims:  # bound tokens must not work as plain bearer tokens if stolen (RFC 9449 §7.2)
        raise TokenError("bound")
    subject = _text(claims, "sub")
    client = _text(claims, "client_id") or _text(claims, "azp")
    if not subject and not client:
        raise TokenError("identity")
    return Principal(issuer, subject, client, expand(read_granted(claims), rules.implies), claims)


def _check_times(claims: Json, leeway: float, now: float, *, signed: bool) -> None:
    expires = _time(claims, "exp")
    if expires is None and signed:
        raise TokenError("times")
    if expires is not None and now >= expires + leeway:
        raise TokenError("expired")
    begins = _time(claims, "nbf")
    if begins is not None and begins > now + leeway:
        raise TokenError("early")


def _time(claims: Json, name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise TokenError("times")
    return value


def _text(claims: Json, name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) else ""


def _decode(part: str) -> Json:
    return read_claims(urlsafe_b64decode(part + "=" * (-len(part) % 4))) if len(part) % 4 != 1 else read_claims(b"")
