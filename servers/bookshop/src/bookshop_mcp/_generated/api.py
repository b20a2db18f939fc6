"""How Bookshop is reached.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""

from __future__ import annotations

from functools import cache

from mcpfactory_runtime.upstream import SecurityScheme, Upstream

BASE_URL = "http://127.0.0.1:8642/v1"
SCHEMES = (SecurityScheme("apiKey", "apiKey", ("BOOKSHOP_API_KEY",), place="header", parameter="X-Api-Key"),)


@cache
def upstream() -> Upstream:
    """The connection that all tools share; credentials and BOOKSHOP_BASE_URL are in the environment."""
    return Upstream(BASE_URL, SCHEMES, prefix="BOOKSHOP")
