"""Documents of an API, of every kind that is read: bytes, to files of a server.

Whatever the bytes, they are refused with a reason, or every operation is accounted for and the files are Python and JSON.
"""

from __future__ import annotations

import ast
import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.fuzz.mutation import mutate_json
from mcpfactory_codegen.cases.files import test_files
from mcpfactory_codegen.describe.tools import describe_all
from mcpfactory_codegen.emit import Options, emit
from mcpfactory_codegen.naming import name_api
from mcpfactory_codegen.read.document import DocumentError, load
from mcpfactory_codegen.sources.reading import read_source
from mcpfactory_runtime.server.schema.json_schema import compile_schema
from mcpfactory_runtime.server.schema.references import UnusableSchemaError

__all__ = ["SEEDS", "WORDS", "mutate", "one"]

mutate = mutate_json
_OPTIONS = Options("shop", "shop_mcp")
_FOLDER = Path(tempfile.mkdtemp(prefix="mcpfactory-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
_METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


_BOOK = {
    "type": "object",
    "required": ["title"],
    "properties": {"title": {"type": "string", "maxLength": 9}, "next": {"$ref": "#/components/schemas/Book"}},
    "discriminator": {"propertyName": "kind", "mapping": {"a": "#/components/schemas/Book"}},
}
_PARAMETERS = [
    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
    {"name": "tags", "in": "query", "style": "deepObject", "schema": {"type": "array", "items": {"enum": ["a", None]}}},
    {"name": "page", "in": "query", "schema": {"type": "integer", "default": 1}},
]
_BODY = {
    "content": {
        "application/json": {"schema": {"oneOf": [{"$ref": "#/components/schemas/Book"}, {"type": "null"}]}},
        "multipart/form-data": {"schema": {"properties": {"file": {"type": "string", "format": "binary"}}}},
        "application/xml": {"schema": {"$ref": "#/components/schemas/Book"}},
    }
}
_OPENAPI = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "https://{region}.shop.test/v1", "variables": {"region": {"default": "eu"}}}],
    "security": [{"key": []}, {"oauth": ["read"]}],
    "paths": {
        "/books/{id}": {
            "parameters": _PARAMETERS,
            "get": {
                "operationId": "getBook",
                "responses": {"200": {"content": {"*/*": {"schema": {"type": "array"}}}}},
            },
            "patch": {"summary": "Change a book", "requestBody": _BODY, "responses": {"default": {"description": "x"}}},
        }
    },
    "components": {
        "schemas": {"Book": _BOOK},
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "oauth": {
                "type": "oauth2",
                "flows": {"clientCredentials": {"tokenUrl": "https://shop.test/t", "scopes": {}}},
            },
        },
    },
}
_SWAGGER = {
    "swagger": "2.0",
    "info": {"title": "Shop"},
    "host": "shop.test",
    "consumes": ["application/x-www-form-urlencoded"],
    "paths": {
        "/a": {
            "post": {
                "parameters": [
                    {"name": "f", "in": "formData", "type": "file"},
                    {
                        "name": "ids",
                        "in": "query",
                        "type": "array",
                        "items": {"type": "string"},
                        "collectionFormat": "pipes",
                    },
                ],
                "responses": {"200": {"schema": {"$ref": "#/definitions/A"}}},
            }
        }
    },
    "definitions": {"A": {"allOf": [{"$ref": "#/definitions/A"}, {"type": "object", "x-nullable": True}]}},
}
_DISCOVERY = {
    "kind": "discovery#restDescription",
    "discoveryVersion": "v1",
    "name": "shop",
    "version": "v1",
    "rootUrl": "https://shop.test/",
    "servicePath": "v1/",
    "schemas": {"Book": {"id": "Book", "type": "object", "properties": {"name": {"type": "string"}}}},
    "resources": {
        "books": {
            "methods": {
                "get": {
                    "id": "shop.books.get",
                    "path": "{+name}",
                    "httpMethod": "GET",
                    "parameters": {"name": {"type": "string", "location": "path", "required": True}},
                    "response": {"$ref": "Book"},
                }
            }
        }
    },
}
_POSTMAN = {
    "info": {"name": "Shop", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
    "item": [
        {
            "name": "Get",
            "request": {"method": "GET", "url": {"raw": "https://shop.test/a/:id?b=1", "host": ["shop", "test"]}},
        }
    ],
    "variable": [{"key": "x", "value": "{{x}}"}],
}
_ENTRY = {
    "request": {
        "method": "GET",
        "url": "https://shop.test/a/1?b=2",
        "headers": [{"name": "Authorization", "value": "x"}],
    },
    "response": {"status": 200, "content": {"mimeType": "application/json", "text": '{"a":[1]}'}},
}
SEEDS = (
    _json(_OPENAPI),
    _json(_SWAGGER),
    _json(_DISCOVERY),
    _json(_POSTMAN),
    _json({"log": {"version": "1.2", "entries": [_ENTRY, _ENTRY]}}),
    b"type Query { book(id: ID!, first: Int = 3): Book }\ntype Book { id: ID! title: String books: [Book!]! }\n",
    b"openapi: 3.0.3\ninfo: &i {title: T, version: '1'}\npaths:\n  /a:\n    get: {operationId: a, responses: {}, x: *i}\n",
)
WORDS = (
    *(
        "openapi",
        "swagger",
        "paths",
        "parameters",
        "requestBody",
        "responses",
        "content",
        "schema",
        "components",
        "$ref",
    ),
    *("allOf", "oneOf", "anyOf", "items", "properties", "additionalProperties", "enum", "nullable", "discriminator"),
    *(
        "application/json",
        "application/xml",
        "multipart/form-data",
        "text/plain",
        "in",
        "path",
        "query",
        "header",
        "cookie",
    ),
    *("security", "securitySchemes", "servers", "variables", "default", "example", "format", "pattern", "readOnly"),
    *(
        "#/components/schemas/Book",
        "#/definitions/A",
        "#/paths",
        "#",
        "operationId",
        "getBook",
        '"""',
        "\\",
        "{id}",
        "class",
    ),
)


def one(data: bytes) -> None:
    """Read the bytes as a document and make the files of its server."""
    file = _FOLDER / "document"
    file.write_bytes(data)
    try:
        document = load(file)
    except DocumentError as error:
        assert str(error), "refused without a reason"
        return
    api = read_source(document)
    assert not [problem for problem in api.problems if problem.code == "operation-unreadable"], api.problems
    names = name_api(api)
    described = describe_all(api, names)
    accounted = len(described.tools) + len(described.skipped)
    assert accounted == len(api.operations), "an operation is neither a tool nor left out"
    assert all(one.reason for one in (*api.skipped, *described.skipped)), "left out without a reason"
    assert len({tool.name for tool in described.tools}) == len(described.tools), "two tools of one name"
    for tool in described.tools:
        _compiles(tool.input_schema)
    tests = test_files(api, names, described.tools, "shop_mcp", dialect=False)
    files = emit(api, names, described.tools, _OPTIONS) | tests
    for path, text in files.items():
        if path.endswith(".py"):
            ast.parse(text, path)
        elif path.endswith(".json"):
            json.loads(text)


def _compiles(schema: Any) -> None:
    """What is listed can be checked; a schema that cannot says why when the server starts, so it must not be listed."""
    try:
        compile_schema(schema)
    except UnusableSchemaError as error:
        raise AssertionError(f"a tool is listed whose schema no server takes: {error}") from error
