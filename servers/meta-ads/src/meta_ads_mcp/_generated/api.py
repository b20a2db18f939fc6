"""How Meta Ads is reached.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""

from __future__ import annotations

from functools import cache

from mcpfactory_runtime.upstream import SecurityScheme, Upstream

BASE_URL = "https://graph.facebook.com/v25.0"
SCHEMES = (SecurityScheme("token", "bearer", ("META_ADS_TOKEN",)),)


@cache
def upstream() -> Upstream:
    """The connection that all tools share; credentials and META_ADS_BASE_URL are in the environment."""
    return Upstream(BASE_URL, SCHEMES, prefix="META_ADS")
