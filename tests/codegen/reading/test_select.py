"""Choosing operations by tag, path, operation and method."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_codegen.curation import Selection
from mcpfactory_codegen.ir import Api
from mcpfactory_codegen.select import NOT_SELECTED, select
from tests.codegen.reading.support import Reader, checked
from tests.subtest_table import parametrize_subtests


def using(name: str, **fields: Any) -> dict[str, Any]:
    schema = {"properties": {"default": {"$ref": f"#/components/schemas/{name}"}}}
    return {"responses": {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}, **fields}


@pytest.fixture
def api(reader: Reader) -> Api:
    return reader.parts(
        paths={
            "/books": {
                "get": using("Book", operationId="listBooks", tags=["Books"], security=[{"key": []}]),
                "post": using("Book", operationId="addBook", tags=["Books", "write"]),
            },
            "/books/{id}": {"get": using("Book", operationId="getBook", tags=["Books"])},
            "/books/{id}/pages/{n}": {"get": using("Page", operationId="getPage")},
            "/people": {"get": using("Person", operationId="listPeople", tags=["people"], security=[{"token": []}])},
            "/broken": {"get": {"operationId": "broken", "requestBody": {"$ref": "#/nowhere"}}},
        },
        components={
            "schemas": {"Book": {"properties": {"pages": {"items": {"$ref": "#/components/schemas/Page"}}}}, "Page": {}, "Person": {}},
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "k"}, "token": {"type": "http", "scheme": "bearer"}},
        },
    )  # fmt: skip


def kept(api: Api, **options: tuple[str, ...]) -> list[str]:
    return [one.operation_id for one in checked(select(api, Selection(**options))).operations]


ALL = ["listBooks", "addBook", "getBook", "getPage", "listPeople"]


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ({}, ALL),
        ({"include_tags": ("books",)}, ["listBooks", "addBook", "getBook"]),
        ({"include_tags": ("write", "people")}, ["addBook", "listPeople"]),
        ({"include_paths": ("/books",)}, ["listBooks", "addBook"]),
        ({"include_paths": ("/books/*",)}, ["getBook"]),
        ({"include_paths": ("/books/**",)}, ["listBooks", "addBook", "getBook", "getPage"]),
        ({"include_paths": ("/**",)}, ALL),
        ({"include_paths": ("**/pages/*",)}, ["getPage"]),
        ({"include_paths": ("/books/{id}",)}, ["getBook"]),
        ({"include_paths": ("/peopl?",)}, ["listPeople"]),
        ({"include_operations": ("getPage", "post /books")}, ["addBook", "getPage"]),
        ({"include_operations": ("GET /books/{id}",)}, ["getBook"]),
        ({"include_methods": ("post",)}, ["addBook"]),
        ({"include_tags": ("books",), "include_operations": ("listPeople",), "include_methods": ("GET",)}, ["listBooks", "getBook", "listPeople"]),
    ],
)  # fmt: skip
def test_tags_paths_and_operations_add_up_and_methods_narrow(api: Api, options: Any, meant: list[str]) -> None:
    assert kept(api, **options) == meant


def test_what_is_left_out_is_listed_with_its_reason(api: Api) -> None:
    found = select(api, Selection(include_tags=("books",), include_methods=("GET",)))
    reasons = {one.operation_id: one.reason for one in found.skipped}
    assert set(reasons) == {"broken", "addBook", "getPage", "listPeople"}
    assert reasons["addBook"] == f"{NOT_SELECTED}: POST is not one of the selected methods"
    assert reasons["getPage"] == f"{NOT_SELECTED}: matches none of the selected tags"
    assert not reasons["broken"].startswith(NOT_SELECTED)
    assert len(found.operations) + len(found.skipped) == len(api.operations) + len(api.skipped)


def test_schemas_and_schemes_that_nothing_needs_are_gone(api: Api) -> None:
    found = select(api, Selection(include_operations=("listPeople",)))
    assert (list(found.schemas), [one.name for one in found.security_schemes]) == (["Person"], ["token"])
    found = select(api, Selection(include_operations=("listBooks",)))
    assert (list(found.schemas), [one.name for one in found.security_schemes]) == (["Book", "Page"], ["key"])


def test_a_wish_that_matches_nothing_is_reported(api: Api) -> None:
    selection = Selection(
        include_tags=("bokos", "books"),
        include_paths=("/nowhere/*",),
        include_operations=("getBok",),
        include_methods=("PUT",),
    )
    found = select(api, selection)
    pointers = [one.pointer for one in found.problems if one.code == "selection-unmatched"]
    assert pointers == [
        "include-tag=bokos",
        "include-path=/nowhere/*",
        "include-operation=getBok",
        "include-method=PUT",
    ]


@parametrize_subtests("name", list(Selection.model_fields))
def test_each_field_has_an_effect_and_a_term_that_matches_nothing_is_a_problem(api, name):
    term = "NO-SUCH"
    found = select(api, Selection(**{name: (term,)}))
    assert [one.pointer for one in found.problems if one.code == "selection-unmatched"] == [
        f"{name.removesuffix('s').replace('_', '-')}={term}"
    ], "factory/codegen/src/mcpfactory_codegen/select.py: nothing reads this field"
