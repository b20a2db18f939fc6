"""How Google Search Console is reached.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""

from __future__ import annotations

from functools import cache

from mcpfactory_runtime.upstream import OAuthFlow, SecurityScheme, Upstream

BASE_URL = "https://searchconsole.googleapis.com"
SCHEMES = (
    SecurityScheme(
        "google",
        "oauth2",
        (
            "GOOGLE_SEARCH_CONSOLE_TOKEN",
            "GOOGLE_SEARCH_CONSOLE_CLIENT_ID",
            "GOOGLE_SEARCH_CONSOLE_CLIENT_SECRET",
            "GOOGLE_SEARCH_CONSOLE_REFRESH_TOKEN",
            "GOOGLE_SEARCH_CONSOLE_SERVICE_ACCOUNT",
        ),
        flows=(
            OAuthFlow(
                "authorizationCode",
                token_url="https://oauth2.googleapis.com/token",
                authorization_url="https://accounts.google.com/o/oauth2/v2/auth",
            ),
            OAuthFlow("serviceAccount", token_url="https://oauth2.googleapis.com/token"),
        ),
        scopes=("https://www.googleapis.com/auth/webmasters", "https://www.googleapis.com/auth/webmasters.readonly"),
    ),
)


@cache
def upstream() -> Upstream:
    """The connection that all tools share; credentials and GOOGLE_SEARCH_CONSOLE_BASE_URL are in the
    environment.
    """
    return Upstream(BASE_URL, SCHEMES, name="google-search-console", prefix="GOOGLE_SEARCH_CONSOLE")
