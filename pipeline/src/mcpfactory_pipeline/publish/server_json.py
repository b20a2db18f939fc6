"""The `server.json` of a release: the official MCP registry's record of it, made from the candidate's bytes. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.publish.pypi import has_marker, marker
from mcpfactory_pipeline.publish.release import CandidateRelease, Variable
from mcpfactory_pipeline.publish.server_rules import PUBLISHER, SCHEMA, judge
from mcpfactory_pipeline.publish.target import TargetProblem

__all__ = ["check_server_json", "make_server_json", "server_json"]

_HINTS: Final = {
    "server-json/description": '[publish] description = "…", 100 characters at most',
    "server-json/repository": '[publish] repository = "https://github.com/OWNER/NAME"',
    "server-json/needed": "what is named is missing; {bundle} is known once `mcpfactory publish NAME --target mcpb` made it",
    "server-json/bundle": "{bundle} is known once `mcpfactory publish NAME --target mcpb` made it",
    "server-json/start": '[publish] targets = ["pypi", "registry"], or [[publish.packages]] or [[publish.remotes]]',
}


def make_server_json(release: CandidateRelease, bundle: str = "") -> bytes:
    """Return the document as a file: equal releases have equal bytes."""
    return (json.dumps(server_json(release, bundle), indent=2, ensure_ascii=False) + "\n").encode()


def server_json(release: CandidateRelease, bundle: str = "") -> dict[str, Any]:
    """Return the document. What nobody said is left out.

    `bundle` are the 64 digits that stand for `{bundle}` in a package's hash.

    Raises:
        ConfigError: `[publish]` of the server cannot be used.
    """
    document = {
        "$schema": SCHEMA,
        "name": _text(release, "mcp_name"),
        "title": _text(release, "title") or release.title,
        "description": _text(release, "description") or release.metadata.summary,
        "repository": _repository(release),
        "version": release.version,
        "websiteUrl": _text(release, "website") or _site(release),
        "icons": _tables(release, "icons"),
        "packages": [*_own_package(release), *_packages(release, bundle)],
        "remotes": _tables(release, "remotes"),
        "_meta": {PUBLISHER: {"tool": "mcpfactory", "candidate": release.candidate, "files": _hashes(release)}},
    }
    return {key: value for key, value in document.items() if value or key in {"name", "description", "version"}}


def check_server_json(release: CandidateRelease, bundle: str = "") -> Iterator[TargetProblem]:
    """Yield everything that the registry would refuse, by our own table of rules; and what would make clients fail."""
    name = _text(release, "mcp_name")
    if not name:
        yield TargetProblem(
            "registry/opt-in", f"{release.server} does not ask to be in the MCP registry: it takes no servers in bulk",
            f'[publish] mcp_name = "io.github.OWNER/{release.server}" in servers/{release.server}/mcpfactory.toml, and a new candidate',
        )  # fmt: skip
        return
    for found in judge(server_json(release, bundle)):
        yield TargetProblem(
            found.rule, str(found), _HINTS.get(found.rule, "docs/reference/publish.md says what it asks")
        )
    if any(_own_package(release)):
        if not has_marker(release.metadata.description, name):
            yield TargetProblem(
                "pypi/mcp-name", f"the README in the package does not hold the marker of {name}",
                f"put this line into README.md, and make a new candidate: {marker(name)}",
            )  # fmt: skip
        if release.metadata.program != release.metadata.name:
            yield TargetProblem(
                "registry/program", f"the package {release.metadata.name} has no program of its own name, so that uvx cannot start it",
                f'[project.scripts] {release.metadata.name} = "…" in pyproject.toml',
            )  # fmt: skip


def _own_package(release: CandidateRelease) -> Iterator[dict[str, Any]]:
    """Yield the package at PyPI, when the server goes there."""
    if "pypi" not in release.publish_table.get("targets", ()):
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


def _variable(variable: Variable) -> dict[str, Any]:
    found = {
        "name": variable.name, "description": variable.description, "isRequired": variable.required,
        "isSecret": variable.secret, "default": variable.default,
    }  # fmt: skip
    return {key: value for key, value in found.items() if value}


def _repository(release: CandidateRelease) -> dict[str, str]:
    """Return what `[publish] repository` says, or the package's own link to its sources."""
    labels = ("repository", "source", "source code", "sources", "github", "gitlab")
    linked = {label.lower(): url for label, url in release.metadata.urls.items()}
    url = _text(release, "repository") or next((linked[label] for label in labels if label in linked), "")
    source = "gitlab" if "gitlab.com/" in url else "github"
    folder = _text(release, "subfolder") or f"servers/{release.server}"
    return {"url": url, "source": source, "subfolder": folder} if url else {}


def _site(release: CandidateRelease) -> str:
    linked = {label.lower(): url for label, url in release.metadata.urls.items()}
    found = linked.get("homepage") or linked.get("documentation") or ""
    return found if found.startswith("https://") else ""


def _hashes(release: CandidateRelease) -> Mapping[str, str]:
    return dict(sorted(release.hashes.items()))


def _text(release: CandidateRelease, field: str) -> str:
    value = release.publish_table.get(field, "")
    if not isinstance(value, str):
        raise _bad(release, f"publish.{field} is not text", f'{field} = "…"')
    return value


def _tables(release: CandidateRelease, field: str) -> list[dict[str, Any]]:
    """Tables as they stand."""
    tables = release.publish_table.get(field, [])
    if not isinstance(tables, Sequence) or not all(isinstance(table, dict) for table in tables):
        raise _bad(release, f"publish.{field} is no list of tables", f"[[publish.{field}]]")
    return [dict(table) for table in tables]


def _packages(release: CandidateRelease, bundle: str) -> list[dict[str, Any]]:
    """Return packages besides the one at PyPI: as they stand, but for `{version}` in identifiers and `{bundle}` as a hash."""
    tables = _tables(release, "packages")
    for table in tables:
        if isinstance(identifier := table.get("identifier"), str):
            table["identifier"] = identifier.replace("{version}", release.version)
        if table.get("fileSha256") == "{bundle}":
            table["fileSha256"] = bundle
    return tables


def _bad(release: CandidateRelease, message: str, hint: str) -> ConfigError:
    return ConfigError(f"mcpfactory.toml of {release.server}: {message}", hint=hint)
