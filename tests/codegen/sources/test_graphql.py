"""GraphQL schemas: queries and mutations become operations whose documents the API accepts, and which a server of ours can call."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import pytest
from graphql import introspection_from_schema, parse, validate

from mcpfactory_codegen.effects import effect_of
from mcpfactory_codegen.ir import Api
from mcpfactory_codegen.servers.create import create_server
from mcpfactory_runtime.testing import connect
from tests.codegen.reading.support import codes
from tests.codegen.sources.library import BOOK, SDL, Library, schema, serving
from tests.codegen.sources.support import SourceReader, named
from tests.subtest_table import parametrize_subtests

pytestmark = pytest.mark.xdist_group("graphql")


@pytest.fixture(params=["text", "introspection", "data"], scope="module")
def api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Api:
    """The same API, from each form in which its schema is passed on."""
    found = {"text": lambda: SDL, "introspection": _introspection, "data": lambda: {"data": _introspection()}}
    return SourceReader(tmp_path_factory.mktemp("api")).api(found[request.param]())


@cache
def _introspection_text() -> str:
    return json.dumps(introspection_from_schema(schema()))


def _introspection() -> dict[str, Any]:
    return dict(json.loads(_introspection_text()))


def _document(api: Api, name: str) -> str:
    body = named(api, name).body
    assert body is not None
    return body.graphql


def test_fields_of_the_root_types_are_operations(api: Api) -> None:
    assert sorted(one.key for one in api.operations) == [
        "POST /#mutation.addBook", "POST /#query.book", "POST /#query.books", "POST /#query.broken", "POST /#query.count",
        "POST /#query.old", "POST /#query.search",
    ]  # fmt: skip
    assert {one.operation_id: one.reason for one in api.skipped} == {
        "added": "a subscription is a stream, but a tool returns one result",
        "setCover": "its argument 'file' is a file, and uploads are not supported",
    }
    assert named(api, "old").deprecated
    assert codes(api) == ["server-missing"]


def test_every_document_is_valid_for_the_schema(api: Api) -> None:
    for one in api.operations:
        assert validate(schema(), parse(_document(api, one.operation_id))) == [], one.key


def test_a_selection_has_scalars_and_the_objects_around_and_no_cycle(api: Api) -> None:
    assert _document(api, "book") == (
        "query book($id: ID!) { book(id: $id) { id title genre rating fails author { name born } } }"
    )
    assert _document(api, "count") == "query count { count }"


def test_a_connection_gives_its_nodes_and_where_the_next_page_begins(api: Api) -> None:
    assert _document(api, "books") == (
        "query books($filter: BookFilter, $first: Int = 20, $after: String) "
        "{ books(filter: $filter, first: $first, after: $after) { totalCount nodes { id title genre rating fails "
        "author { name born } } pageInfo { hasNextPage endCursor } } }"
    )


def test_what_can_be_of_several_types_says_which_it_is(api: Api) -> None:
    assert _document(api, "search") == (
        "query search($text: String!) { search(text: $text) { __typename ... on Book { id title genre rating fails "
        "author { name born } } ... on Author { name born favourite { id title genre rating fails } } } }"
    )


def test_a_query_reads_and_a_mutation_does_not(api: Api) -> None:
    kinds = {one.operation_id: effect_of(one).kind for one in api.operations}
    assert kinds.pop("addBook") == "writes"
    assert set(kinds.values()) == {"reads"}


def test_arguments_are_typed_by_the_input_types(api: Api) -> None:
    body = named(api, "books").body
    assert body is not None
    assert isinstance(body.schema, dict)
    assert list(body.schema["properties"]) == ["filter", "first", "after"]
    assert body.schema["properties"]["first"] == {"type": "integer", "default": 20}
    found = api.schemas["BookFilter"]
    assert isinstance(found, dict)
    assert found["properties"]["genre"] == {"$ref": "#/$defs/Genre", "default": "FACT"}
    assert found["properties"]["any"] == {"type": "array", "items": {"$ref": "#/$defs/BookFilter"}}
    genre = api.schemas["Genre"]
    assert isinstance(genre, dict)
    assert genre["enum"] == ["FACT", "FICTION"]


def test_an_answer_has_the_types_of_what_was_selected(api: Api) -> None:
    (response,) = named(api, "count").responses
    assert response.schema == {
        "type": "object",
        "properties": {"data": {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}},
        "required": ["data"],
    }


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[dict[str, Any], Any]]]:
    """The result of each call against an API that executes it, and the request that came there."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "schema.graphql").write_text(SDL)
    made = create_server(folder, source=folder / "schema.graphql", name="library")
    assert made.recognised == "a GraphQL schema, 9 fields"
    assert (made.path / "api/schema.graphql").read_text() == SDL
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(made.path / "src"))
        report = json.loads((made.path / ".mcpfactory/report.json").read_bytes())
        tools = {row["operation"]["operationId"]: row["name"] for row in report["tools"]}
        yield asyncio.run(_called(tools, patch))
    for name in [name for name in sys.modules if name.split(".")[0] == "library_mcp"]:
        del sys.modules[name]


