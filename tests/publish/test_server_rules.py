"""Every rule of `server.json` refuses what breaks it, by its id; what is right passes."""

from __future__ import annotations

import copy
import json
from typing import Any

from mcpfactory_pipeline.delivery.publish.server_json_rules import PUBLISHER, RULES, SCHEMA, find_violations
from tests.subtest_table import parametrize_subtests

RIGHT: dict[str, Any] = {
    "$schema": SCHEMA,
    "name": "io.github.acme/books",
    "title": "Books",
    "description": "Finds books",
    "version": "1.0.0",
    "websiteUrl": "https://books.example",
    "repository": {"url": "https://github.com/acme/servers", "source": "github", "subfolder": "servers/books"},
    "icons": [{"src": "https://books.example/icon.png", "mimeType": "image/png", "sizes": ["48x48", "any"], "theme": "dark"}],
    "packages": [
        {
            "registryType": "pypi", "registryBaseUrl": "https://pypi.org", "identifier": "books-mcp", "version": "1.0.0",
            "runtimeHint": "uvx", "transport": {"type": "streamable-http", "url": "http://127.0.0.1:{--port}/mcp"},
            "runtimeArguments": [{"type": "positional", "value": "-q"}],
            "packageArguments": [{"type": "named", "name": "--port", "value": "{port}", "format": "number",
                                  "variables": {"port": {"default": "8000", "choices": ["8000", "8001"]}}}],
            "environmentVariables": [{"name": "BOOKS_KEY", "isSecret": True, "isRequired": True, "value": "{key}"}],
        },
        {"registryType": "oci", "identifier": "ghcr.io/acme/books:1.0.0", "transport": {"type": "stdio"}},
        {"registryType": "mcpb", "identifier": "https://github.com/acme/s/releases/download/v1/books-mcp.mcpb",
         "fileSha256": "a" * 64, "transport": {"type": "stdio"}},
    ],
    "remotes": [{"type": "streamable-http", "url": "https://{tenant}.books.example/mcp",
                 "headers": [{"name": "X-Key", "isSecret": True}], "variables": {"tenant": {"isRequired": True}}}],
    "_meta": {PUBLISHER: {"tool": "mcpfactory"}},
}  # fmt: skip

# Rule → (path, value) that break it; the value `...` takes the field away.
WRONG: dict[str, list[tuple[str, Any]]] = {
    "shape": [
        ("version", 1), ("packages", {}), ("packages.0.transport", "stdio"), ("remotes", ["x"]), ("icons.0.sizes", [1]),
        ("name", ...), ("description", ""), ("packages.0.identifier", ...), ("$schema", ...),
        ("packages.0.postInstallInstructions", []), ("homepage", "x"),
        ("name", f"io.github.acme/{'b' * 200}"),
        ("description", "x" * 101),
        ("version", "1" * 256), ("title", "x" * 101), ("title", ""), ("icons.0.src", f"https://x/{'i' * 255}"),
        ("icons.0.mimeType", "image/gif"), ("icons.0.theme", "blue"), ("icons.0.sizes", ["48"]),
        ("packages.0.registryType", "gem"),
        ("packages.0.identifier", "books mcp"),
        ("packages.2.fileSha256", "A" * 64), ("packages.2.fileSha256", "a" * 63),
        ("packages.0.transport.type", "websocket"), ("remotes.0.type", "stdio"),
        ("packages.0.environmentVariables.0.format", "path"), ("remotes.0.variables.tenant.format", "url"),
        ("packages.0.packageArguments.0.type", "flag"),
    ],
    "name": [("name", "books"), ("name", "io.github.acme/a/b"), ("name", "io.github.acme/-books"), ("name", "io acme/books")],
    "version": [("version", "latest"), ("version", "^1.2.3"), ("version", "1.x"), ("version", "1.2 - 2.0"),
                ("version", "1.2 || 1.3"), ("packages.0.version", ">=1.0")],
    "website": [("websiteUrl", "http://books.example"), ("websiteUrl", "/books"), ("websiteUrl", "https://[x")],
    "start": [("packages+remotes", [])],
    "repository": [("repository.source", "bitbucket"), ("repository.url", "https://github.com/acme"),
                   ("repository.url", "https://gitlab.com/acme/servers")],
    "subfolder": [("repository.subfolder", "/servers"), ("repository.subfolder", "a/../b"), ("repository.subfolder", "a/")],
    "icon-source": [("icons.0.src", "https://[x"), ("icons.0.src", "http://x.example/i.png"), ("icons.0.src", "data:x")],
    "package-version": [("packages.0.version", ...)],
    "package-source": [("packages.0.registryBaseUrl", "https://index.example")],
    "image": [("packages.1.version", "1.0.0"), ("packages.1.identifier", "quay.io/acme/books:1"),
              ("packages.1.identifier", "ghcr.io/acme/books"), ("packages.1.identifier", "ghcr.io/acme/books:latest")],
    "bundle": [("packages.2.identifier", "https://[github.com/mcp"), ("packages.2.identifier", "https://books.example/books-mcp.mcpb"), ("packages.2.fileSha256", ...), ("packages.2.fileSha256", ""),
               ("packages.2.identifier", "https://github.com/acme/s/releases/download/v1/books.zip")],
    "transport-url": [("packages.1.transport.url", "http://x.example"), ("packages.0.transport.url", "mcp")],
    "remote-url": [("remotes.0.url", "http://books.example/mcp"), ("remotes.0.url", "https://localhost/mcp"),
                   ("remotes.0.url", "https://127.0.0.1:8000/mcp")],
    "url-variables": [("remotes.0.url", "https://{who}.example/mcp"), ("packages.0.transport.url", "http://x.example/{who}")],
    "secret": [("packages.0.environmentVariables.0.value", "hunter2"), ("remotes.0.headers.0.default", "hunter2")],
}  # fmt: skip


def broken(path: str, value: Any) -> Any:
    """The right document with one thing changed; `+` changes several fields, `#` is before a key with dots in it."""
    document = copy.deepcopy(RIGHT)
    for one in path.split("+"):
        head, _, key = one.partition("#")
        parts = [*head.split("."), key] if key else head.split(".")
        place: Any = document
        for part in parts[:-1]:
            place = place[int(part)] if isinstance(place, list) else place[part]
        if value is ...:
            del place[parts[-1]]
        else:
            place[parts[-1]] = value
    return document


def test_a_document_with_everything_in_it_passes():
    assert find_violations(RIGHT) == []


@parametrize_subtests("rule, path, value", [(rule, *case) for rule, cases in WRONG.items() for case in cases])
def test_what_breaks_a_rule_is_refused_by_its_id(rule, path, value):
    assert f"server-json/{rule}" in {found.rule for found in find_violations(broken(path, value))}


def test_every_rule_has_an_example_that_breaks_it():
    assert {"shape", *(rule.id.removeprefix("server-json/") for rule in RULES)} == WRONG.keys()


@parametrize_subtests("document", [
        None, [], "x", {}, {"packages": [None, {"transport": {"url": "http://[x"}}]}, {"_meta": 1, "name": {}},
        {"packages": [{"environmentVariables": [{"name": ["A"]}], "transport": {"url": "http://{A}"}}]},
    ])  # fmt: skip
def test_no_document_breaks_the_judge(document):
    assert find_violations(json.loads(json.dumps(document)))


@parametrize_subtests("version", ["1.0.0", "2026.11.21", "1.0.0-rc.1", "v2", "1.0.0+x"])
def test_one_version_is_one_version(version):
    assert find_violations({**RIGHT, "version": version}) == []
