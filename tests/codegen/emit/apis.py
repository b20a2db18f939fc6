"""Small APIs in the intermediate form."""

from __future__ import annotations

from typing import Any

from mcpfactory_codegen.cases.cases import test_files
from mcpfactory_codegen.describe.tools import ApiTool, make_api_tools
from mcpfactory_codegen.emit import Options, emit
from mcpfactory_codegen.ir import Api, ApiBody, ApiOperation, ApiParameter, ApiSecurityScheme, Response
from mcpfactory_codegen.naming import name_api

OPTIONS = Options("bookshop", "bookshop_mcp")

BOOKSHOP = Api(
    "Bookshop",
    version="1",
    description="Books, and who wrote them.",
    servers=("https://bookshop.example/v1",),
    operations=(
        ApiOperation(
            "GET",
            "/books/{bookId}",
            "/paths/~1books~1{bookId}/get",
            operation_id="getBook",
            summary="Get a book",
            tags=("Books",),
            parameters=(
                ApiParameter("path", "bookId", {"type": "integer"}, required=True),
                ApiParameter("query", "fields", {"type": "array", "items": {"type": "string"}}, explode=False),
                ApiParameter("header", "X-Request-Id", {"type": "string"}),
            ),
            responses=(Response("200", "A book.", "application/json", {"$ref": "#/$defs/Book"}),),
            security=(("apiKey",),),
        ),
        ApiOperation(
            "POST",
            "/books",
            "/paths/~1books/post",
            operation_id="addBook",
            summary="Add a book.",
            tags=("Books",),
            parameters=(ApiParameter("query", "limit", {"type": "integer"}),),
            body=ApiBody("application/json", {"$ref": "#/$defs/Book"}, required=True),
            responses=(Response("201", "Made.", "application/json", {"$ref": "#/$defs/Book"}),),
            security=(("apiKey",),),
        ),
        ApiOperation(
            "DELETE", "/books/{bookId}", "", parameters=(ApiParameter("path", "bookId", {"type": "integer"}),)
        ),
    ),
    schemas={
        "Book": {
            "type": "object",
            "required": ["title"],
            "properties": {
                "subtitle": {"type": ["string", "null"]},
                "title": {"type": "string", "maxLength": 80},
                "limit": {"type": "integer"},
                "author": {"$ref": "#/$defs/Author"},
                "parts": {"type": "array", "items": {"$ref": "#/$defs/Book"}},
            },
        },
        "Author": {"type": "object", "properties": {"name": {"type": "string", "description": "The **full** name."}}},
    },
    security_schemes=(ApiSecurityScheme("apiKey", "apiKey", "header", "X-Api-Key"),),
)


def one(operation: ApiOperation, schemas: dict[str, Any] | None = None) -> ApiTool:
    """Return the tool of an API with one operation."""
    api = Api("Shop", operations=(operation,), schemas=schemas or {})
    (tool,) = make_api_tools(api, name_api(api)).tools
    return tool


def with_body(schema: Any, *, schemas: dict[str, Any] | None = None, required: bool = True, **body: Any) -> ApiTool:
    """Return the tool of `POST /things` with this JSON body."""
    content = {"content_type": "application/json", **body}
    return one(ApiOperation("POST", "/things", "", body=ApiBody(schema=schema, required=required, **content)), schemas)


def files_of(api: Api, options: Options = OPTIONS) -> dict[str, str]:
    """Return the machine-owned files of an API."""
    names = name_api(api, server=options.server)
    tools = make_api_tools(api, names).tools
    tests = test_files(api, names, tools, options.package, dialect="dialect" in options.offer)
    return emit(api, names, tools, options) | tests
