"""What the proxy signs and what it encrypts. All keys follow from one secret, so that every process and every restart has the same."""

from __future__ import annotations

import hmac
import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Any, Final

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from jwt.api_jws import PyJWS
    from jwt.exceptions import PyJWTError
except ImportError as error:
    raise RuntimeError("an OAuth proxy needs PyJWT\nhint: pip install 'mcpfactory-runtime[auth]'") from error

__all__ = ["TokenKeys", "digest"]

Json = dict[str, Any]

_ALGORITHM: Final = "HS256"
_NONCE: Final = 12  # bytes (NIST SP 800-38D §8.2)
_JWS: Final = PyJWS()


class TokenKeys:
    """The keys of one proxy; each kind of token has its own, so that none can pass for another.

    Args:
        secret: known to this server alone, and hard to guess.
        issuer: the proxy's URL; proxies with one secret have different keys.
    """

    def __init__(self, secret: str, issuer: str) -> None:
        self._secret = secret.encode()
        self._issuer = issuer

    def sign(self, kind: str, claims: Json) -> str:
        """Return claims as a signed token (RFC 7515) of this kind, which is its `typ`."""
        content = json.dumps(claims, separators=(",", ":")).encode()
        return _JWS.encode(content, self._key(kind), _ALGORITHM, headers={"typ": kind})

    def read(self, kind: str, token: str, now: float | None = None) -> Json | None:
        """Return what was signed; None where it is not ours, of another kind, or over.

        Args:
            kind: the only one that counts.
            token: from anybody.
            now: seconds since the epoch; None leaves `exp` to the caller.
        """
        try:
            claims = json.loads(_JWS.decode(token, self._key(kind), algorithms=[_ALGORITHM]))
        except (PyJWTError, ValueError):
            return None
        return dict(claims) if now is None or claims["exp"] > now else None

    def encrypt(self, data: Json, bound: str) -> str:
        """Return data that only this server can read, and only as what belongs to `bound`."""
        nonce = os.urandom(_NONCE)
        sealed = AESGCM(self._key("vault")).encrypt(nonce, json.dumps(data).encode(), bound.encode())
        return urlsafe_b64encode(nonce + sealed).decode()

    def decrypt(self, text: str, bound: str) -> Json | None:
        """Return what was encrypted; None where it was changed, or encrypted for something else or with another secret."""
        sealed = urlsafe_b64decode(text)
        try:
            data = AESGCM(self._key("vault")).decrypt(sealed[:_NONCE], sealed[_NONCE:], bound.encode())
        except InvalidTag:
            return None
        return dict(json.loads(data))

    def _key(self, kind: str) -> bytes:
        return hmac.new(self._secret, f"oauth-proxy\0{self._issuer}\0{kind}".encode(), sha256).digest()


def digest(text: str) -> str:
    """Return what is kept and compared in place of a secret."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
