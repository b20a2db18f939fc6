"""Tokens that only the holder of a key can use (DPoP, RFC 9449): a proof for each request, with the nonce that its server wants.

PyJWT signs (the extra `auth`); it is loaded with the first proof.
"""

from __future__ import annotations

import json
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from mcpfactory_runtime.oauth.challenge import read_challenges
from mcpfactory_runtime.oauth.model import origin

__all__ = ["ALGORITHM", "ProofKey", "can_prove", "wants_nonce"]

ALGORITHM: Final = "ES256"
_LONGEST: Final = 1000  # characters of a nonce


def can_prove() -> bool:
    """Return whether the libraries for it are installed."""
    return find_spec("jwt") is not None and find_spec("cryptography") is not None


def wants_nonce(status: int, header: str) -> bool:
    """Return whether an MCP server's refusal (status, `WWW-Authenticate`) asks for a proof with its nonce (§9)."""
    return status == 401 and any(
        one.scheme == "dpop" and one.parameters.get("error") == "use_dpop_nonce" for one in read_challenges(header)
    )


class ProofKey:
    """A key, and the nonces that servers gave.

    Args:
        pem: the private key; "" makes a new one.
    """

    def __init__(self, pem: str = "") -> None:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an optional library
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - likewise
        from jwt.algorithms import ECAlgorithm  # noqa: PLC0415 - likewise

        made = ec.generate_private_key(ec.SECP256R1()) if not pem else None
        key: Any = made or serialization.load_pem_private_key(pem.encode(), None)
        form = serialization.PrivateFormat.PKCS8
        self.pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()
        self._key = key
        self._public = json.loads(ECAlgorithm.to_jwk(key.public_key()))
        self._nonces: dict[str, str] = {}

    def proof(self, method: str, url: str, now: float, token: str = "") -> str:
        """Return the value of the header `DPoP` for one request (§4.2), with which `token` is used."""
        import jwt  # noqa: PLC0415 - an optional library

        parts = urlsplit(url)
        claims: dict[str, Any] = {
            "jti": secrets.token_urlsafe(24),
            "htm": method,
            "htu": urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")),
            "iat": int(now),
        }
        if token:
            claims["ath"] = urlsafe_b64encode(sha256(token.encode()).digest()).rstrip(b"=").decode()
        if nonce := self._nonces.get(origin(url)):
            claims["nonce"] = nonce
        return jwt.encode(claims, self._key, algorithm=ALGORITHM, headers={"typ": "dpop+jwt", "jwk": self._public})

    def note(self, url: str, headers: Mapping[str, str]) -> bool:
        """Keep the nonce of an answer for the next proof to its server; whether there was another than before (§8.2)."""
        nonce = headers.get("dpop-nonce", "")
        if not nonce or len(nonce) > _LONGEST or self._nonces.get(origin(url)) == nonce:
            return False
        self._nonces[origin(url)] = nonce
        return True
