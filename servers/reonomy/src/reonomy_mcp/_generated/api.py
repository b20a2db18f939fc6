"""How Reonomy is reached.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""

from __future__ import annotations

from functools import cache

from mcpfactory_runtime.upstream import SecurityScheme, Upstream

BASE_URL = "https://api.reonomy.com/v2"
SCHEMES = (SecurityScheme("basic", "basic", ("REONOMY_USERNAME", "REONOMY_PASSWORD")),)


@cache
def upstream() -> Upstream:
    """The connection that all tools share; credentials and REONOMY_BASE_URL are in the environment."""
    return Upstream(BASE_URL, SCHEMES, prefix="REONOMY")
