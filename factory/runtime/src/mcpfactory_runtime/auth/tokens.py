"""Authentication of a request from the token, the claims and the scopes, without I/O.

The specifications are RFC 6750, RFC 9728 §5.1, RFC 9068 §4, and basic/authorization, Token Handling. Unverified data
only selects the keys for the verification.
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


def merge_scopes(*groups: Iterable[str]) -> tuple[str, ...]:
    """Return the scopes of all groups without duplicates, in order of first occurrence.

    Raises TypeError for a group that is one string, and ValueError for an invalid scope.
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
    """Return the scopes in the claim `scope` (RFC 8693 §4.2), or in `scp`, which some issuers use instead."""
    value = claims.get("scope", claims.get("scp"))
    if isinstance(value, str):
        return frozenset(value.split())
    if isinstance(value, list):
        return frozenset(word for word in value if isinstance(word, str))
    return frozenset()


def expand_scopes(granted: Iterable[str], implies: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return the granted scopes and all scopes that they imply."""
    found: set[str] = set()
    waiting = list(granted)
    while waiting:
        word = waiting.pop()
        if word not in found:
            found.add(word)
            waiting.extend(implies.get(word, ()))
    return frozenset(found)


def missing_scopes(needed: Iterable[str], held: frozenset[str]) -> tuple[str, ...]:
    """Return the scopes of `needed` that are not in `held`."""
    return tuple(word for word in needed if word not in held)


# Reason → message for developers of the client. No message contains any part of the token.
REASONS: Final = {
    "malformed": "The access token is not a valid signed JWT",
    "type": "The token is not an access token",
    "algorithm": "The access token is signed with an algorithm that is not accepted here",
    "key": "The access token is signed with a key that its issuer does not publish",
    "signature": "The signature of the access token is invalid",
    "issuer": "The access token comes from an issuer that is not accepted here",
    "audience": "The access token is meant for another resource",
    "expired": "The access token has expired",
    "early": "The access token is not valid yet",
    "times": "The access token has no usable expiry",
    "identity": "The access token has neither a subject nor a client",
    "bound": "The access token is bound to a key that this server does not check",
    "inactive": "The access token is not active",
}

_COMPACT: Final = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+")
_TYPES: Final = {"jwt", "at+jwt", "application/at+jwt"}  # RFC 9068 §2.1; most issuers use plain "JWT"


MAX_TOKEN: Final = 16_384
"""Maximum characters of a token."""

_BEARER_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # syntax "b64token" of RFC 6750 §2.1


@dataclass(frozen=True, slots=True)
class BearerChallenge:
    """Refusal of a request: the status and the value of `WWW-Authenticate`.

    The status is 400 for a malformed header, 401 for a missing or invalid token, and 403 for missing scopes. `error` is
    an error code of RFC 6750 §3.1, or None if no token was sent. `description` is for developers, in printable ASCII
    without quotes. `scopes` are all scopes that the request needs.
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
    """Return the token of an `Authorization` header, or the challenge to send with `scopes`.

    Repeated headers are joined by commas, which makes the value malformed.
    """
    if header is None:
        return BearerChallenge(401, scopes=scopes)
    scheme, _, token = header.strip(" \t").partition(" ")
    if scheme.lower() != "bearer":  # an unknown scheme is treated like a missing Authorization header
        return BearerChallenge(401, scopes=scopes)
    token = token.strip(" \t")
    if len(token) > MAX_TOKEN or not _BEARER_TOKEN.fullmatch(token):
        return BearerChallenge(400, "invalid_request", "The Authorization header must be Bearer and one token", scopes)
    return token


class TokenError(Exception):
    """Error for a refused token. `reason` is a key of `REASONS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(REASONS[reason])
        self.reason = reason


class Principal(str):
    """The caller of a request. `str(principal)` identifies the caller by issuer, subject and client.

    Sessions, sealed states and tasks belong to the caller's identity. The next request of the caller may have other
    scopes and claims.

    Attributes:
        issuer: issuer of the token.
        subject: the user, or the client itself if it acts for no user. "" if the token has no subject.
        client: the OAuth client. "" if the token has no client.
        scopes: granted scopes, and the scopes that they imply in the configured hierarchy.
        claims: claims of the token, read-only. The token itself is not stored.
    """

    issuer: str
    subject: str
    client: str
    scopes: frozenset[str]
    claims: Mapping[str, Any]

    def __new__(cls, issuer: str, subject: str, client: str, scopes: frozenset[str], claims: Json) -> Principal:
        """Create a principal."""
        principal = super().__new__(cls, json.dumps([issuer, subject, client]))
        principal.issuer, principal.subject, principal.client, principal.scopes = issuer, subject, client, scopes
        principal.claims = MappingProxyType(claims)
        return principal

    def __repr__(self) -> str:
        return f"Principal(issuer={self.issuer!r}, subject={self.subject!r}, client={self.client!r})"


def principal_to_dict(principal: str) -> Json | None:
    """Return a principal as JSON data, or None for the anonymous principal."""
    if not isinstance(principal, Principal):
        return None
    names = {name: getattr(principal, name) for name in ("issuer", "subject", "client")}
    return {**names, "scopes": sorted(principal.scopes), "claims": dict(principal.claims)}


def principal_from_dict(data: Json | None) -> str:
    """Return the principal that `principal_to_dict` converted."""
    return "" if data is None else Principal(**{**data, "scopes": frozenset(data["scopes"])})


@dataclass(frozen=True, slots=True)
class TokenHeader:
    """Unverified data of a token. `issuer` is the claim `iss`."""

    algorithm: str
    key_id: str | None
    issuer: str


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """Rules for claims.

    `audiences` are names of this server. `leeway` is the allowed clock difference in seconds. `implies` maps a scope to
    the scopes that it implies.
    """

    issuers: tuple[str, ...]
    audiences: frozenset[str]
    leeway: float = 30.0
    implies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_token_header(token: str, algorithms: Collection[str]) -> TokenHeader:
    """Return the header and the issuer of a JWT in compact form, or raise TokenError."""
    parts = _COMPACT.fullmatch(token)
    if parts is None:
        raise TokenError("malformed")
    header, payload = _decode(parts[1]), _decode(parts[2])
    algorithm, key_id, kind, issuer = header.get("alg"), header.get("kid"), header.get("typ"), payload.get("iss")
    if "crit" in header:  # this header requires extensions, but this module supports no extension (RFC 7515 §4.1.11)
        raise TokenError("malformed")
    if kind is not None and (not isinstance(kind, str) or kind.lower() not in _TYPES):
        raise TokenError("type")
    if not isinstance(algorithm, str) or algorithm not in algorithms:
        raise TokenError("algorithm")
    if not isinstance(issuer, str):
        raise TokenError("issuer")
    return TokenHeader(algorithm, key_id if isinstance(key_id, str) else None, issuer)


def read_claims(payload: bytes) -> Json:
    """Return the claims of a verified payload, or raise TokenError."""
    try:
        claims = from_json(payload, allow_inf_nan=False)
    except ValueError:
        raise TokenError("malformed") from None
    if not isinstance(claims, dict):
        raise TokenError("malformed")
    return claims


def check_claims(claims: Json, rules: ClaimRules, now: float, *, signed: bool = True) -> Principal:
    """Return the caller from the claims of a token, or raise TokenError. `now` is in seconds since the epoch.

    A `signed` token, which is a JWT, must have an issuer and an expiry. An opaque token may have `active` instead
    (RFC 7662 §2.2).
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
    if "cnf" in claims:  # a stolen bound token must not work as a bearer token (RFC 9449 §7.2)
        raise TokenError("bound")
    subject = _text(claims, "sub")
    client = _text(claims, "client_id") or _text(claims, "azp")
    if not subject and not client:
        raise TokenError("identity")
    return Principal(issuer, subject, client, expand_scopes(read_granted(claims), rules.implies), claims)


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
