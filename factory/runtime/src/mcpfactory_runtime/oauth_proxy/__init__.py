"""An OAuth proxy: an authorization server in front of providers whose clients cannot register themselves (GitHub, Google, OpenID Connect).

MCP clients register here, a person agrees to each in the browser, the provider says who the person is, and clients get tokens of
this server; those of the provider stay here, encrypted. `proxy` has the endpoints and does no HTTP: `transports/http/oauth_endpoints.py` does.
"""

from __future__ import annotations

from mcpfactory_runtime.oauth_proxy.providers import LoginProvider, github, google, oidc
from mcpfactory_runtime.oauth_proxy.proxy import OAuthProxy

__all__ = ["LoginProvider", "OAuthProxy", "github", "google", "oidc"]
