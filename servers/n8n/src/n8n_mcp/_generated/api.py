"""How n8n is reached.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""

from __future__ import annotations

from functools import cache

from mcpfactory_runtime.upstream import SecurityScheme, Upstream

BASE_URL = ""
SCHEMES = (SecurityScheme("key", "apiKey", ("N8N_API_KEY",), place="header", parameter="X-N8N-API-KEY"),)


@cache
def upstream() -> Upstream:
    """The connection that all tools share; credentials and N8N_BASE_URL are in the environment."""
    return Upstream(BASE_URL, SCHEMES, prefix="N8N")
