"""Common authorization servers: the URLs of their keys, and checks of opaque tokens.

Each function returns an `Authorization`, and `options` set the other fields. The result for an opaque token is cached
for one minute. A token that was issued to another application is refused.
"""

from __future__ import annotations

import json
import re
import time
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from mcpfactory_runtime.auth.authorization import Authorization, AuthorizationError

Claims = Mapping[str, Any]
_Check = Callable[[str], Awaitable[Claims | None]]

_KEPT: Final = 60.0  # seconds that the result of a check is cached
_MAX_ANSWERS: Final = 1000  # maximum number of cached results
_TIMEOUT: Final = 10.0  # maximum seconds for a response
_LARGEST: Final = 1 << 20  # maximum bytes of a response
_SHORTEST: Final = 24  # minimum characters of an API key
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_MANY_TENANTS: Final = frozenset({"common", "organizations", "consumers"})


# --- issuers of JWTs ---


def keycloak(url: str, realm: str, resource: str, **options: Any) -> Authorization:
    """Return the access rules for a Keycloak realm. An audience mapper in Keycloak must add `resource` to tokens."""
    issuer = f"{url.rstrip('/')}/realms/{realm}"
    return Authorization(
        issuer=issuer, jwks_url=f"{issuer}/protocol/openid-connect/certs", resource=resource, **options
    )


def auth0(domain: str, resource: str, **options: Any) -> Authorization:
    """Return the access rules for the Auth0 tenant with this domain (`acme.eu.auth0.com`).

    The identifier of the API at Auth0 must be `resource` or one of `audiences`.
    """
    issuer = f"https://{domain}/"
    return Authorization(issuer=issuer, jwks_url=f"{issuer}.well-known/jwks.json", resource=resource, **options)


def okta(domain: str, resource: str, *, server: str = "default", **options: Any) -> Authorization:
    """Return the access rules for a custom authorization server of Okta. `server` is the ID of the server.

    The org authorization server of Okta issues tokens only for Okta itself.
    """
    issuer = f"https://{domain}/oauth2/{server}"
    return Authorization(issuer=issuer, jwks_url=f"{issuer}/v1/keys", resource=resource, **options)


def entra(tenant: str, resource: str, *, client_id: str, **options: Any) -> Authorization:
    """Return the access rules for Microsoft Entra ID (access tokens of version 2).

    `client_id` is the ID of this server's application.

    Raises:
        AuthorizationError: `tenant` stands for all tenants, which would permit any account.
    """
    if tenant in _MANY_TENANTS:
        raise AuthorizationError(
            f"the tenant {tenant!r} would accept the users of every tenant\nhint: use the ID of the tenant whose users may call"
        )
    place = f"https://login.microsoftonline.com/{tenant}"
    audiences = (client_id, f"api://{client_id}", *options.pop("audiences", ()))
    keys = f"{place}/discovery/v2.0/keys"
    return Authorization(issuer=f"{place}/v2.0", jwks_url=keys, resource=resource, audiences=audiences, **options)


# --- checks of opaque tokens ---


def introspection(
    issuer: str, url: str, resource: str, *, client_id: str, client_secret: str, **options: Any
) -> Authorization:
    """Return the access rules for an authorization server with token introspection (RFC 7662) at `url`."""
    headers = {**_basic(client_id, client_secret), "Content-Type": "application/x-www-form-urlencoded"}

    async def check(token: str) -> Claims | None:
        content = urlencode({"token": token, "token_type_hint": "access_token"})
        status, answer = await post_for_json(url, headers, content)
        if status != 200 or not isinstance(answer.get("active"), bool):
            raise OSError(f"introspection returned HTTP {status}")
        return answer if answer["active"] else None

    return Authorization(issuer=issuer, resource=resource, verify=_cached(check), **options)


def github(
    resource: str,
    *,
    client_id: str,
    client_secret: str,
    api_url: str = "https://api.github.com",
    issuer: str = "https://github.com/login/oauth",
    **options: Any,
) -> Authorization:
    """Return the access rules for GitHub. The credentials belong to the OAuth App or GitHub App of this server.

    In the principal, `subject` is the user's ID and `claims["login"]` is the user name. For an Enterprise Server, set
    `api_url` and `issuer`.
    """
    headers = {**_basic(client_id, client_secret), "Content-Type": "application/json"}
    url = f"{api_url.rstrip('/')}/applications/{quote(client_id, '')}/token"

    async def check(token: str) -> Claims | None:
        status, answer = await post_for_json(url, headers, json.dumps({"access_token": token}))
        if status in {404, 422}:  # the token does not belong to this application
            return None
        user = answer.get("user")
        if status != 200 or not isinstance(user, dict):
            raise OSError(f"GitHub returned HTTP {status}")
        scopes = answer.get("scopes")
        return {
            "iss": issuer,
            "aud": authorization.resource,
            "sub": str(user.get("id", "")),
            "login": user.get("login"),
            "client_id": client_id,
            "scope": " ".join(scopes) if isinstance(scopes, list) else "",
        }

    authorization = Authorization(issuer=issuer, resource=resource, verify=_cached(check), **options)
    return authorization


