"""How Twilio is reached.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""

from __future__ import annotations

from functools import cache

from mcpfactory_runtime.upstream import SecurityScheme, ServerAddress, Upstream

BASE_URL = ""
SCHEMES = (SecurityScheme("basic", "basic", ("TWILIO_USERNAME", "TWILIO_PASSWORD")),)

SERVERS = (
    ServerAddress("api", "https://api.twilio.com"),
    ServerAddress("lookups", "https://lookups.twilio.com"),
    ServerAddress("verify", "https://verify.twilio.com"),
)


@cache
def upstream() -> Upstream:
    """The connection that all tools share; credentials and TWILIO_BASE_URL are in the environment."""
    return Upstream(BASE_URL, SCHEMES, servers=SERVERS, prefix="TWILIO")
