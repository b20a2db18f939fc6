"""Authorization of HTTP callers, configured by environment variables MCPFACTORY_AUTH_…."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.auth import providers
from mcpfactory_runtime.auth.authorization import PREFIX, Authorization, AuthorizationError

if TYPE_CHECKING:
    from mcpfactory_runtime.oauth_proxy import LoginProvider, OAuthProxy

SECRETS: Final = ("MCPFACTORY_AUTH_CLIENT_SECRET", "MCPFACTORY_AUTH_KEYS")
"""Environment variables that child processes must not inherit."""

_Given = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _ProviderRow:
    needed: tuple[str, ...]
    optional: tuple[str, ...]
    make: Callable[[str, _Given, dict[str, Any]], Authorization | OAuthProxy]


def read_auth_environment(environ: Mapping[str, str]) -> Authorization | OAuthProxy | None:
    """Return the access rules from environment variables, or None if no such variable is set.

    MCPFACTORY_AUTH_PROVIDER is the provider's name, and MCPFACTORY_AUTH_RESOURCE the URL of this server. Depending on
    the provider, MCPFACTORY_AUTH_URL, MCPFACTORY_AUTH_REALM, MCPFACTORY_AUTH_DOMAIN, MCPFACTORY_AUTH_TENANT,
    MCPFACTORY_AUTH_CLIENT_ID, MCPFACTORY_AUTH_CLIENT_SECRET, MCPFACTORY_AUTH_ALLOW, MCPFACTORY_AUTH_KEYS,
    MCPFACTORY_AUTH_AUTHORIZE_URL, MCPFACTORY_AUTH_TOKEN_URL and MCPFACTORY_AUTH_USERINFO_URL describe the provider.
    """
    if f"{PREFIX}PROVIDER" not in environ:
        return Authorization.from_environment(environ)
    given = {name.removeprefix(PREFIX): value for name, value in environ.items() if name.startswith(PREFIX)}
    name, failures = given.pop("PROVIDER"), given.pop("FAILURES", None)
    row = _PROVIDERS.get(name)
    if row is None:
        raise AuthorizationError(
            f"{PREFIX}PROVIDER: unknown provider {name!r}\nhint: use one of {', '.join(_PROVIDERS)}"
        )
    needed = ("RESOURCE", *row.needed)
    wrong = [f"{PREFIX}{one} is not for {name}" for one in sorted(given.keys() - {*needed, *row.optional, "SCOPES"})]
    wrong += [f"{PREFIX}{one} is missing" for one in needed if not given.get(one)]
    if wrong:
        raise AuthorizationError(
            f"{'; '.join(wrong)}\nhint: use these settings for {name}: {', '.join((*needed, *row.optional))}"
        )
    options: dict[str, Any] = {"required_scopes": given.get("SCOPES", "").split()}
    if "AUDIENCE" in row.optional:
        options["audiences"] = given.get("AUDIENCE", "").split()
    made = row.make(given["RESOURCE"], given, options)
    if failures is None:
        return made
    if isinstance(made, Authorization):
        return replace(made, failures=failures)
    made.authorization = replace(made.authorization, failures=failures)
    return made


def remove_environment_secrets() -> None:
    """Remove the variables in `SECRETS` from the environment of this process."""
    for name in SECRETS:
        os.environ.pop(name, None)


def _make_keys(resource: str, given: _Given, options: dict[str, Any]) -> Authorization:
    if options["required_scopes"]:
        raise AuthorizationError(
            f"{PREFIX}SCOPES cannot be used with keys, because a key has no scopes\nhint: set scopes in code (api_keys)"
        )
    pairs = [word.partition("=") for word in given["KEYS"].split()]
    if len({name for name, _, _ in pairs}) < len(pairs) or not all(name and key for name, _, key in pairs):
        raise AuthorizationError(
            f"{PREFIX}KEYS must contain one key for each name\nhint: use a form such as 'ada=KEY ben=sha256:DIGEST'"
        )
    return providers.api_keys(resource, {name: key for name, _, key in pairs})


def _make_proxy(kind: str) -> Callable[[str, _Given, dict[str, Any]], OAuthProxy]:
    def make(resource: str, given: _Given, options: dict[str, Any]) -> OAuthProxy:
        from mcpfactory_runtime import oauth_proxy  # noqa: PLC0415 - loads cryptography

        application = {"client_id": given["CLIENT_ID"], "client_secret": given["CLIENT_SECRET"]}
        places = {one.lower(): given[one] for one in _OIDC if kind == "oidc"}
        kinds: dict[str, Callable[..., LoginProvider]] = {
            "github": oauth_proxy.github,
            "google": oauth_proxy.google,
            "oidc": oauth_proxy.oidc,
        }
        provider = kinds[kind](**application, **places)
        return oauth_proxy.OAuthProxy(provider, resource, allow=given["ALLOW"].split(), **options)

    return make


_OIDC: Final = ("AUTHORIZE_URL", "TOKEN_URL", "USERINFO_URL")
_LOGIN: Final = ("CLIENT_ID", "CLIENT_SECRET", "ALLOW")
_AUDIENCE: Final = ("AUDIENCE",)
_PROVIDERS: Final[dict[str, _ProviderRow]] = {
    "keycloak": _ProviderRow(
        ("URL", "REALM"),
        _AUDIENCE,
        lambda at, given, more: providers.keycloak(given["URL"], given["REALM"], at, **more),
    ),
    "auth0": _ProviderRow(("DOMAIN",), _AUDIENCE, lambda at, given, more: providers.auth0(given["DOMAIN"], at, **more)),
    "okta": _ProviderRow(("DOMAIN",), _AUDIENCE, lambda at, given, more: providers.okta(given["DOMAIN"], at, **more)),
    "entra": _ProviderRow(
        ("TENANT", "CLIENT_ID"),
        _AUDIENCE,
        lambda at, given, more: providers.entra(given["TENANT"], at, client_id=given["CLIENT_ID"], **more),
    ),
    "github": _ProviderRow(_LOGIN, (), _make_proxy("github")),
    "google": _ProviderRow(_LOGIN, (), _make_proxy("google")),
    "oidc": _ProviderRow((*_OIDC, *_LOGIN), (), _make_proxy("oidc")),
    "keys": _ProviderRow(("KEYS",), (), _make_keys),
}
