"""Signed statements in place of a secret or a person: by our own key (RFC 7523 §2.2), by a workload's platform, by an identity provider (RFC 8693).

A client that has none of a person's attention gets its tokens with one of these. None is worth anything to another
authorization server than the one that it names.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from mcpfactory_runtime.oauth.model import OAuthError, Steps, json_object, post_form
from mcpfactory_runtime.oauth.registration import Registration, authenticate_client

__all__ = ["Assertion", "IdentityProvider", "PrivateKey", "Workload"]

_LIFE: Final = 300  # seconds that a statement of ours counts
_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_TOKEN: Final = "urn:ietf:params:oauth:token-type:"  # noqa: S105 - a name


class Assertion(Protocol):
    """Says who wants a token, to one authorization server, for one MCP server."""

    def steps(self, issuer: str, resource: str) -> Steps[str]:
        """Yield the statement.

        Raises:
            OAuthError: there is none to be had.
        """


@dataclass(frozen=True, slots=True, repr=False)
class PrivateKey:
    """The key of a client that authenticates by `private_key_jwt`: PEM, the algorithm that it signs with, and its id if it has one."""

    pem: str
    algorithm: str = "ES256"
    key_id: str = ""

    def proof(self, client_id: str, audience: str, now: float) -> dict[str, str]:
        """Return what a token request has in place of a secret.

        Raises:
            OAuthError: `no_library`, `bad_key`.
        """
        try:
            import jwt  # noqa: PLC0415 - an optional library
        except ImportError:
            raise _no_library() from None
        claims = {"iss": client_id, "sub": client_id, "aud": audience, "jti": secrets.token_urlsafe(24)}
        times = {"iat": int(now), "exp": int(now) + _LIFE}
        headers = {"kid": self.key_id} if self.key_id else None
        try:
            signed = jwt.encode({**claims, **times}, self.pem, algorithm=self.algorithm, headers=headers)
        except NotImplementedError:  # PyJWT without cryptography
            raise _no_library() from None
        except (ValueError, TypeError, jwt.PyJWTError):
            raise OAuthError(
                "bad_key", f"the private key cannot be used with {self.algorithm}\nhint: give its PEM and its algorithm"
            ) from None
        return {"client_id": client_id, "client_assertion_type": _TYPE, "client_assertion": signed}


@dataclass(frozen=True, slots=True, repr=False)
class Workload:
    """A program whose platform says what it is: `token` returns the platform's JWT for an authorization server, by its issuer."""

    token: Callable[[str], str]

    def steps(self, issuer: str, resource: str) -> Steps[str]:
        """Yield nothing, and return the platform's statement."""
        yield from ()
        return self.token(issuer)


@dataclass(frozen=True, slots=True, repr=False)
class IdentityProvider:
    """The company's own login, which decides which MCP servers its people may use (Enterprise-Managed Authorization).

    `id_token` returns the person's ID token; it is exchanged at `token_endpoint`, where this client is `client_id`, for a grant that
    the MCP server's authorization server takes. The ID token is shown to nobody else.
    """

    token_endpoint: str
    id_token: Callable[[], str]
    client_id: str
    client_secret: str = ""

    def steps(self, issuer: str, resource: str) -> Steps[str]:
        """Yield the exchange.

        Raises:
            OAuthError: `bad_response`, or the identity provider's own code.
        """
        form = {
            "grant_type": _EXCHANGE,
            "requested_token_type": f"{_TOKEN}id-jag",
            "audience": issuer,
            "resource": resource,
            "subject_token": self.id_token(),
            "subject_token_type": f"{_TOKEN}id_token",
        }
        method = "client_secret_basic" if self.client_secret else "none"
        form, headers = authenticate_client(Registration(self.client_id, self.client_secret, method), form)
        answer = yield from post_form(self.token_endpoint, form, headers)
        data = json_object(answer, f"the answer of {self.token_endpoint}")
        grant = data.get("access_token")
        if answer.status != 200 or not isinstance(grant, str) or data.get("issued_token_type") != f"{_TOKEN}id-jag":
            code = str(data.get("error") or "bad_response")
            words = data.get("error_description") or code
            raise OAuthError(code, f"the identity provider gave no grant for {resource}: {words}")
        return grant


def _no_library() -> OAuthError:
    return OAuthError(
        "no_library", "signing needs PyJWT with cryptography\nhint: pip install 'mcpfactory-runtime[auth]'"
    )
