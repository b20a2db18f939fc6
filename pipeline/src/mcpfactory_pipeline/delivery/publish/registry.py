"""MCP registry target: send `server.json` once, and read it back.

The registry issues short-lived tokens in exchange for a GitHub token or the identity of a GitHub Actions job.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from mcpfactory_pipeline.base.errors import PublishError, TargetUnavailableError
from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.delivery.publish import http
from mcpfactory_pipeline.delivery.publish.candidate_release import CandidateRelease, ServerVariable
from mcpfactory_pipeline.delivery.publish.pypi import has_registry_marker, registry_marker
from mcpfactory_pipeline.delivery.publish.server_json_rules import PUBLISHER, SCHEMA, find_violations
from mcpfactory_pipeline.delivery.publish.target import (
    PublishEvidence,
    PublishTarget,
    TargetProblem,
    TargetReleaseState,
    TargetSettings,
)
from mcpfactory_pipeline.workspace.settings import RegistryOptions

_FILE: Final = "server.json"


def build(release: CandidateRelease, settings: TargetSettings) -> Mapping[str, bytes]:
    """Return the file `server.json`."""
    return {_FILE: server_json_bytes(release, _bundle(settings))}


def check(release: CandidateRelease, settings: TargetSettings) -> Sequence[TargetProblem]:
    """Return problems of the registry settings and of `server.json`."""
    return tuple(check_server_json(release, _bundle(settings)))


def _bundle(settings: TargetSettings) -> str:
    bundles = sorted((settings.folder.parent / "mcpb").glob("*.mcpb"))
    return hash_bytes(bundles[0].read_bytes()).removeprefix("sha256:") if len(bundles) == 1 else ""


def needs(release: CandidateRelease) -> Sequence[str]:
    """Return `pypi` if `server.json` lists a PyPI package, because the registry checks that package."""
    packages = server_json(release).get("packages", [])
    return ("pypi",) if any(package.get("registryType") == "pypi" for package in packages) else ()


def inspect(release: CandidateRelease, settings: TargetSettings) -> TargetReleaseState:
    """Return the state of this version on the registry."""
    with http.open_client() as wire:
        return _inspect(wire, release, settings)


def _inspect(wire: http.HttpClient, release: CandidateRelease, settings: TargetSettings) -> TargetReleaseState:
    document, url = server_json(release, _bundle(settings)), _version_url(release, settings)
    answer = wire.request("GET", url, headers={"Accept": "application/json"})
    if answer.status_code == 404:
        return TargetReleaseState(missing=(_FILE,))
    if answer.status_code != 200:
        raise TargetUnavailableError(
            f"{url} cannot be read: {http.summary(answer)}", hint="set publish.registry.url to the URL of the registry"
        )
    there = http.response_json(answer)
    there = there.get("server", there) if isinstance(there, dict) else there
    if _without_empty(there) != _without_empty(document):
        differing = [
            key
            for key in document
            if not isinstance(there, dict) or _without_empty(there.get(key)) != _without_empty(document[key])
        ]
        return TargetReleaseState(
            other=(
                f"{url} differs: {', '.join(differing) or 'it has more fields'}; the registry never changes a version"
            )
        )
    return TargetReleaseState(
        same=PublishEvidence(hash_bytes(server_json_bytes(release, _bundle(settings))), {"url": url})
    )


def upload(release: CandidateRelease, settings: TargetSettings) -> PublishEvidence:
    """Publish `server.json`, and read it back."""
    base = http.require_secure_url(settings["url"], "publish.registry.url")
    with http.open_client() as wire:
        token = _token(wire, base, settings)
        answer = wire.request(
            "POST",
            f"{base}/v0.1/publish",
            headers={**http.JSON, "Authorization": f"Bearer {token}"},
            content=json.dumps(server_json(release, _bundle(settings))).encode(),
        )
        if answer.status_code >= 500 or answer.status_code == 429:
            raise TargetUnavailableError(
                f"{base} failed: {http.summary(answer)}", hint="publish again to check whether the server was published"
            )
        if answer.status_code in {401, 403}:
            raise PublishError(
                f"{base} does not permit this token to publish {server_json(release)['name']}: {http.summary(answer)}",
                hint=(
                    "log in as the owner of the name: for io.github.OWNER/* the GitHub user OWNER, for other names "
                    "the owner of the domain"
                ),
            )
        if answer.status_code >= 300 and "duplicate version" not in http.summary(answer):
            raise PublishError(
                f"{base} refused server.json: {http.summary(answer)}",
                hint="correct the fields that the registry rejected",
            )
        found = _inspect(wire, release, settings)
    if found.same is None:
        raise TargetUnavailableError(
            f"{base} accepted server.json, but does not list the server",
            hint="run the same publish command again; the registry may need time to list the server",
        )
    return found.same


def _version_url(release: CandidateRelease, settings: TargetSettings) -> str:
    base = http.require_secure_url(settings["url"], "publish.registry.url")
    name = quote(server_json(release)["name"], safe="")
    return f"{base}/v0.1/servers/{name}/versions/{quote(release.version, safe='')}"


def _without_empty(value: Any) -> Any:
    """Remove empty fields, because registries omit empty fields."""
    if isinstance(value, dict):
        return {
            key: plain for key, one in value.items() if (plain := _without_empty(one)) not in (None, False, "", {}, [])
        }
    return [_without_empty(one) for one in value] if isinstance(value, list) else value


# --- the token ---


def _token(wire: http.HttpClient, base: str, settings: TargetSettings) -> str:
    how = settings["auth"]
    if how == "token":
        return settings.secret("token_variable")
    if how == "github":
        body = {"github_token": settings.secret("token_variable")}
        return http.exchange_token(wire, f"{base}/v0/auth/github-at", body, "registry_token")
    if how == "github-oidc":
        identity = http.request_job_token(wire, settings["audience"] or base, settings.environ)
        return http.exchange_token(wire, f"{base}/v0/auth/github-oidc", {"oidc_token": identity}, "registry_token")
    return http.exchange_token(wire, f"{base}/v0/auth/none", None, "registry_token")


TARGET: Final = PublishTarget(
    id="registry",
    title="The official MCP registry: server.json",
    build=build,
    check=check,
    upload=upload,
    inspect=inspect,
    needs=needs,
    options=RegistryOptions,
)


# --- server.json ---


_HINTS: Final = {
    "server-json/shape": "set the field in [publish]; its type and length are in the schema that `$schema` names",
    "server-json/repository": '[publish] repository = "https://github.com/OWNER/NAME"',
    "server-json/bundle": "{bundle} is known after `mcpfactory publish NAME --target mcpb`",
    "server-json/start": '[publish] targets = ["pypi", "registry"], or [[publish.packages]] or [[publish.remotes]]',
}


def server_json_bytes(release: CandidateRelease, bundle: str = "") -> bytes:
    """Return `server.json` as bytes."""
    return (json.dumps(server_json(release, bundle), indent=2, ensure_ascii=False) + "\n").encode()


def server_json(release: CandidateRelease, bundle: str = "") -> dict[str, Any]:
    """Return `server.json` without empty fields.

    `bundle` is a hexadecimal SHA-256 hash, which replaces the placeholder `{bundle}`.
    """
    document = {
        "$schema": SCHEMA,
        "name": release.config.publish.mcp_name,
        "title": release.config.publish.title or release.title,
        "description": release.config.publish.description or release.metadata.summary,
        "repository": _repository(release),
        "version": release.version,
        "websiteUrl": release.config.publish.website or _site(release),
        "icons": list(release.config.publish.icons),
        "packages": [*_own_package(release), *_packages(release, bundle)],
        "remotes": list(release.config.publish.remotes),
        "_meta": {PUBLISHER: {"tool": "mcpfactory", "candidate": release.candidate, "files": _hashes(release)}},
    }
    return {key: value for key, value in document.items() if value or key in {"name", "description", "version"}}


def check_server_json(release: CandidateRelease, bundle: str = "") -> Iterator[TargetProblem]:
    """Yield problems of `server.json` that the registry would reject, or that would break clients."""
    name = release.config.publish.mcp_name
    if not name:
        yield TargetProblem(
            "registry/opt-in",
            f"{release.server} has no settings for the MCP registry, which must not get servers in bulk",
            f'[publish] mcp_name = "io.github.OWNER/{release.server}" in '
            f"servers/{release.server}/mcpfactory.toml, and a new candidate",
        )
        return
    for found in find_violations(server_json(release, bundle)):
        yield TargetProblem(
            found.rule,
            str(found),
            _HINTS.get(found.rule, "see the rules of server.json in the reference of mcpfactory publish"),
        )
    if any(_own_package(release)):
        if not has_registry_marker(release.metadata.description, name):
            yield TargetProblem(
                "pypi/mcp-name",
                f"the README in the package lacks the marker of {name}",
                f"put this line into README.md, and make a new candidate: {registry_marker(name)}",
            )
        if release.metadata.program != release.metadata.name:
            yield TargetProblem(
                "registry/program",
                f"the package {release.metadata.name} has no program with its name, so uvx cannot start it",
                f'[project.scripts] {release.metadata.name} = "…" in pyproject.toml',
            )


def _own_package(release: CandidateRelease) -> Iterator[dict[str, Any]]:
    if "pypi" not in release.config.publish.targets:
        return
    package = {
        "registryType": "pypi",
        "registryBaseUrl": "https://pypi.org",
        "identifier": release.metadata.project,
        "version": release.version,
        "runtimeHint": "uvx",
        "transport": {"type": "stdio"},
        "environmentVariables": [_variable(one) for one in release.variables],
    }
    yield {key: value for key, value in package.items() if value}


def _variable(variable: ServerVariable) -> dict[str, Any]:
    found = {
        "name": variable.name, "description": variable.description, "isRequired": variable.required,
        "isSecret": variable.secret, "default": variable.default,
    }  # fmt: skip
    return {key: value for key, value in found.items() if value}


def _repository(release: CandidateRelease) -> dict[str, str]:
    url = release.config.publish.repository or release.metadata.repository
    source = "gitlab" if "gitlab.com/" in url else "github"
    folder = release.config.publish.subfolder or f"servers/{release.server}"
    return {"url": url, "source": source, "subfolder": folder} if url else {}


def _site(release: CandidateRelease) -> str:
    found = release.metadata.link("homepage", "documentation")
    return found if found.startswith("https://") else ""


def _hashes(release: CandidateRelease) -> Mapping[str, str]:
    return dict(sorted(release.hashes.items()))


def _packages(release: CandidateRelease, bundle: str) -> list[dict[str, Any]]:
    tables = [dict(table) for table in release.config.publish.packages]
    for table in tables:
        if isinstance(identifier := table.get("identifier"), str):
            table["identifier"] = identifier.replace("{version}", release.version)
        if table.get("fileSha256") == "{bundle}":
            table["fileSha256"] = bundle
    return tables
