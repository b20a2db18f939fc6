"""Access token for a server at a URL that requires OAuth."""

from __future__ import annotations

import asyncio

from mcpfactory_pipeline.checks.exchange import ValidationTargetError
from mcpfactory_runtime import McpError
from mcpfactory_runtime.client import ConnectionLostError, HttpError, ProtocolError, connect_http
from mcpfactory_runtime.client.oauth import OAuth, OAuthError


async def request_access_token(url: str, oauth: OAuth, *, seconds: float) -> str:
    """Connect to the protected server at `url`, and return the access token that `oauth` obtained.

    Raises:
        ValidationTargetError: no token is available, or the server requires no token.
    """
    why, hint = "the server requires no token", f"mcpfactory validate --url {url}"
    try:
        async with asyncio.timeout(seconds), connect_http(url, oauth=oauth):
            pass
    except OAuthError as error:
        why, _, remedy = str(error).partition("\nhint: ")
        hint = remedy or hint
    except (ConnectionLostError, HttpError, ProtocolError, McpError, TimeoutError) as error:
        why = str(error) or f"no answer within {seconds:g} s"
    if token := oauth.token(url):
        return token
    raise ValidationTargetError(f"cannot get an access token for {url}: {why}", hint=hint)
