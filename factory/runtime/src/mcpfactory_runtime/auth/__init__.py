"""Authorization of requests to a protected server (basic/authorization).

`Authorization` contains the accepted issuers and the rules. The HTTP transport does all I/O
(`transports/http/authentication.py`).
"""

from __future__ import annotations

from mcpfactory_runtime.auth.authorization import Authorization, AuthorizationError
from mcpfactory_runtime.auth.tokens import Principal

__all__ = ["Authorization", "AuthorizationError", "Principal"]
