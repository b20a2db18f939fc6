"""An authorization server that signs with real keys and publishes them on a real socket. Signatures are made here by
hand, with nothing but the cryptographic primitives, so that two implementations meet."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from mcpfactory_runtime.types import Json
from tests.runtime.client.authority import Authority
from tests.runtime.client.peer import Asked, peer, reply

NOW = 1_800_000_000.0
HASHES: dict[str, Any] = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}
CURVES: dict[str, tuple[type[ec.EllipticCurve], str, int]] = {
    "ES256": (ec.SECP256R1, "P-256", 32),
    "ES384": (ec.SECP384R1, "P-384", 48),
    "ES512": (ec.SECP521R1, "P-521", 66),
}


def b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int, size: int | None = None) -> str:
    return b64(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


class Clock:
    """Clock that the test sets, in seconds since the epoch."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@dataclass
class Key:
    """A key pair for one algorithm."""

    kid: str
    algorithm: str
    private: Any

    def public(self) -> Json:
        jwk = {"kid": self.kid, "use": "sig", "alg": self.algorithm}
        known = self.private.public_key()
        if self.algorithm in CURVES:
            _, curve, size = CURVES[self.algorithm]
            point = known.public_numbers()
            return {**jwk, "kty": "EC", "crv": curve, "x": number(point.x, size), "y": number(point.y, size)}
        if self.algorithm == "EdDSA":
            return {**jwk, "kty": "OKP", "crv": "Ed25519", "x": b64(known.public_bytes_raw())}
        numbers = known.public_numbers()
        return {**jwk, "kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}

    def sign(self, claims: Json, **header: Any) -> str:
        """Return a JWT without header members that are None."""
        head = {"alg": self.algorithm, "kid": self.kid, "typ": "at+jwt", **header}
        text = compact({name: value for name, value in head.items() if value is not None}, claims)
        return f"{text}.{b64(self._signature(text.encode()))}"

    def _signature(self, data: bytes) -> bytes:
        if self.algorithm == "EdDSA":
            return bytes(self.private.sign(data))
        digest = HASHES[self.algorithm[2:]]()
        if self.algorithm in CURVES:
            size = CURVES[self.algorithm][2]
            r, s = decode_dss_signature(self.private.sign(data, ec.ECDSA(digest)))
            return r.to_bytes(size, "big") + s.to_bytes(size, "big")
        pss = padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH)
        return bytes(self.private.sign(data, pss if self.algorithm[0] == "P" else padding.PKCS1v15(), digest))


def compact(header: Json, claims: Any) -> str:
    """Return the signed part of a JWT."""
    return f"{b64(json.dumps(header).encode())}.{b64(json.dumps(claims).encode())}"


@cache
def make_key(kid: str = "one", algorithm: str = "ES256", bits: int = 2048) -> Key:
    """Return a new key pair, or a cached one for the same arguments, because RSA keys are slow."""
    if algorithm in CURVES:
        return Key(kid, algorithm, ec.generate_private_key(CURVES[algorithm][0]()))
    if algorithm == "EdDSA":
        return Key(kid, algorithm, ed25519.Ed25519PrivateKey.generate())
    return Key(kid, algorithm, rsa.generate_private_key(65537, bits))


@dataclass
class Issuer(Authority):
    """`Authority`, with signed tokens. `published` are the public keys; `fetched` counts the requests for them."""

    published: list[Key] = field(default_factory=lambda: [make_key()])
    fetched: int = 0
    broken: bool = False
    audience: str = ""
    clock: Clock = field(default_factory=Clock)

    @property
    def jwks_url(self) -> str:
        return f"{self.base}/jwks"

    async def answer(self, asked: Asked, _send: Any) -> Any:
        if asked.path != "/jwks":
            return await super().answer(asked, _send)
        self.fetched += 1
        if self.broken:
            return 500, {}, b"out of order"
        return reply({"keys": [key.public() for key in self.published]})

    def claims(self, **changed: Any) -> Json:
        """Return the claims of a valid token; None omits a claim."""
        good = {
            "iss": self.base,
            "aud": self.audience,
            "sub": "ada",
            "client_id": "client-1",
            "scope": "books:read",
            "iat": int(self.clock.now),
            "exp": int(self.clock.now) + 300,
            **changed,
        }
        return {name: value for name, value in good.items() if value is not None}

    def signed(self, **changed: Any) -> str:
        """Return a valid token, or one with changed claims."""
        return self.published[-1].sign(self.claims(**changed))

    def exchange(self, asked: Asked) -> Any:
        """Respond as the token endpoint of `Authority`, with a signed token."""
        status, headers, body = super().exchange(asked)
        told = json.loads(body)
        granted = " ".join(sorted(self.valid[told["access_token"]]))
        told["access_token"] = self.signed(scope=granted, aud=self.exchanges[-1]["resource"])
        return reply(told, status, headers)


@asynccontextmanager
async def issuer(**knobs: Any) -> AsyncIterator[Issuer]:
    """Yield a running issuer."""
    running = Issuer(**knobs)
    async with peer(running.answer) as server:
        running.server = server
        yield running
