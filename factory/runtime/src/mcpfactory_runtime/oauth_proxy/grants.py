"""Logins, codes and grants of the proxy, and the tokens that the proxy signs.

Codes and states are stored as hashes, and the provider's tokens are encrypted. Some records may be used only once. A
conditional write marks or removes such a record, so that only one process can use the record.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Final

from mcpfactory_runtime.storage.base import ExpectedEntry, SharedStore
from mcpfactory_runtime.types import Json

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from jwt.api_jws import PyJWS
    from jwt.exceptions import PyJWTError
except ImportError as error:
    raise RuntimeError("an OAuth proxy needs PyJWT\nhint: pip install 'mcpfactory-runtime[auth]'") from error


_ALGORITHM: Final = "HS256"
_NONCE: Final = 12  # bytes of a nonce (NIST SP 800-38D §8.2)
_JWS: Final = PyJWS()


class TokenKeys:
    """The cryptographic keys of one proxy, one for each kind of token.

    Proxies with the same secret but different URLs (`issuer`) have different keys.
    """

    def __init__(self, secret: str, issuer: str) -> None:
        self._secret = secret.encode()
        self._issuer = issuer

    def sign(self, kind: str, claims: Json) -> str:
        """Return claims as a signed token (RFC 7515), whose `typ` is the kind."""
        content = json.dumps(claims, separators=(",", ":")).encode()
        return _JWS.encode(content, self._key(kind), _ALGORITHM, headers={"typ": kind})

    def read(self, kind: str, token: str, now: float | None = None) -> Json | None:
        """Return the claims of an untrusted token, or None if the token is not ours, of another kind, or expired.

        If `now` is None, the expiry is not checked.
        """
        try:
            claims = json.loads(_JWS.decode(token, self._key(kind), algorithms=[_ALGORITHM]))
        except (PyJWTError, ValueError):
            return None
        return dict(claims) if now is None or claims["exp"] > now else None

    def encrypt(self, data: Json, bound: str) -> str:
        """Encrypt data so that decryption requires an equal `bound`."""
        nonce = os.urandom(_NONCE)
        sealed = AESGCM(self._key("vault")).encrypt(nonce, json.dumps(data).encode(), bound.encode())
        return urlsafe_b64encode(nonce + sealed).decode()

    def decrypt(self, text: str, bound: str) -> Json | None:
        """Return the decrypted object, or None if the text was changed, or `bound` or the secret differs."""
        sealed = urlsafe_b64decode(text)
        try:
            data = AESGCM(self._key("vault")).decrypt(sealed[:_NONCE], sealed[_NONCE:], bound.encode())
        except InvalidTag:
            return None
        return dict(json.loads(data))

    def _key(self, kind: str) -> bytes:
        return hmac.new(self._secret, f"oauth-proxy\0{self._issuer}\0{kind}".encode(), sha256).digest()


def digest(text: str) -> str:
    """Return a digest of a secret."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


LOGIN_SECONDS: Final = 600.0
"""Maximum seconds for the user's consent, and again for the login."""

CODE_SECONDS: Final = 60.0
"""Maximum seconds for the client to redeem a code."""

GRANT_SECONDS: Final = 30 * 86_400.0
"""Lifetime of an unused grant, in seconds."""

# Key of a record in its space. All records of a space expire together, so each record has a separate space.
_KEY: Final = ""


class GrantStore:
    """The records of one proxy. All methods raise OSError if the store is unreachable."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store

    async def begin_login(self, login: Json) -> str:
        """Store a login, and return the `state` parameter, which identifies the provider's later redirect."""
        state = secrets.token_urlsafe(32)
        await self._put(f"oauth/login/{digest(state)}", login, LOGIN_SECONDS)
        return state

    async def find_login(self, state: str) -> Json | None:
        """Return a login in progress, or None."""
        return _load(await self._store.get(f"oauth/login/{digest(state)}", _KEY))

    async def end_login(self, state: str, login: Json) -> bool:
        """Delete a login, or return False if another request has already deleted the login."""
        space = f"oauth/login/{digest(state)}"
        return await self._store.write(space, [(_KEY, None)], seconds=1.0, expected=ExpectedEntry(_KEY, _dump(login)))

    async def issue_code(self, waiting: Json, grant: Json) -> str:
        """Store an authorization code with its grant, and return the code."""
        code = secrets.token_urlsafe(32)
        await self._put(f"oauth/grant/{waiting['grant']}", grant, CODE_SECONDS)
        await self._put(f"oauth/code/{digest(code)}", waiting, CODE_SECONDS)
        return code

    async def redeem_code(self, code: str) -> Json | None:
        """Return the data of an unused code, or end the grant of a used code (RFC 6749 §4.1.2)."""
        space = f"oauth/code/{digest(code)}"
        kept = await self._store.get(space, _KEY)
        waiting = _load(kept)
        if waiting is None:
            return None
        used = _dump({"grant": waiting["grant"], "used": True})
        expected = ExpectedEntry(_KEY, kept)
        if "used" in waiting or not await self._store.write(
            space, [(_KEY, used)], seconds=LOGIN_SECONDS, expected=expected
        ):
            await self.end(waiting["grant"])
            return None
        return waiting

    async def find(self, grant_id: str) -> Json | None:
        """Return a grant, or None if the grant has ended."""
        return _load(await self._store.get(f"oauth/grant/{grant_id}", _KEY))

    async def change(self, grant_id: str, before: Json, after: Json) -> bool:
        """Replace a grant, or return False if another request has changed the grant meanwhile."""
        space, expected = f"oauth/grant/{grant_id}", ExpectedEntry(_KEY, _dump(before))
        return await self._store.write(space, [(_KEY, _dump(after))], seconds=GRANT_SECONDS, expected=expected)

    async def end(self, grant_id: str) -> None:
        """End a grant and all its tokens."""
        await self._store.drop(f"oauth/grant/{grant_id}")

    async def _put(self, space: str, record: Json, seconds: float) -> None:
        await self._store.write(space, [(_KEY, _dump(record))], seconds=seconds)


def _dump(record: Json) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


def _load(data: bytes | None) -> Json | None:
    return None if data is None else dict(json.loads(data))
