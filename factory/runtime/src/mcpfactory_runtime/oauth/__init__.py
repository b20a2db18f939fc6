"""OAuth for clients, used by the MCP client and by calls to upstream APIs.

Procedures are generators without I/O, which code with an HTTP client executes.
"""

from __future__ import annotations

from mcpfactory_runtime.oauth.loopback import Loopback
from mcpfactory_runtime.oauth.steps_and_metadata import Fetch, OAuthError, Pause, Visit, drive

__all__ = ["Fetch", "Loopback", "OAuthError", "Pause", "Visit", "drive"]
