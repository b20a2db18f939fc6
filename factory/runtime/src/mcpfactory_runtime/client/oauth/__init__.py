"""OAuth for MCP clients: discovery from a server's refusal, step-up, refresh; one class that drives it."""

from __future__ import annotations

from mcpfactory_runtime.client.oauth.oauth import OAuth
from mcpfactory_runtime.oauth import Fetch, Loopback, OAuthError, Visit

__all__ = ["Fetch", "Loopback", "OAuth", "OAuthError", "Visit"]
