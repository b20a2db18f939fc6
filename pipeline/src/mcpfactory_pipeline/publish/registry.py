"""The official MCP registry, or one that speaks as it does: `server.json`, sent once, and read back.

The registry takes its own short-lived token. Where there is none, one is got for a token of GitHub (`auth = "github"`) or for the
identity that GitHub Actions gives a job (`auth = "github-oidc"`, no secret at all); it is kept in memory only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from mcpfactory_pipeline.base.errors import ConfigError, PublishError, TargetError
from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.publish.http import HttpClient, open_client, require_url
from mcpfactory_pipeline.publish.identity import JSON, exchange_token, job_identity
from mcpfactory_pipeline.publish.release import CandidateRelease
from mcpfactory_pipeline.publish.server_json import check_server_json, make_server_json, server_json
from mcpfactory_pipeline.publish.target import (
    PublishEvidence,
    PublishTarget,
    RemoteState,
    TargetProblem,
    TargetSettings,
)

__all__ = ["TARGET"]

_FILE: Final = "server.json"
_AUTH: Final = ("token", "github", "github-oidc", "none")


def build(release: CandidateRelease, settings: TargetSettings) -> Mapping[str, bytes]:
    """Return the document."""
    return {_FILE: make_server_json(release, _bundle(settings))}


def check(release: CandidateRelease, settings: TargetSettings) -> Sequence[TargetProblem]:
    """Whether the server asks to be there, and every rule of the document."""
    return tuple(check_server_json(release, _bundle(settings)))


def _bundle(settings: TargetSettings) -> str:
    """Return the hash of the bundle that the target `mcpb` made of this release; "" before it did."""
    made = sorted((settings.folder.parent / "mcpb").glob("*.mcpb"))
    return hash_bytes(made[0].read_bytes()).removeprefix("sha256:") if len(made) == 1 else ""


def needs(release: CandidateRelease) -> Sequence[str]:
    """Return the index first: the registry reads the marker in the package that is there."""
    packages = server_json(release).get("packages", [])
    return ("pypi",) if any(package.get("registryType") == "pypi" for package in packages) else ()


def inspect(release: CandidateRelease, settings: TargetSettings) -> RemoteState:
    """Return what the registry has of this version."""
    with open_client() as wire:
        return _inspect(wire, release, settings)


def _inspect(wire: HttpClient, release: CandidateRelease, settings: TargetSettings) -> RemoteState:
    document, url = server_json(release, _bundle(settings)), _version_url(release, settings)
    answer = wire.request("GET", url, headers={"Accept": "application/json"})
    if answer.status == 404:
        return RemoteState(missing=(_FILE,))
    if answer.status != 200:
        raise TargetError(f"{url} cannot be read: {answer.summary}", hint="publish.registry.url is the registry")
    there = answer.json()
    there = there.get("server", there) if isinstance(there, dict) else there
    if _without_empty(there) != _without_empty(document):
        differing = [
            key
            for key in document
            if not isinstance(there, dict) or _without_empty(there.get(key)) != _without_empty(document[key])
        ]
        return RemoteState(
            other=f"{url} says something else: {', '.join(differing) or 'it has more fields'}; a version never changes there"
        )
    return RemoteState(same=PublishEvidence(hash_bytes(make_server_json(release, _bundle(settings))), {"url": url}))


def upload(release: CandidateRelease, settings: TargetSettings) -> PublishEvidence:
    """Publish the document, and read it back."""
    base = require_url(settings["url"], "publish.registry.url")
    with open_client() as wire:
        token = _token(wire, base, settings)
        answer = wire.request(
            "POST", f"{base}/v0.1/publish", headers={**JSON, "Authorization": f"Bearer {token}"},
            content=json.dumps(server_json(release, _bundle(settings))).encode(),
        )  # fmt: skip
        if answer.status >= 500 or answer.status == 429:
            raise TargetError(f"{base} broke: {answer.summary}", hint="publishing again looks whether it is there")
        if answer.status in {401, 403}:
            raise PublishError(
                f"{base} does not let this token publish {server_json(release)['name']}: {answer.summary}",
                hint="io.github.OWNER/* belongs to who logs in to GitHub as OWNER; other names to who owns the domain",
            )
        if answer.status >= 300 and "duplicate version" not in answer.summary:
            raise PublishError(
                f"{base} refused server.json: {answer.summary}", hint="the message is the registry's own"
            )
        found = _inspect(wire, release, settings)
    if found.same is None:
        raise TargetError(f"{base} took server.json, and does not show it", hint="publishing again looks again")
    return found.same


def _version_url(release: CandidateRelease, settings: TargetSettings) -> str:
    base = require_url(settings["url"], "publish.registry.url")
    name = quote(server_json(release)["name"], safe="")
    return f"{base}/v0.1/servers/{name}/versions/{quote(release.version, safe='')}"


def _without_empty(value: Any) -> Any:
    """Return a document without what says nothing: registries leave out false and empty fields."""
    if isinstance(value, dict):
        return {
            key: plain for key, one in value.items() if (plain := _without_empty(one)) not in (None, False, "", {}, [])
        }
    return [_without_empty(one) for one in value] if isinstance(value, list) else value


# --- the token ---


def _token(wire: HttpClient, base: str, settings: TargetSettings) -> str:
    """Return the registry's token: as it is, or in exchange for another."""
    how = settings["auth"]
    if how == "token":
        return settings.secret("token_variable")
    if how == "github":
        body = {"github_token": settings.secret("token_variable")}
        return exchange_token(wire, f"{base}/v0/auth/github-at", body, "registry_token")
    if how == "github-oidc":
        identity = job_identity(wire, settings["audience"] or base, settings.environ)
        return exchange_token(wire, f"{base}/v0/auth/github-oidc", {"oidc_token": identity}, "registry_token")
    if how == "none":
        return exchange_token(wire, f"{base}/v0/auth/none", None, "registry_token")
    raise ConfigError(f"publish.registry.auth is {how!r}", hint=f"one of: {', '.join(_AUTH)}")


TARGET: Final = PublishTarget(
    id="registry",
    title="The official MCP registry: server.json",
    build=build,
    check=check,
    upload=upload,
    inspect=inspect,
    needs=needs,
    options={
        "url": "https://registry.modelcontextprotocol.io",
        "auth": "token",
        "token_variable": "MCP_REGISTRY_TOKEN",
        "audience": "",
    },
)
