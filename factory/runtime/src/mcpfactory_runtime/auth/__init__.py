"""Authorization, the side of the protected server (basic/authorization): who may call, and what.

Requests come in with an access token that somebody else issued. `Authorization` says whose tokens are believed;
everything between the header and the decision is pure (`tokens`, `authorization`, `jwks`); the edge is the gate of
the HTTP transport (`transports/http/authentication.py`). Only `jose` knows a cryptographic library, and only requests with a JWT load it.
"""

from __future__ import annotations

from mcpfactory_runtime.auth.authorization import Authorization, AuthorizationError
from mcpfactory_runtime.auth.tokens import Principal

__all__ = ["Authorization", "AuthorizationError", "Principal"]
