"""Helpers of the reader tests: documents from text, and invariants of every Api."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jsonschema

from mcpfactory_codegen.ir import Api, ApiOperation, JsonSchema, Problem
from mcpfactory_codegen.openapi import read_api
from mcpfactory_codegen.read.document import Document, load

METASCHEMA = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
FRONT: dict[str, dict[str, Any]] = {
    "2.0": {"swagger": "2.0", "info": {"title": "Test", "version": "1"}, "host": "api.test", "schemes": ["https"]},
    "3.0": {"openapi": "3.0.3", "info": {"title": "Test", "version": "1"}, "servers": [{"url": "https://api.test"}]},
    "3.1": {"openapi": "3.1.0", "info": {"title": "Test", "version": "1"}, "servers": [{"url": "https://api.test"}]},
    "3.2": {"openapi": "3.2.0", "info": {"title": "Test", "version": "1"}, "servers": [{"url": "https://api.test"}]},
}
"""The required beginning of a document of each version."""


class Reader:
    """Reader that writes documents to a temporary folder and reads them from their path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, content: str | bytes | dict[str, Any]) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(content) if isinstance(content, dict) else content
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def load(self, content: str | bytes | dict[str, Any], **options: Any) -> Document:
        return load(self.write("openapi", content), **options)

    def text(self, content: str | bytes | dict[str, Any], **options: Any) -> Api:
        """Read a whole document."""
        return checked(read_api(self.load(content, **options)))

    def parts(self, version: str = "3.1", **parts: Any) -> Api:
        """Read a document with the beginning of a version and these top-level fields."""
        return self.text(FRONT[version] | parts)

    def operation(self, version: str = "3.1", path: str = "/a", components: Any = None, **fields: Any) -> ApiOperation:
        """Read a document with one operation, `get` of `path`, and return the operation."""
        extra = {"components": components} if components else {}
        api = self.parts(version, paths={path: {"get": {"operationId": "one", "responses": {}, **fields}}}, **extra)
        (operation,) = api.operations
        return operation

    def schema(self, schema: Any, version: str = "3.1", schemas: Any = None, *, response: bool = False) -> Any:
        """Return a translated schema of a request or response, with each reference expanded once."""
        content = {"content": {"application/json": {"schema": schema}}}
        body = {"responses": {"200": {"description": "", **content}}} if response else {"requestBody": content}
        api = self.parts(version, paths={"/a": {"post": body}}, components={"schemas": schemas or {}})
        (operation,) = api.operations
        if response:
            return expanded(operation.responses[0].schema, api, 6)
        assert operation.body is not None
        return expanded(operation.body.schema, api, 6)


def expanded(schema: Any, api: Api, depth: int) -> Any:
    """Return a schema with expanded references, so that tests need no names of definitions."""
    if isinstance(schema, list):
        return [expanded(one, api, depth) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if (name := str(schema.get("$ref")).removeprefix("#/$defs/")) in api.schemas:
        target = expanded(api.schemas[name], api, depth - 1) if depth else "…"
        beside = {key: expanded(value, api, depth) for key, value in schema.items() if key != "$ref"}
        return {"→": target, **beside} if beside else target
    return {key: expanded(value, api, depth) for key, value in schema.items()}


def checked(api: Api) -> Api:
    """Check the invariants of every Api: valid schemas, no dangling references, serializable, no internal errors."""
    for name, schema in schemas(api):
        assert [error.message for error in METASCHEMA.iter_errors(schema)] == [], name
        for reference in references(schema):
            assert reference.removeprefix("#/$defs/") in api.schemas, (name, reference)
    json.dumps(asdict(api), allow_nan=False).encode()
    assert [problem for problem in api.problems if problem.code == "operation-internal-error"] == []
    return api


def schemas(api: Api) -> Iterator[tuple[str, JsonSchema]]:
    yield from api.schemas.items()
    for operation in api.operations:
        yield from ((f"{operation.key} {one.name}", one.schema) for one in operation.parameters)
        if operation.body is not None:
            yield f"{operation.key} body", operation.body.schema
        yield from (
            (f"{operation.key} {one.status}", one.schema) for one in operation.responses if one.schema is not None
        )


def references(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for one in schema:
            yield from references(one)
    elif isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for key, value in schema.items():
            if key in {"properties", "patternProperties", "dependentSchemas"}:
                yield from references(list(value.values()))
            elif key not in {"default", "const", "enum", "examples"}:
                yield from references(value)


def codes(api: Api) -> list[str]:
    return [problem.code for problem in api.problems]


def problem(api: Api, code: str) -> Problem:
    """Return the only problem with this code."""
    (found,) = [one for one in api.problems if one.code == code]
    return found
