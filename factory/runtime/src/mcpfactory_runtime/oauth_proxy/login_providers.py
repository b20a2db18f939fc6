"""Login providers: login URLs, the exchange of a code for a token, and the token's owner."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import Any, Final
from urllib.parse import quote, urlencode

from mcpfactory_runtime.auth import providers as known
from mcpfactory_runtime.auth.providers import post_for_json
from mcpfactory_runtime.types import Json

Claims = Mapping[str, Any]

_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
_KEPT: Final = ("sub", "login", "name", "email", "email_verified", "hd", "preferred_username")


class ProviderRefusedError(Exception):
    """The provider refused a request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoginProvider:
    """Login provider for `OAuthProxy`.

    Args:
        name: name of the provider for users.
        authorize_url: URL of the authorization endpoint.
        token_url: URL of the token endpoint.
        client_id, client_secret: credentials of this server's application at the provider.
        identify: returns the claims of a token's owner, or None if the token is no longer valid. The claims are `sub`,
            and optionally `login`, `email` and others. If possible, `identify` should refuse tokens of other
            applications.
        scopes: scopes to request from the provider.
        parameters: additional parameters of the login URL.
        basic: True to send the secret as HTTP Basic. Otherwise, the form contains the secret.
        domain_claim: claim with the user's organization. "" means the domain of the verified email address.
    """

    name: str
    authorize_url: str
    token_url: str
    client_id: str
    client_secret: str
    identify: Callable[[str], Claims | Awaitable[Claims | None] | None]
    scopes: Sequence[str] = ()
    parameters: Mapping[str, str] | None = None
    basic: bool = False
    domain_claim: str = ""

    def login_url(self, redirect_uri: str, state: str, challenge: str) -> str:
        """Return the URL for a user's login."""
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": redirect_uri,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            **({"scope": " ".join(self.scopes)} if self.scopes else {}),
            **(self.parameters or {}),
        }
        return f"{self.authorize_url}{'&' if '?' in self.authorize_url else '?'}{urlencode(asked)}"

    async def redeem(self, form: Mapping[str, str], now: float) -> Json:
        """Return tokens for a grant, as `access`, `refresh` and `expires`.

        `expires` is in seconds since the epoch, or 0 if unknown. A refusal raises ProviderRefusedError. If the provider
        is unreachable or its response is invalid, OSError is raised.
        """
        headers = dict(_FORM)
        sent = {**form, "client_id": self.client_id}
        if self.basic:
            pair = f"{quote(self.client_id, '')}:{quote(self.client_secret, '')}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        else:
            sent["client_secret"] = self.client_secret
        status, answer = await post_for_json(self.token_url, headers, urlencode(sent))
        if "error" in answer and status < 500:  # GitHub returns errors with status 200
            raise ProviderRefusedError(f"{self.name}: {str(answer['error'])[:100]!r}")
        token, seconds = answer.get("access_token"), answer.get("expires_in")
        if status != 200 or not isinstance(token, str) or not token:
            raise OSError(f"{self.name} returned HTTP {status} without a token")
        lifetime = seconds if isinstance(seconds, int | float) else 0
        return {
            "access": token,
            "refresh": str(answer.get("refresh_token") or form.get("refresh_token", "")),
            "expires": now + lifetime if lifetime > 0 else 0,
        }

    async def token_owner_claims(self, token: str) -> Json | None:
        """Return the claims of a token's owner, or None if the token is no longer valid."""
        answer = self.identify(token)
        claims = await answer if isawaitable(answer) else answer
        if not claims or not claims.get("sub"):
            return None
        return {name: claims[name] for name in _KEPT if isinstance(claims.get(name), str | bool)}


def github(
    *,
    client_id: str,
    client_secret: str,
    scopes: Sequence[str] = ("read:user",),
    url: str = "https://github.com",
    api_url: str = "https://api.github.com",
) -> LoginProvider:
    """Return the provider GitHub for an OAuth or GitHub App. Set `url` and `api_url` for GitHub Enterprise Server."""
    place = f"{url.rstrip('/')}/login/oauth"
    checked = known.github("https://unused.invalid", client_id=client_id, client_secret=client_secret, api_url=api_url)
    assert checked.verify is not None
    return LoginProvider(
        name="GitHub",
        authorize_url=f"{place}/authorize",
        token_url=f"{place}/access_token",
        client_id=client_id,
        client_secret=client_secret,
        identify=checked.verify,
        scopes=scopes,
    )


def google(
    *,
    client_id: str,
    client_secret: str,
    scopes: Sequence[str] = ("openid", "email"),
    token_url: str = "https://oauth2.googleapis.com/token",  # noqa: S107 - an address, no token
    check_url: str = "https://oauth2.googleapis.com/tokeninfo",
    userinfo_url: str = "https://openidconnect.googleapis.com/v1/userinfo",
) -> LoginProvider:
    """Return the provider Google for an OAuth client of type web application.

    A domain in `allow` is compared with the claim `hd`, because a consumer account can have an address in any domain.
    """
    checked = known.google("https://unused.invalid", client_id=client_id, check_url=check_url)
    assert checked.verify is not None
    login = oidc(
        authorize_url="https://accounts.google.com/o/oauth2/v2/auth",
        token_url=token_url,
        userinfo_url=userinfo_url,
        client_id=client_id,
        client_secret=client_secret,
        scopes=scopes,
        name="Google",
        basic=False,
    )

    async def identify(token: str) -> Claims | None:
        if await checked.verify(token) is None:  # type: ignore[misc] # - it is a coroutine function
            return None
        return await login.identify(token)  # type: ignore[misc, no-any-return] # - likewise

    parameters = {"access_type": "offline", "prompt": "consent"}
    return replace(login, identify=identify, parameters=parameters, domain_claim="hd")


def oidc(
    *,
    authorize_url: str,
    token_url: str,
    userinfo_url: str,
    client_id: str,
    client_secret: str,
    scopes: Sequence[str] = ("openid", "email", "profile"),
    name: str = "your company's login",
    basic: bool = True,
) -> LoginProvider:
    """Return an OpenID Connect provider. The provider's `/.well-known/openid-configuration` contains the three URLs.

    An email address is used only if the provider returns `email_verified`. Entra ID does not verify addresses, so use
    `sub:…` for Entra ID. Allow a domain only if the provider verifies the domain's accounts.
    """

    async def identify(token: str) -> Claims | None:
        status, answer = await post_for_json(userinfo_url, {**_FORM, "Authorization": f"Bearer {token}"}, "")
        if status in (400, 401, 403):
            return None
        if status != 200:
            raise OSError(f"{name} returned HTTP {status}")
        return {**answer, "login": None}  # at some providers, users can choose any `login`

    return LoginProvider(
        name=name,
        authorize_url=authorize_url,
        token_url=token_url,
        client_id=client_id,
        client_secret=client_secret,
        identify=identify,
        scopes=scopes,
        basic=basic,
    )
