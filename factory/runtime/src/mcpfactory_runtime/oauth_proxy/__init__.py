"""OAuth proxy: an authorization server for providers without client registration (GitHub, Google, OpenID Connect).

MCP clients register at the proxy. The user consents to each client in the browser, and logs in at the provider.
The clients get tokens of the proxy, which stores the provider's tokens encrypted.
"""

from __future__ import annotations

from mcpfactory_runtime.oauth_proxy.login_providers import LoginProvider, github, google, oidc
from mcpfactory_runtime.oauth_proxy.proxy import OAuthProxy

__all__ = ["LoginProvider", "OAuthProxy", "github", "google", "oidc"]
