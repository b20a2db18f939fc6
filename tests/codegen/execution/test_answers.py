"""What a model gets back from a generated server, from document to result, over a real API that is not as documented."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mcpfactory_codegen.servers.create import create_server, regenerate
from mcpfactory_runtime.client import connect_stdio
from mcpfactory_runtime.upstream import StubUpstream

THING = {
    "type": "object",
    "required": ["id", "state"],
    "additionalProperties": False,
    "properties": {"id": {"type": "integer"}, "state": {"enum": ["new", "old"]}, "at": {"type": "string"}},
}
PAGE = {
    "type": "object",
    "properties": {"things": {"type": "array", "items": THING}, "next_cursor": {"type": ["string", "null"]}},
}
BUCKETS = {
    "type": "object",
    "properties": {
        "Buckets": {
            "type": "array",
            "items": {"type": "object", "properties": {"Name": {"type": "string"}}, "xml": {"name": "Bucket"}},
            "xml": {"wrapped": True},
        }
    },
}
DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Things", "version": "1"},
    "servers": [{"url": "https://things.example"}],
    "paths": {
        "/thing": {
            "get": {
                "operationId": "getThing",
                "responses": {"200": {"description": "", "content": {"application/json": {"schema": THING}}}},
            }
        },
        "/buckets": {
            "get": {
                "operationId": "listBuckets",
                "parameters": [
                    {"name": "Action", "in": "query", "required": True, "schema": {"enum": ["ListBuckets"]}},
                ],
                "responses": {"200": {"description": "", "content": {"text/xml": {"schema": BUCKETS}}}},
            }
        },
        "/things": {
            "get": {
                "operationId": "listThings",
                "parameters": [
                    {"name": "cursor", "in": "query", "schema": {"type": "string"}},
                    {"name": "limit", "in": "query", "schema": {"type": "integer"}},
                ],
                "responses": {"200": {"description": "", "content": {"application/json": {"schema": PAGE}}}},
            }
        },
        "/uploads": {
            "post": {
                "operationId": "createUpload",
                "responses": {
                    "201": {"description": "", "headers": {"Upload-Offset": {"schema": {"type": "integer"}}}},
                    "default": {"description": "", "headers": {"X-RateLimit-Reset": {"schema": {"type": "integer"}}}},
                },
            },
            "head": {"operationId": "checkUpload", "responses": {"200": {"description": ""}}},
        },
    },
}
OTHER_CALLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "list_buckets": ({"path": "/buckets", "query": [["Action", "ListBuckets"]]}, {"content_type": "text/xml"}),
    "create_upload": (
        {"method": "POST"},
        {"headers": {"Upload-Offset": "7", "X-RateLimit-Reset": "60", "X-Trace": "t"}},
    ),
    "check_upload": ({"method": "HEAD"}, {"headers": {"Upload-Length": "9", "Set-Cookie": "s=1"}}),
}
"""Tool → parts of its request and of the response."""


def served(folder: Path, responses: str = "") -> Path:
    """The server of the document with this table `[responses]`."""
    document = folder / "things.json"
    document.write_text(json.dumps(DOCUMENT))
    made = create_server(folder, source=document).path
    if responses:
        config = made / "mcpfactory.toml"
        config.write_text(f"{config.read_text()}\n[responses]\n{responses}\n")
        regenerate(made)
    return made


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return served(tmp_path_factory.mktemp("things"))


def ask(server: Path, body: Any, tool: str = "get_thing", **arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tool as listed and its result, when the API answers with this body."""
    sent, told = OTHER_CALLS.get(tool, ({}, {}))

    async def run() -> tuple[dict[str, Any], dict[str, Any]]:
        case = {"request": {"method": "GET", **sent}, "response": {"body": body, **told}}
        async with StubUpstream([case]) as stub:
            environ = {"PYTHONPATH": str(server / "src"), "MCPFACTORY_BASE_URL": stub.base_url}
            async with connect_stdio([sys.executable, "-m", "things_mcp"], env=environ) as client:
                tools = {one["name"]: one for one in await client.list_tools()}
                return tools[tool], await client.call_tool(tool, arguments)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("body", "structured"),
    [
        ({"id": 1, "state": "lost", "more": []}, {"id": 1, "state": "lost", "more": []}),
        ({"id": "1", "at": None}, {"id": 1}),
        ([1, 2], {"result": [1, 2]}),
    ],
)
def test_an_answer_that_is_not_as_documented_still_satisfies_the_listed_schema(
    things: Path, body: Any, structured: Any
) -> None:
    tool, result = ask(things, body)
    jsonschema.validate(result["structuredContent"], tool["outputSchema"])
    assert result["structuredContent"] == structured
    assert json.loads(result["content"][0]["text"]) == body
    assert not result.get("isError")


def test_an_answer_in_xml_is_structured_and_what_every_call_sends_is_not_asked_for(things: Path) -> None:
    body = '<R xmlns="urn:s3"><Buckets><Bucket><Name>a &amp; b</Name></Bucket></Buckets></R>'
    tool, result = ask(things, body, "list_buckets")
    assert tool["inputSchema"]["properties"] == {}
    assert result["structuredContent"] == {"Buckets": [{"Name": "a & b"}]}
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


def test_the_headers_that_the_document_declares_reach_the_model(things: Path) -> None:
    _, with_body = ask(things, {"id": 1}, "create_upload")
    assert [block["text"] for block in with_body["content"]] == [
        '{"id":1}',
        "upload-offset: 7\nx-ratelimit-reset: 60",
    ]


def test_a_head_tool_returns_the_headers(things: Path) -> None:
    _, result = ask(things, None, "check_upload")
    (block,) = result["content"]
    assert "upload-length: 9" in block["text"].splitlines()
    assert "cookie" not in block["text"]


def test_the_person_decides_how_much_is_promised(tmp_path: Path) -> None:
    server = served(tmp_path, 'output = "declared"')
    tool, result = ask(server, {"id": 1, "state": "lost"})
    assert tool["outputSchema"]["required"] == ["id", "state"]
    assert result["isError"]
    assert "state is missing. The call itself was carried out" in result["content"][-1]["text"]
    config = server / "mcpfactory.toml"
    config.write_text(config.read_text().replace("declared", "none"))
    regenerate(server)
    tool, result = ask(server, {"id": "1"})
    assert "outputSchema" not in tool
    assert result["structuredContent"] == {"id": "1"}


def test_a_model_reads_a_list_to_its_end_with_what_it_is_told(things: Path) -> None:
    """Calls again with what the result says until it says nothing more."""

    async def run() -> list[int]:
        pages = {"": ([1, 2], "b"), "b": ([3], "c d"), "c d": ([4], None)}
        cases = [
            {
                "request": {"method": "GET", "path": "/things", "query": [["cursor", cursor]] if cursor else []},
                "response": {"body": {"things": [{"id": n} for n in found], "next_cursor": following}},
            }
            for cursor, (found, following) in pages.items()
        ]
        read: list[int] = []
        async with StubUpstream(cases) as stub:
            environ = {"PYTHONPATH": str(things / "src"), "MCPFACTORY_BASE_URL": stub.base_url}
            async with connect_stdio([sys.executable, "-m", "things_mcp"], env=environ) as client:
                arguments: dict[str, Any] | None = {"limit": 2}
                while arguments is not None:
                    result = await client.call_tool("list_things", arguments)
                    read += [one["id"] for one in result["structuredContent"]["things"]]
                    told = result.get("_meta", {}).get("mcpfactory/next")
                    arguments = {**arguments, **told["arguments"]} if told else None
        return read

    assert asyncio.run(run()) == [1, 2, 3, 4]
