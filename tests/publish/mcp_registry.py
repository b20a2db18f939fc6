"""MCP registry on loopback with the rules of the official one: token exchange, unique versions, package ownership."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from mcpfactory_pipeline.delivery.publish.server_json_rules import find_violations
from tests import loopback_server

GITHUB_TOKEN, REQUEST_TOKEN, IDENTITY = "gh-secret-token", "actions-secret-token", "job-identity"
_TOKEN = "registry-secret-token"
_OFFICIAL = "io.modelcontextprotocol.registry/official"


class Registry:
    """Entries and requests of the registry. `description` returns a project's description in the index, or None.

    `namespace` is the namespace that its token permits. `break_before` and `break_after` close the next publish request
    without a response, before or after storing.
    """

    def __init__(self, description: Callable[[str], str | None] = lambda _project: None) -> None:
        self.description = description
        self.namespace = "io.github.acme/"
        self.entries: dict[tuple[str, str], dict[str, Any]] = {}
        self.asked: list[str] = []
        self.break_before = self.break_after = False
        self.url = ""

    def exchange(self, how: str, body: Any) -> tuple[int, Any]:
        """Exchange another token for a token of the registry."""
        wanted = {
            "github-at": ("github_token", GITHUB_TOKEN),
            "github-oidc": ("oidc_token", f"{IDENTITY} for {self.url}"),
        }
        field, value = wanted.get(how, ("", ""))
        if not field or not isinstance(body, dict) or body.get(field) != value:
            return 401, {"title": "Unauthorized", "detail": "Token exchange failed"}
        return 200, {"registry_token": _TOKEN, "expires_at": 1}

    def publish(self, authorization: str, document: Any) -> tuple[int, Any]:
        """Store a document, or return the reason for a refusal."""
        if authorization != f"Bearer {_TOKEN}":
            return 401, {"detail": "Invalid or expired Registry JWT token"}
        if found := find_violations(document):
            return 422, {"detail": "validation failed", "errors": [{"message": str(one)} for one in found]}
        name, version = document["name"], document["version"]
        if not name.startswith(self.namespace):
            return 403, {
                "detail": f"You do not have permission to publish this server. You have permission: {self.namespace}*"
            }
        if (name, version) in self.entries:
            return 400, {
                "detail": "Failed to publish server",
                "errors": [{"message": "invalid version: cannot publish duplicate version"}],
            }
        for package in document.get("packages", []):
            text = self.description(package["identifier"]) if package["registryType"] == "pypi" else ""
            if text is None or (package["registryType"] == "pypi" and f"mcp-name: {name}" not in text):
                return 400, {"detail": f"PyPI package '{package['identifier']}' ownership validation failed"}
        self.entries[name, version] = document
        return 200, self.entry(name, version)

    def entry(self, name: str, version: str) -> Any:
        """Return the response for a version."""
        return {"server": self.entries[name, version], "_meta": {_OFFICIAL: {"status": "active", "isLatest": True}}}


@contextmanager
def serving(registry: Registry) -> Iterator[Registry]:
    """Serve the registry on a free port until the block ends."""
    with loopback_server.serving(_Handler, registry=registry) as registry.url:
        yield registry


class _Handler(loopback_server.LoopbackHandler):
    registry: Registry

    def get(self) -> None:
        """Return the identity of a job, or an entry."""
        place = urlsplit(self.path)
        if place.path == "/identity":
            audience = parse_qs(place.query).get("audience", [""])[0]
            if self.headers.get("Authorization") != f"Bearer {REQUEST_TOKEN}":
                self.answer(401, {})
            else:
                self.answer(200, {"value": f"{IDENTITY} for {audience}"})
            return
        parts = place.path.split("/")
        known = parts[:3] == ["", "v0.1", "servers"] and len(parts) == 6
        key = (unquote(parts[3]), unquote(parts[5])) if known else ("", "")
        self.answer(200, self.registry.entry(*key)) if key in self.registry.entries else self.answer(
            404, {"title": "Not Found"}
        )

    def post(self) -> None:
        """Exchange a token, or publish."""
        body = self.body()
        data = json.loads(body) if body else None
        self.registry.asked.append(self.path)
        if self.path.startswith("/v0/auth/"):
            self.answer(*self.registry.exchange(self.path.rpartition("/")[2], data))
        elif self.path != "/v0.1/publish":
            self.answer(404, {"title": "Not Found"})
        elif self.registry.break_before:
            self._break()
        else:
            answer = self.registry.publish(self.headers.get("Authorization", ""), data)
            self._break() if self.registry.break_after else self.answer(*answer)

    def _break(self) -> None:
        self.registry.break_before = self.registry.break_after = False
        self.close_connection = True
        self.connection.close()
