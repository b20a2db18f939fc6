"""What a caller proves itself with: `Authorization`, JWTs and sealed states, and the URIs that it asks for."""

from __future__ import annotations

import contextlib
import json
from base64 import urlsafe_b64encode
from typing import Any

from mcpfactory_runtime.auth.tokens import (
    BearerChallenge,
    ClaimRules,
    TokenError,
    check_claims,
    read_claims,
    read_header,
    read_token,
)
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.server.sealing import Sealer
from mcpfactory_runtime.server.uri_template import UriTemplate

__all__ = ["SEEDS", "WORDS", "one"]

_RULES = ClaimRules(("https://i.test",), frozenset({"https://s.test/mcp"}))
_ALGORITHMS = ("RS256", "ES256")
_NOW = 1_800_000_000.0
_TEMPLATES = tuple(map(UriTemplate, ("shop://books/{id}", "shop://{+path*}", "shop://a{/b,c}{?d,e}")))


def _part(value: Any) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


_CLAIMS = {"iss": "https://i.test", "aud": ["https://s.test/mcp"], "exp": _NOW + 9, "sub": "ada", "scope": "a b"}
SEEDS = (
    f"Bearer {_part({'alg': 'RS256', 'typ': 'at+jwt', 'kid': 'k'})}.{_part(_CLAIMS)}.AAAA".encode(),
    json.dumps(_CLAIMS).encode(),
    json.dumps({**_CLAIMS, "nbf": -1, "aud": "https://s.test/mcp", "active": True}).encode(),
    b"shop://books/%C3%A9%2F",
    b"shop://a/1,2?d=%zz&e=1",
    f"{_part({'answers': {}, 'expires': _NOW})}.AAAA".encode(),
)
WORDS = (
    "Bearer ",
    "eyJ",
    ".",
    "alg",
    "none",
    "RS256",
    "iss",
    "aud",
    "exp",
    "nbf",
    "sub",
    "cnf",
    "shop://",
    "%2F",
    "{",
    "?",
)


def one(data: bytes) -> None:
    """Take the bytes for each; only what satisfies the rules is let through, and nothing but the named errors comes out."""
    text = data.decode("latin-1")
    read = read_token(text)
    token = text if isinstance(read, BearerChallenge) else read
    with contextlib.suppress(TokenError):
        assert read_header(token, _ALGORITHMS).algorithm in _ALGORITHMS
    try:
        claims = read_claims(data)
        principal = check_claims(claims, _RULES, _NOW)
    except TokenError:
        pass
    else:
        assert principal.issuer in _RULES.issuers
        assert claims["exp"] + _RULES.leeway > _NOW
    _sealed(text)
    for template in _TEMPLATES:
        values = template.match(text)
        assert values is None or set(values) <= set(template.names), f"{values} of {template.text}"


def _sealed(text: str) -> None:
    bound: dict[str, Any] = {"principal": "ada", "method": "tools/call", "params": {"name": "t"}}
    try:
        Sealer(b"k" * 32).open(text, now=_NOW, **bound)
    except McpError:
        return
    raise AssertionError("a state is opened that nobody sealed")
