"""From an API document to the intermediate form: OpenAPI 3.0, 3.1 and 3.2, and Swagger 2.0.

`reading` says what differs between versions, `references` where things stand, `translate` what becomes of a schema;
`operations` reads paths with `parameters`, `content`, `security` and `servers`. All pure.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from mcpfactory_codegen.ir import Api, Problems
from mcpfactory_codegen.openapi.operations import read_operations
from mcpfactory_codegen.openapi.reading import Reading, check_object, spec_version
from mcpfactory_codegen.openapi.references import Location, References
from mcpfactory_codegen.openapi.schemas import Schemas
from mcpfactory_codegen.openapi.security import Security
from mcpfactory_codegen.openapi.servers import report_rootless, root_servers
from mcpfactory_codegen.openapi.sharing import Visibility
from mcpfactory_codegen.read.document import Document
from mcpfactory_codegen.server_names import settle_servers

__all__ = ["read_api"]


def read_api(document: Document) -> Api:
    """Read a document. Never raises for what stands in it: everything wrong is a `Problem` of the result.

    Each operation of the document is either in `operations` or in `skipped`. Pointers of problems are JSON pointers into
    the document; those into another of its files are written `file#pointer`.
    """
    problems = Problems()
    problems.extend(document.problems)
    spec = spec_version(document.data, problems)
    if spec is None:
        return Api(title=_title(document), problems=problems.all())
    references = References(document)
    raws = [part.raw for part in document.parts.values()] or [document.raw]
    raws.extend(overlay.raw for overlay in document.overlays.values())
    visibility = Visibility(references, iter(raws))
    schemas = Schemas(spec, references, visibility, problems)
    reading = Reading(document, spec, references, problems, schemas.translate)
    info = _info(reading)
    servers = root_servers(reading)
    security = Security(reading)
    _report_keys(reading)
    operations, skipped = read_operations(reading, security, servers)
    if operations and security.unapplied:
        message = "security schemes are defined, but nothing asks for one; each is sent when its credentials are there"
        reading.report("security-unapplied", Location("", spec.schemes), message, "add `security` at the top")
        operations = [dataclasses.replace(operation, security=security.unapplied) for operation in operations]
    stated = spec.shape == "2" or bool(document.data.get("servers"))
    settled = settle_servers(servers, operations, stated=stated)
    if not servers and (settled.assumed or not settled.root):
        report_rootless(reading, settled.assumed)
    _report_webhooks(reading)
    shared = schemas.shared()
    for location, message in references.repaired:
        reading.report("reference-mended", location.down("$ref"), message, "correct the reference")
    docs = document.data.get("externalDocs")
    return Api(
        title=info["title"] or _title(document),
        version=info["version"],
        description=info["description"],
        servers=settled.root,
        operations=settled.operations,
        schemas=shared,
        security_schemes=security.schemes,
        tag_descriptions=_tags(reading),
        skipped=tuple(skipped),
        problems=problems.all(),
        external_docs=docs["url"] if isinstance(docs, dict) and isinstance(docs.get("url"), str) else "",
        own_servers=settled.own,
    )


def _info(reading: Reading) -> dict[str, str]:
    location = Location("", "/info")
    target = reading.follow(reading.document.data.get("info"), location)
    node: Any = target.node if target is not None else None
    if not isinstance(node, dict):
        reading.report("info-invalid", location, "`info` has to be an object with `title` and `version`; left empty")
        node = {}
    else:
        check_object(
            reading,
            "Info",
            {key: str(value) if isinstance(value, float) else value for key, value in node.items()},
            location,
        )
    return {key: reading.text(node.get(key), location.down(key)) for key in ("title", "version", "description")}


def _title(document: Document) -> str:
    """Return a name for a document that has none: that of its file."""
    name = document.source.rstrip("/").replace("\\", "/").rpartition("/")[2]
    return name.partition("?")[0].partition(".")[0] or "API"


def _tags(reading: Reading) -> dict[str, str]:
    tags = reading.document.data.get("tags")
    found: dict[str, str] = {}
    for index, tag in enumerate(tags if isinstance(tags, list) else []):
        if isinstance(tag, dict) and isinstance(tag.get("name"), str):
            location = Location("", f"/tags/{index}")
            text = reading.text(tag.get("description"), location.down("description"))
            found.setdefault(tag["name"], text or reading.text(tag.get("summary"), location.down("summary")))
    return found


_KEYS: Final = frozenset(
    {
        "$self", "components", "externalDocs", "info", "jsonSchemaDialect", "openapi", "paths", "security",
        "servers", "tags", "swagger", "webhooks",
    }
)  # fmt: skip
_KEYS_2: Final = frozenset(
    {
        "basePath", "consumes", "definitions", "externalDocs", "host", "info", "parameters", "paths",
        "produces", "responses", "schemes", "security", "securityDefinitions", "swagger", "tags", "openapi",
    }
)  # fmt: skip


def _report_keys(reading: Reading) -> None:
    known = _KEYS_2 if reading.spec.shape == "2" else _KEYS
    for key in reading.document.data:
        if key not in known and not key.startswith("x-"):
            message = f"{key[:80]!r} is no key of a document of version {reading.spec.version}"
            reading.report(
                "document-key", Location("", "").down(key), f"{message}; what refers to it finds it, nothing else does"
            )


def _report_webhooks(reading: Reading) -> None:
    for key in ("webhooks", "x-webhooks"):
        node = reading.document.data.get(key)
        if isinstance(node, dict) and node:
            message = f"webhooks are requests that the API sends, so they cannot be tools; left out: {len(node)}"
            reading.report("webhooks-ignored", Location("", f"/{key}"), message)
