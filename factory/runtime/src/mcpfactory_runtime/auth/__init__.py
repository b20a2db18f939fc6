"""Authorization of requests to a protected server (basic/authorization).

Clients send access tokens of an authorization server. `Authorization` contains the accepted issuers and the rules. The
modules `tokens`, `authorization` and `jwks` do no I/O; the HTTP transport does all I/O
(`transports/http/authentication.py`). Only `jose` imports a cryptographic library, at the first request with a JWT.
"""

from __future__ import annotations

from mcpfactory_runtime.auth.authorization import Authorization, AuthorizationError
from mcpfactory_runtime.auth.tokens import Principal

__all__ = ["Authorization", "AuthorizationError", "Principal"]
