"""`WWW-Authenticate`: what a server wants before it serves (RFC 9110 §11.6.1, RFC 6750 §3, RFC 9728 §5.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Challenge", "bearer_challenge", "read_challenges"]

_WORD: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_SCHEME: Final = re.compile(rf"[\s,]*({_WORD})(?:[ \t]+|(?=,)|$)")
_BLOB: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*[ \t]*(?=,|$)")
_PARAMETER: Final = re.compile(
    rf'[\s,]*({_WORD})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|({_WORD}))[ \t]*(?=,|$)', re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Challenge:
    """One challenge; scheme and parameter names are in lower case."""

    scheme: str
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that it asks for."""
        return tuple(self.parameters.get("scope", "").split())


def read_challenges(header: str) -> Iterator[Challenge]:
    """Yield the challenges of a header (several headers joined by commas); what cannot be read ends the list."""
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
        yield Challenge(scheme[1].lower(), parameters)


def bearer_challenge(header: str) -> Challenge:
    """Return the challenge for access tokens, which are presented as `Bearer`; an empty one when there is none."""
    found = [one for one in read_challenges(header) if one.scheme == "bearer"]
    return next((one for one in found if one.scheme == "bearer"), found[0] if found else Challenge("bearer"))
