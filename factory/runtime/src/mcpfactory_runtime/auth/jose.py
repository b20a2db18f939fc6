"""Verification of JWTs with PyJWT, imported at the first request with a JWT."""

from __future__ import annotations

from typing import Any, Final

try:
    from jwt.api_jwk import PyJWK
    from jwt.api_jws import PyJWS
    from jwt.exceptions import PyJWTError
except ImportError as error:
    raise RuntimeError("JWT checks require PyJWT\nhint: pip install 'mcpfactory-runtime[auth]'") from error

from mcpfactory_runtime.auth.jwks import PublicKey
from mcpfactory_runtime.auth.tokens import TokenError

_JWS: Final = PyJWS()
_PUBLIC: Final = {"kty", "n", "e", "crv", "x", "y"}


def verify(token: str, key: PublicKey, algorithm: str) -> bytes:
    """Return the payload of a JWS that `key` signed with `algorithm`, or raise TokenError."""
    loaded: Any = key.loaded.get(algorithm)
    if loaded is None:
        try:
            public = {name: value for name, value in key.data.items() if name in _PUBLIC}
            loaded = key.loaded[algorithm] = PyJWK(public, algorithm)
        except (PyJWTError, ValueError, TypeError, AttributeError):  # the key has invalid members
            raise TokenError("key") from None
    try:  # the caller checked that the allowlist and the key permit `algorithm`
        payload: bytes = _JWS.decode_complete(token, loaded, algorithms=[algorithm])["payload"]
    except PyJWTError:
        raise TokenError("signature") from None
    return payload
