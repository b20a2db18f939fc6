"""Login providers: their login URLs, the exchange of a code for the provider's token, and the token's owner."""

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
    """The provider refused a request; the message contains its error code."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoginProvider:
    """A provider, as `OAuthProxy` uses it.

    Args:
        name: for people.
        authorize_url: where people are sent.
        token_url: where codes are redeemed.
        client_id, client_secret: of the application that was registered there for this server.
        identify: takes a token of the provider, returns who it belongs to (`sub`, and what else is known: `login`, `email` …), or
            None where it counts no more. It must refuse tokens that were issued to other applications, where it can.
        scopes: that are asked for there.
        parameters: further parameters of the address that people are sent to.
        basic: whether the secret is sent as HTTP Basic, else in the form.
        domain_claim: the claim that names a person's organization; "" takes the domain of the verified email address.
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
        """Return the login URL for a person."""
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
        """Return tokens for a grant: `access`, `refresh` ("" without), `expires` (seconds since the epoch; 0 when it is not said).

        Raises:
            ProviderRefusedError: the provider says no.
            OSError: it says nothing that can be understood.
        """
        headers = dict(_FORM)
        sent = {**form, "client_id": self.client_id}
        if self.basic:
            pair = f"{quote(self.client_id, '')}:{quote(self.client_secret, '')}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        else:
            sent["client_secret"] = self.client_secret
        status, answer = await post_for_json(self.token_url, headers, urlencode(sent))
        if "error" in answer and status < 500:  # GitHub says so with status 200
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

    async def identity(self, token: str) -> Json | None:
        """Return whom a token belongs to: its plain claims; None where it counts no more. Raises OSError."""
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
    """GitHub, by an OAuth or GitHub App; `url` and `api_url` are others for an Enterprise server."""
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
    """Google, by an OAuth client of type web application. Google is asked for a refresh token.

    A domain in `allow` is compared with the claim `hd`: a consumer account can have a verified address at any domain.
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
    """Any OpenID Connect provider, by three addresses of its `/.well-known/openid-configuration`.

    Email addresses count where the provider says that they are verified; Entra ID does not, so there `sub:…` names people.
    Allow a domain only if the provider verifies that its accounts belong to that domain's organization.
    """

    async def identify(token: str) -> Claims | None:
        status, answer = await post_for_json(userinfo_url, {**_FORM, "Authorization": f"Bearer {token}"}, "")
        if status in (400, 401, 403):
            return None
        if status != 200:
            raise OSError(f"{name} returned HTTP {status}")
        return {**answer, "login": None}  # people choose that for themselves, in some places

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
