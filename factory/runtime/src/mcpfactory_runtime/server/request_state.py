"""Sealed `requestState`: questions and answers that pass through the client (basic/patterns/mrtr).

An HMAC covers the answers, the question keys, a random challenge, the expiry time, and a digest of server, principal,
method and parameters. A client therefore cannot change a state, answer other questions, or use a state twice, too late
or for another request. States are not encrypted, because the client already knows the questions and answers.

A client that cannot ask its user gets a code instead of a state. The model repeats the call with the code if the person
agrees.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from base64 import b32decode, b32encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import Final, NamedTuple

from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, McpError
from mcpfactory_runtime.storage.base import ExpectedEntry, SharedStore
from mcpfactory_runtime.types import Json

LIFETIME: Final = 3600.0
"""Time limit for a user's answer, in seconds."""

CODE_LIFETIME: Final = 600.0
"""Validity of a code in seconds."""

_NOT_BOUND: Final = {"_meta", "inputResponses", "requestState"}  # members that may differ if a client repeats a request
# Bytes of a code's head: 5 bytes of expiry time and 5 random bytes. The HMAC after the head has the same length.
_HEAD: Final = 10
_EVER: Final = 10 * 365 * 86_400.0  # seconds (ten years); lifetime of the shared key in the store
_MOST_USED: Final = 100_000  # maximum number of used challenges in memory


class OpenedState(NamedTuple):
    """Content of a sealed state: answers of earlier rounds, keys of the questions, challenge and expiry time."""

    answers: Json
    asked: frozenset[str]
    challenge: str
    expires: float


class UsedStates:
    """States that this process has already accepted."""

    def __init__(self) -> None:
        self._used: dict[str, float] = {}
        # Latest expiry time of all removed challenges. A challenge that expires earlier counts as used.
        self._forgotten = 0.0

    def add(self, challenge: str, expires: float, now: float) -> bool:
        """Mark a state as used. Return False if the state was used before."""
        if challenge in self._used or expires <= self._forgotten:
            return False
        self._used[challenge] = expires
        while self._used:
            oldest = next(iter(self._used))
            if self._used[oldest] > now and len(self._used) <= _MOST_USED:
                break
            self._forgotten = max(self._forgotten, self._used.pop(oldest))
        return True


class RequestStateSealer:
    """Sealer of states and codes."""

    def __init__(self, key: bytes, server: str = "") -> None:
        self._key = key
        self._server = server
        self._used = UsedStates()
        self._store: SharedStore | None = None

    @classmethod
    def from_environment(cls, server: str = "") -> RequestStateSealer:
        """Return a sealer with the key in MCPFACTORY_STATE_KEY. Without MCPFACTORY_STATE_KEY, create a new key."""
        given = os.environ.get("MCPFACTORY_STATE_KEY")
        return cls(given.encode() if given else os.urandom(32), server)

    def seal(
        self, answers: Json, asked: Iterable[str], *, principal: str, method: str, params: Json, now: float
    ) -> str:
        """Return the state to send with the questions `asked`. `now` is in seconds since the epoch."""
        body = {
            "answers": answers,
            "asked": sorted(asked),
            "challenge": secrets.token_hex(16),
            "expires": now + LIFETIME,
            "for": self._digest(principal, method, params),
        }
        payload = urlsafe_b64encode(json.dumps(body, separators=(",", ":")).encode())
        return f"{payload.decode()}.{self._mac(payload)}"

    def open(self, state: object, *, principal: str, method: str, params: Json, now: float) -> OpenedState:
        """Open a sealed state, and return the content."""
        if not isinstance(state, str) or "." not in state:
            raise McpError(INVALID_PARAMS, "Invalid params: requestState was not issued by this server")
        payload, _, mac = state.rpartition(".")
        if not hmac.compare_digest(mac.encode(), self._mac(payload.encode()).encode()):
            raise McpError(INVALID_PARAMS, "Invalid params: requestState was changed or sealed by another process")
        body = json.loads(urlsafe_b64decode(payload))
        if body["expires"] < now:
            raise McpError(INVALID_PARAMS, "Invalid params: requestState has expired")
        if body["for"] != self._digest(principal, method, params):
            raise McpError(INVALID_PARAMS, "Invalid params: requestState belongs to another request")
        return OpenedState(body["answers"], frozenset(body["asked"]), body["challenge"], body["expires"])

    async def share(self, store: SharedStore) -> None:
        """Record used states in a shared store. Use the key in the store, unless the environment sets a key."""
        self._store = store
        if "MCPFACTORY_STATE_KEY" not in os.environ:
            new = secrets.token_hex(32).encode()
            first = await store.write("secrets", [("state", new)], seconds=_EVER, expected=ExpectedEntry("state", None))
            self._key = new if first else await store.get("secrets", "state") or new

    async def mark_used(self, opened: OpenedState, now: float) -> None:
        """Mark a state as used."""
        if not await self._first(opened.challenge, opened.expires, now):
            raise McpError(
                INVALID_PARAMS,
                "Invalid params: requestState was already used\nhint: send the request again without "
                "requestState and inputResponses, then answer the new questions",
            )

    def code(self, *, principal: str, method: str, params: Json, now: float) -> str:
        """Return a new code of 32 letters and digits for a request."""
        head = int(now + CODE_LIFETIME).to_bytes(5, "big") + secrets.token_bytes(5)
        return b32encode(head + self._code_mac(head, principal, method, params)).decode().lower()

    async def redeem(self, code: str, *, principal: str, method: str, params: Json, now: float) -> bool:
        """Mark a code as used. Return False if the code is expired, already used, or invalid for this request."""
        try:
            raw = b32decode(code.strip().upper())
        except ValueError:
            return False
        head, expires = raw[:_HEAD], int.from_bytes(raw[:5], "big")
        if not hmac.compare_digest(raw[_HEAD:], self._code_mac(head, principal, method, params)) or expires < now:
            return False
        return await self._first(hashlib.sha256(raw).hexdigest()[:32], expires, now)

    async def _first(self, challenge: str, expires: float, now: float) -> bool:
        if self._store is None:
            return self._used.add(challenge, expires, now)
        seconds = expires - now + 1.0
        return await self._store.write(
            f"used/{challenge}", [("", b"1")], seconds=seconds, expected=ExpectedEntry("", None)
        )

    def _code_mac(self, head: bytes, principal: str, method: str, params: Json) -> bytes:
        # States contain no NUL, so a code never equals a state.
        bound = b"code\0" + head + self._digest(principal, method, params).encode()
        return hmac.new(self._key, bound, hashlib.sha256).digest()[:_HEAD]

    def _mac(self, payload: bytes) -> str:
        return urlsafe_b64encode(hmac.new(self._key, payload, hashlib.sha256).digest()).decode().rstrip("=")

    def _digest(self, principal: str, method: str, params: Json) -> str:
        bound = {key: value for key, value in params.items() if key not in _NOT_BOUND}
        text = json.dumps([self._server, principal, method, bound], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
