"""OAuth proxy: an authorization server for providers without client registration (GitHub, Google, OpenID Connect).

MCP clients register here. The user consents to each client in the browser, and logs in at the provider. Clients get
tokens of this server; the provider's tokens are stored here, encrypted. `proxy` implements the endpoints without HTTP,
and `transports/http/oauth_endpoints.py` serves these endpoints over HTTP.
"""

from __future__ import annotations

from mcpfactory_runtime.oauth_proxy.login_providers import LoginProvider, github, google, oidc
from mcpfactory_runtime.oauth_proxy.proxy import OAuthProxy

__all__ = ["LoginProvider", "OAuthProxy", "github", "google", "oidc"]
