"""Small API documents of one product family, and functions that write and read files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ITEM: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "string"}}}


def document(
    title: str,
    url: str,
    *operations: str,
    schemas: dict[str, Any] | None = None,
    scheme: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return a document with operations such as "GET /items listItems"; each response is an Item."""
    answer = {
        "200": {"description": "", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Item"}}}}
    }
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        method, path, name = one.split()
        paths.setdefault(path, {})[method.lower()] = {"operationId": name, "tags": ["items"], "responses": answer}
    components = {
        "schemas": {"Item": ITEM, **(schemas or {})},
        "securitySchemes": {"bearerAuth": scheme or {"type": "http", "scheme": "bearer"}},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1"},
        "servers": [{"url": url}] if url else [],
        "security": [{"bearerAuth": []}],
        "components": components,
        "paths": paths,
        **more,
    }


def written(folder: Path, **documents: dict[str, Any]) -> dict[str, str]:
    """Write documents as `<name>.json`; return their paths."""
    paths = {}
    for name, data in documents.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(data), "utf-8")
        paths[name] = str(path)
    return paths


def read(folder: Path, path: str) -> Any:
    """Return the data of a JSON file below a server's folder."""
    return json.loads((folder / path).read_text("utf-8"))