CALLS: dict[str, dict[str, Any]] = {
    "book": {"id": "1"},
    "books": {"filter": {"titles": ["Emma"]}},
    "search": {"text": "e"},
    "count": {},
    "broken": {},
    "addBook": {"input": {"title": "Persuasion"}},
}


async def _called(tools: dict[str, str], patch: pytest.MonkeyPatch) -> dict[str, tuple[dict[str, Any], Any]]:
    server = importlib.import_module("library_mcp.server").server
    api = importlib.import_module("library_mcp._generated.api")
    found = {}
    library = Library()
    with serving(library) as endpoint:
        patch.setenv("MCPF_LIBRARY_BASE_URL", endpoint)
        async with api.upstream(), connect(server) as client:
            for name, arguments in CALLS.items():
                found[name] = (await client.call_tool(tools[name], arguments), library.requests[-1])
    return found


def test_a_call_executes_the_document_with_its_variables(called: dict[str, Any]) -> None:
    result, (path, sent) = called["book"]
    assert path == "/api/graphql"
    assert sent["variables"] == {"id": "1"}
    author = {"name": "Austen", "born": 1775}
    book = {key: BOOK[key] for key in ("id", "title", "genre", "rating")} | {"fails": None, "author": author}
    assert result["structuredContent"] == {"data": {"book": book}}


def test_a_page_says_how_to_go_on(called: dict[str, Any]) -> None:
    result, _ = called["books"]
    assert "after" in result["content"][-1]["text"]
    assert "c1" in result["content"][-1]["text"]


def test_errors_in_the_answer_fail_the_call(called: dict[str, Any]) -> None:
    result, _ = called["broken"]
    assert result["isError"]
    assert "the shelf is empty" in result["content"][0]["text"]


@parametrize_subtests(
    "content, code, message",
    [
        ("type Query {\n  a: [Int\n}", "graphql-invalid", "line 3"),
        ("type A { a: Int }\ntype B { b: A }", "graphql-invalid", "neither queries nor mutations"),
        ("type Query {\n  a(x: Gone!): Int\n}", "", ""),
        ("type Query {\n  a: Gone\n}", "", ""),
        ("type Query { a: A }\ntype A { a: A }", "", ""),
        ("type Query { a: U }\nunion U = Gone", "", ""),
    ],
)
def test_a_schema_with_gaps_is_read_as_far_as_it_goes(
    reader: SourceReader, content: str, code: str, message: str
) -> None:
    found = [one for one in reader.api(content).problems if one.code not in {"server-missing"}]
    assert [(one.code, message in one.message) for one in found] == ([(code, True)] if code else [])


@parametrize_subtests(
    "wrong, key",
    product(
        [None, 7, "text", [], {}, [{}], {"a": None}],
        ["name", "kind", "fields", "inputFields", "enumValues", "possibleTypes", "description"],
    ),
)
def test_no_value_in_an_introspection_ends_the_reading(reader: SourceReader, key: str, wrong: Any) -> None:
    changed = _introspection()
    for one in changed["__schema"]["types"]:
        one[key] = wrong
    reader.api(changed)
