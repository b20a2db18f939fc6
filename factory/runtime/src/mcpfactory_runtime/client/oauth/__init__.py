"""OAuth for clients: discovery, registration, PKCE, scopes, refresh; pure procedures and one class that drives them."""

from __future__ import annotations

from .loopback import Loopback
from .model import Fetch, OAuthError, Visit
from .oauth import OAuth

__all__ = ["Fetch", "Loopback", "OAuth", "OAuthError", "Visit"]
