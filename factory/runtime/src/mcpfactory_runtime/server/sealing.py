"""`requestState`: answers that travel through the client and come back, sealed (basic/patterns/mrtr).

The client must not be able to change it, to use it for another request, for another principal, or for ever. So an HMAC
covers the answers, the expiry and a digest of principal, method and parameters. It is not encrypted: it only holds what
this client itself has answered.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final

from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, McpError

__all__ = ["LIFETIME", "Sealer"]

Json = dict[str, Any]

LIFETIME: Final = 3600.0
"""Seconds that a user may take to answer."""

_NOT_BOUND: Final = {"_meta", "inputResponses", "requestState"}  # differ between a request and its repetition


class Sealer:
    """Seals and opens states with one key.

    Args:
        key: the secret; every process that serves the same clients needs the same one.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def from_environment(cls) -> Sealer:
        """Return the key of MCPFACTORY_STATE_KEY, or one that lives as long as this process."""
        given = os.environ.get("MCPFACTORY_STATE_KEY")
        return cls(given.encode() if given else os.urandom(32))

    def seal(self, answers: Json, *, principal: str, method: str, params: Json, now: float) -> str:
        """Return the state that a client is given. `now` is in seconds since the epoch."""
        body = {"answers": answers, "expires": now + LIFETIME, "for": _digest(principal, method, params)}
        payload = urlsafe_b64encode(json.dumps(body, separators=(",", ":")).encode())
        return f"{payload.decode()}.{self._mac(payload)}"

    def open(self, state: object, *, principal: str, method: str, params: Json, now: float) -> Json:
        """Return the answers in a state.

        Raises:
            McpError: INVALID_PARAMS when the state is not ours, was changed, has expired or belongs to another request.
        """
        if not isinstance(state, str) or "." not in state:
            raise McpError(INVALID_PARAMS, "Invalid params: requestState is not one of this server")
        payload, _, mac = state.rpartition(".")
        if not hmac.compare_digest(mac.encode(), self._mac(payload.encode()).encode()):
            raise McpError(INVALID_PARAMS, "Invalid params: requestState was changed or sealed by another process")
        body = json.loads(urlsafe_b64decode(payload))
        if body["expires"] < now:
            raise McpError(INVALID_PARAMS, "Invalid params: requestState has expired")
        if body["for"] != _digest(principal, method, params):
            raise McpError(INVALID_PARAMS, "Invalid params: requestState belongs to another request")
        answers: Json = body["answers"]
        return answers

    def _mac(self, payload: bytes) -> str:
        return urlsafe_b64encode(hmac.new(self._key, payload, hashlib.sha256).digest()).decode().rstrip("=")


def _digest(principal: str, method: str, params: Json) -> str:
    bound = {key: value for key, value in params.items() if key not in _NOT_BOUND}
    text = json.dumps([principal, method, bound], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
