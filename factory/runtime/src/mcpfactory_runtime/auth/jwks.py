"""Cache of an issuer's keys as a state machine without I/O (RFC 7517 and RFC 9700).

    empty ──stored──▶ fresh ──LIFETIME──▶ stale ──MAX_STALE──▶ empty

An attacker can invent key IDs, so unknown key IDs cause at most one fetch per `COOLDOWN` seconds. The cache returns
stale keys while fetches fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Json = Mapping[str, Any]

LIFETIME: Final = 600.0  # seconds after which keys are fetched again
MAX_STALE: Final = 86_400.0  # seconds; maximum age of keys that are used while fetches fail
COOLDOWN: Final = 30.0  # minimum seconds between fetches for unknown key IDs
RETRY: Final = 5.0  # minimum seconds between a failed fetch and the next fetch
_MAX_KEYS: Final = 64
_MIN_RSA: Final = 2048  # minimum bits of an RSA key (RFC 7518 §3.3)

# Algorithm → key type and curve. Symmetric algorithms are missing, because a public key could then sign tokens.
FAMILIES: Final[dict[str, tuple[str, str | None]]] = {
    **{f"{family}{bits}": ("RSA", None) for family in ("RS", "PS") for bits in (256, 384, 512)},
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}


@dataclass(slots=True)
class PublicKey:
    """A public key. `data` is the JWK, and `loaded` maps algorithms to key objects of the JWT library."""

    data: Json
    loaded: dict[str, Any] = field(default_factory=dict)

    def matches(self, algorithm: str) -> bool:
        """Return True if the key may verify signatures of the algorithm."""
        kind, curve = FAMILIES[algorithm]
        data = self.data
        operations = data.get("key_ops")
        return (
            data.get("kty") == kind
            and (curve is None or data.get("crv") == curve)
            and data.get("use", "sig") == "sig"
            and data.get("alg", algorithm) == algorithm
            and (not isinstance(operations, list) or "verify" in operations)
            and (kind != "RSA" or _bits(data.get("n")) >= _MIN_RSA)
        )


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """The result of a key lookup. `keys` may have created the signature.

    If `fetch` is True, the caller should fetch the keys and repeat the lookup. If `known` is False, the issuer's keys
    are unavailable, and the caller can neither accept nor reject the token.
    """

    keys: tuple[PublicKey, ...]
    fetch: bool
    known: bool


class KeyCache:
    """The keys of one issuer. `document` is a fixed JWK Set, or None if the caller fetches keys."""

    def __init__(self, document: Json | None = None) -> None:
        self._keys: tuple[PublicKey, ...] = ()
        self._fixed = document is not None
        self._stored_at: float | None = None
        self._tried_at: float | None = None
        self._failed = False
        if document is not None:
            self._keys = _read(document)

    def find(self, key_id: str | None, algorithm: str, now: float) -> KeyLookup:
        """Return the keys that may have created a signature."""
        matches = tuple(
            key
            for key in self._keys
            if key.matches(algorithm) and (key_id is None or key.data.get("kid", key_id) == key_id)
        )
        if self._fixed:
            return KeyLookup(matches, fetch=False, known=True)
        age = None if self._stored_at is None else abs(now - self._stored_at)
        if age is None or age >= MAX_STALE:
            self._keys = ()
            return KeyLookup((), fetch=self._may_fetch(now, 0.0), known=False)
        fetch = self._may_fetch(now, 0.0 if age >= LIFETIME else COOLDOWN) if age >= LIFETIME or not matches else False
        return KeyLookup(matches, fetch=fetch, known=True)

    def store(self, document: Any, now: float) -> bool:
        """Store fetched keys, or return False for an invalid JWK Set, which counts as a failed fetch."""
        if not isinstance(document, Mapping) or not isinstance(document.get("keys"), list):
            self.mark_failed(now)
            return False
        self._keys = _read(document)
        self._stored_at = self._tried_at = now
        self._failed = False
        return True

    def mark_failed(self, now: float) -> None:
        """Record a failed fetch."""
        self._tried_at = now
        self._failed = True

    def _may_fetch(self, now: float, pause: float) -> bool:
        pause = max(pause, RETRY if self._failed else 0.0)
        return self._tried_at is None or abs(now - self._tried_at) >= pause


def _read(document: Json) -> tuple[PublicKey, ...]:
    found = [
        PublicKey(entry)
        for entry in document.get("keys", ())
        if isinstance(entry, Mapping) and isinstance(entry.get("kid", ""), str)
    ]
    return tuple(key for key in found if any(key.matches(algorithm) for algorithm in FAMILIES))[:_MAX_KEYS]


def _bits(modulus: object) -> int:
    return len(modulus) * 6 // 8 * 8 if isinstance(modulus, str) else 0
