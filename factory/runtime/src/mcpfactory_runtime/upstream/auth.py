"""Credentials for upstream calls: from environment variables, by the security schemes of the API.

Their values appear in no message and in no `repr`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mcpfactory_runtime.server.errors import ToolError

from .operation import Operation, SecurityScheme

__all__ = ["NO_CREDENTIALS", "Credentials", "credentials_for"]


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """What a request carries to be let in: names and secret values, by place."""

    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    cookies: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        names = [name for place in (self.headers, self.query, self.cookies) for name, _ in place]
        return f"Credentials({', '.join(names)})"


NO_CREDENTIALS = Credentials()


def credentials_for(
    operation: Operation, schemes: Mapping[str, SecurityScheme], environ: Mapping[str, str]
) -> Credentials:
    """The credentials of the first alternative of `operation.security` that the environment can satisfy.

    An empty alternative (no credentials) counts last: a credential that is there is used.

    Raises:
        ToolError: no alternative can be satisfied; the message names the environment variables that are missing.
    """
    alternatives = [alternative for alternative in operation.security if alternative]
    missing: list[str] = []
    for alternative in alternatives:
        known = [schemes[name] for name in alternative if name in schemes]
        lacking = [variable for scheme in known for variable in _missing(scheme, environ)]
        if len(known) == len(alternative) and not lacking:
            return _gather(known, environ)
        unknown = [f"the credentials of scheme {name!r}" for name in alternative if name not in schemes]
        missing.append(" and ".join(dict.fromkeys([*lacking, *unknown])))
    if len(alternatives) < len(operation.security) or not alternatives:
        return NO_CREDENTIALS
    wanted = "; or ".join(dict.fromkeys(missing))
    raise ToolError(
        f"{operation.method} {operation.path} needs credentials, and the server has none: {wanted} "
        f"{'is' if len(missing) == 1 and ' and ' not in wanted else 'are'} not set.\n"
        "hint: the person who runs this server sets them in its environment (the `env` of the client's configuration)."
    )


def _missing(scheme: SecurityScheme, environ: Mapping[str, str]) -> list[str]:
    """The unset variables of a scheme. One of the two of `basic` may be empty: some APIs want only a key there."""
    if scheme.kind == "basic":
        unset = [name for name in scheme.variables if name not in environ]
        return unset or ([] if any(environ[name].strip() for name in scheme.variables) else list(scheme.variables))
    return [name for name in scheme.variables if not environ.get(name, "").strip()]


def _gather(schemes: Iterable[SecurityScheme], environ: Mapping[str, str]) -> Credentials:
    headers: list[tuple[str, str]] = []
    query: list[tuple[str, str]] = []
    cookies: list[tuple[str, str]] = []
    for scheme in schemes:
        values = [_value(name, environ) for name in scheme.variables]
        if scheme.kind == "basic":
            headers.append(("Authorization", f"Basic {b64encode(':'.join(values).encode()).decode('ascii')}"))
        elif scheme.kind == "bearer":
            token = values[0].removeprefix("Bearer ").strip()
            headers.append(("Authorization", f"Bearer {token}"))
        else:
            place = {"query": query, "cookie": cookies}.get(scheme.place, headers)
            place.append((scheme.parameter, values[0]))
    return Credentials(tuple(headers), tuple(query), tuple(cookies))


def _value(variable: str, environ: Mapping[str, str]) -> str:
    """A secret without the line end that files and shells like to leave on it."""
    value = environ[variable].strip()
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise ToolError(
            f"The credential in {variable} holds a control character (a line end?) and cannot be sent.\n"
            f"hint: set {variable} to the bare value."
        )
    return value
