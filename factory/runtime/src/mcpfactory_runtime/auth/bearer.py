"""The header of a request → its token, or the challenge that goes back (RFC 6750; RFC 9728 §5.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = ["MAX_TOKEN", "BearerChallenge", "read_token"]

MAX_TOKEN: Final = 16_384
"""Characters of the longest token that is looked at."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750 §2.1, b64token


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
    """Return the token of an `Authorization` header.

    Args:
        header: its value; repeated headers joined by commas, which makes them malformed. None: there was none.
        scopes: named in the challenge to a client that has no token yet.
    """
    if header is None:
        return BearerChallenge(401, scopes=scopes)
    scheme, _, token = header.strip(" \t").partition(" ")
    if scheme.lower() != "bearer":  # another scheme is no token of ours
        return BearerChallenge(401, scopes=scopes)
    token = token.strip(" \t")
    if len(token) > MAX_TOKEN or not _TOKEN.fullmatch(token):
        return BearerChallenge(400, "invalid_request", "The Authorization header must be Bearer and one token", scopes)
    return token