def google(
    resource: str, *, client_id: str, check_url: str = "https://oauth2.googleapis.com/tokeninfo", **options: Any
) -> Authorization:
    """Return the access rules for Google. `client_id` is this server's OAuth client. `subject` is the account's ID."""
    issuer = "https://accounts.google.com"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}

    async def check(token: str) -> Claims | None:
        status, answer = await post_for_json(check_url, headers, urlencode({"access_token": token}))
        if status == 400:
            return None
        if status != 200:
            raise OSError(f"Google returned HTTP {status}")
        if answer.get("aud") != client_id:
            return None
        claims: dict[str, Any] = {
            name: answer[name] for name in ("sub", "scope", "email", "email_verified") if name in answer
        }
        expires = str(answer.get("exp", ""))
        return {
            **claims,
            "iss": issuer,
            "aud": authorization.resource,
            "client_id": client_id,
            "exp": int(expires) if expires.isdecimal() else 0,
        }

    authorization = Authorization(issuer=issuer, resource=resource, verify=_cached(check), **options)
    return authorization


def api_keys(resource: str, keys: Mapping[str, str], *, scopes: Mapping[str, str] | None = None) -> Authorization:
    """Return the access rules for API keys that clients send as bearer tokens.

    Args:
        resource: URL of the MCP endpoint.
        keys: name of a caller → key, or `sha256:DIGEST` of the key. The name becomes the principal's `subject`.
        scopes: name of a caller → scopes, separated by spaces.

    Raises:
        AuthorizationError: a key is too short or used twice, or a name in `scopes` has no key.
    """
    digests: dict[str, str] = {}
    for name, key in keys.items():
        if not _DIGEST.fullmatch(key) and len(key) < _SHORTEST:
            raise AuthorizationError(
                f"the key of {name} is too easy to guess\nhint: create a key with: "
                "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
            )
        digest = key.removeprefix("sha256:") if _DIGEST.fullmatch(key) else _digest(key)
        if digest in digests:
            raise AuthorizationError(
                f"{digests[digest]} and {name} have the same key\nhint: give each caller a different key"
            )
        digests[digest] = name
    granted = dict(scopes or {})
    if strange := granted.keys() - keys.keys():
        raise AuthorizationError(
            f"{', '.join(sorted(strange))} has scopes but no key\nhint: use only callers that are listed in `keys`"
        )
    origin = urlunsplit((*urlsplit(resource)[:2], "", "", ""))

    def known(token: str) -> Claims | None:
        name = digests.get(_digest(token))
        return None if name is None else {"aud": authorization.resource, "sub": name, "scope": granted.get(name, "")}

    authorization = Authorization(issuer=origin, resource=resource, verify=known)
    return authorization


def _digest(text: str) -> str:
    """Return a digest, because the duration of a lookup could reveal the secret itself."""
    return sha256(text.encode()).hexdigest()


def _basic(client_id: str, client_secret: str) -> dict[str, str]:
    pair = f"{quote(client_id, '')}:{quote(client_secret, '')}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def _cached(check: _Check) -> _Check:
    """Return a function that caches the results of `check` under hashes of the tokens."""
    kept: OrderedDict[str, tuple[float, Claims | None]] = OrderedDict()

    async def verify(token: str) -> Claims | None:
        digest, now = _digest(token), time.monotonic()
        if digest in kept and kept[digest][0] > now:
            return kept[digest][1]
        answer = await check(token)
        kept[digest] = (now + _KEPT, answer)
        kept.move_to_end(digest)
        if len(kept) > _MAX_ANSWERS:
            kept.popitem(last=False)
        return answer

    return verify


async def post_for_json(url: str, headers: Mapping[str, str], content: str) -> tuple[int, dict[str, Any]]:
    """Return the status and the JSON object of a response, or {} for another body."""
    import httpx  # noqa: PLC0415 - loaded at the first check

    from mcpfactory_runtime.protocol.decoding import aiter_decoded  # noqa: PLC0415 - likewise

    try:
        async with (
            httpx.AsyncClient(timeout=_TIMEOUT, trust_env=False, follow_redirects=False) as client,
            client.stream("POST", url, headers={**headers, "Accept": "application/json"}, content=content) as response,
        ):
            body = b""
            async for part in aiter_decoded(response):
                body += part
                if len(body) > _LARGEST:
                    raise OSError(f"{url} returned more than {_LARGEST} bytes")
    except httpx.HTTPError as error:
        raise OSError(f"{url}: {type(error).__name__}") from None
    try:
        answer = json.loads(body)
    except ValueError:
        answer = {}
    return response.status_code, answer if isinstance(answer, dict) else {}
