"""Environment variables of a server: its settings, `<SERVER>_BASE_URL` and the like, and its credentials.

Credentials are `<SERVER>_<SCHEME>_<PART>`, without the words that say nothing: `bearerAuth` of the server bookshop is
BOOKSHOP_TOKEN; a scheme with a name of its own keeps it: BOOKSHOP_ADMIN_TOKEN. Parts are never names of settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from mcpfactory_codegen.ir import ApiSecurityScheme
from mcpfactory_codegen.text import digest, words
from mcpfactory_runtime.upstream.settings import SHARED

__all__ = ["environment_parts", "name_variables", "variable_prefix"]


_PARTS: Final[dict[str, tuple[str, ...]]] = {
    "apiKey": ("API_KEY",),
    "basic": ("USERNAME", "PASSWORD"),
    "bearer": ("TOKEN",),
    "oauth2": ("TOKEN", "CLIENT_ID", "CLIENT_SECRET"),
    "mutualTLS": ("CLIENT_CERT", "CLIENT_KEY"),
    "awsSigV4": ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "REGION"),
}
_LOGIN: Final = frozenset({"authorizationCode", "deviceAuthorization", "discovery"})

_SAYING_NOTHING: Final = """
    api key apikey auth authentication authorization authorisation authz http https bearer basic token tokens access
    oauth oauth1 oauth2 oidc openid connect security scheme header query cookie jwt default credentials code flow
    application client user x id mutual tls mtls certificate hmac sigv4
"""
_EMPTY_WORDS: Final = frozenset(_SAYING_NOTHING.split())


def environment_parts(scheme: ApiSecurityScheme) -> tuple[str, ...]:
    """Return what a scheme needs to know, in the order in which the runtime reads it."""
    grants = {flow.grant for flow in scheme.flows}
    account = "serviceAccount" in grants
    further = (*(("REFRESH_TOKEN",) if account or grants & _LOGIN else ()), *(("SERVICE_ACCOUNT",) if account else ()))
    return _PARTS[scheme.kind] + further


def variable_prefix(server: str) -> str:
    """Return what the names of all variables of a server begin with."""
    prefix = "_".join(words(server)).upper() or "API"
    return f"MCP_{prefix}" if prefix[0].isdigit() or prefix == SHARED else prefix


def name_variables(schemes: Sequence[ApiSecurityScheme], server: str) -> dict[str, tuple[str, ...]]:
    """Return the variables of each scheme, in the order of `environment_parts`; no two schemes share one.

    Of several that would have the same, one whose own name is that variable has it: `api_key` beside `api_token`.
    """
    prefix = variable_prefix(server)
    named: dict[str, tuple[str, ...]] = {}
    taken: set[str] = set()
    waiting = [(scheme, _stems(scheme, server)) for scheme in schemes]
    while waiting:
        proposals = [(scheme, _variables(scheme, prefix, next(stems)), stems) for scheme, stems in waiting]
        claims = Counter(variable for _, variables, _ in proposals for variable in variables)
        literal = Counter(variables for scheme, variables, _ in proposals if _literal(scheme, prefix) == variables)
        waiting = []
        for scheme, variables, stems in proposals:
            alone = all(claims[variable] == 1 for variable in variables)
            first = literal[variables] == 1 and _literal(scheme, prefix) == variables
            if (alone or first) and taken.isdisjoint(variables):
                named[scheme.name] = variables
            else:
                waiting.append((scheme, stems))
        taken |= claims.keys()
    return {scheme.name: named[scheme.name] for scheme in schemes}


def _stems(scheme: ApiSecurityScheme, server: str) -> Iterator[str]:
    every = words(scheme.name)
    telling = [word for word in every if word not in _EMPTY_WORDS | set(words(server))]
    yield "_".join(telling)
    yield "_".join(every)
    length = 6
    while True:
        yield "_".join([*every, digest(scheme.name, length)])
        length += 2


def _literal(scheme: ApiSecurityScheme, prefix: str) -> tuple[str, ...]:
    return _variables(scheme, prefix, "_".join(words(scheme.name)))


def _variables(scheme: ApiSecurityScheme, prefix: str, stem: str) -> tuple[str, ...]:
    lead = f"{prefix}_{stem.upper()}" if stem else prefix
    variables = []
    for part in environment_parts(scheme):
        if f"_{lead}".endswith((f"_{part}", "_TOKEN") if part == "API_KEY" and stem else f"_{part}"):
            variables.append(lead)  # `api_key` is BOOKSHOP_API_KEY, not BOOKSHOP_API_KEY_API_KEY
        else:
            variables.append(f"{lead}_{part}")
    return tuple(variables)
