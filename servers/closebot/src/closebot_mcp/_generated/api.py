"""How CloseBot is reached.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""

from __future__ import annotations

from functools import cache

from mcpfactory_runtime.upstream import SecurityScheme, Upstream

BASE_URL = "https://api.closebot.com"
SCHEMES = (SecurityScheme("key", "apiKey", ("CLOSEBOT_API_KEY",), place="header", parameter="X-CB-KEY"),)


@cache
def upstream() -> Upstream:
    """The connection that all tools share; credentials and CLOSEBOT_BASE_URL are in the environment."""
    return Upstream(BASE_URL, SCHEMES, prefix="CLOSEBOT")
