"""Google discovery documents: methods below resources become operations, whose problems point into the document."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.codegen.sources.support import SourceReader, named, parameters
from tests.subtest_table import parametrize_subtests

_SCOPE = "https://www.googleapis.com/auth/shelf"
_SCHEMAS: dict[str, Any] = {
    "Book": {
        "id": "Book",
        "type": "object",
        "properties": {
            "title": {"type": "string", "annotations": {"required": ["shelf.books.insert"]}},
            "pages": {"type": "string", "format": "int64"},
            "state": {"type": "string", "enum": ["NEW", "OLD"], "enumDescriptions": ["Unread", "Read"]},
            "created": {"type": "string", "description": "Output only. When."},
            "any": {"type": "any"},
            "next": {"$ref": "Book"},
        },
    }
}
_PARAMETERS: dict[str, Any] = {
    name: {"type": "string", "location": "query"}
    for name in (
        "key",
        "access_token",
        "oauth_token",
        "alt",
        "prettyPrint",
        "quotaUser",
        "$.xgafv",
        "callback",
        "fields",
    )
}
_GET: dict[str, Any] = {
    "id": "shelf.books.get",
    "httpMethod": "GET",
    "path": "v1/{+name}",
    "flatPath": "v1/shelves/{shelvesId}/books/{booksId}",
    "parameters": {
        "name": {"type": "string", "location": "path", "required": True, "pattern": "^shelves/[^/]+/books/[^/]+$"},
        "view": {"type": "string", "location": "query", "repeated": True, "enum": ["A", "B"]},
        "max": {"type": "integer", "location": "query", "minimum": "1", "maximum": "99", "default": "10"},
        "deep": {"type": "boolean", "location": "query", "default": "false"},
    },
    "parameterOrder": ["name"],
    "response": {"$ref": "Book"},
    "scopes": [_SCOPE, "https://www.googleapis.com/auth/shelf.readonly"],
}
_INSERT: dict[str, Any] = {
    "id": "shelf.books.insert",
    "httpMethod": "POST",
    "path": "v1/books",
    "request": {"$ref": "Book"},
    "response": {"$ref": "Book"},
    "mediaUpload": {"accept": ["*/*"], "protocols": {"simple": {"multipart": True, "path": "/upload/v1/books"}}},
}


def document(**methods: Any) -> dict[str, Any]:
    """A discovery document with these methods of `books`, and one of `shelves` on the path of `get`."""
    books = {"books": {"methods": methods or {"get": _GET, "insert": _INSERT}}}
    other = {**_GET, "id": "shelf.shelves.get", "flatPath": "v1/shelves/{shelvesId}"}
    return {
        "kind": "discovery#restDescription",
        "name": "shelf",
        "version": "v1",
        "title": "Shelf API",
        "rootUrl": "https://shelf.googleapis.com/",
        "servicePath": "",
        "parameters": _PARAMETERS,
        "auth": {"oauth2": {"scopes": {_SCOPE: {"description": "All"}}}},
        "schemas": _SCHEMAS,
        "resources": {"shelves": {"methods": {"get": other}, "resources": books}},
    }


def test_methods_of_nested_resources_are_operations(reader: SourceReader) -> None:
    api = reader.api(document())
    assert (api.title, api.version, api.servers) == ("Shelf API", "v1", ("https://shelf.googleapis.com",))
    assert sorted(one.operation_id for one in api.operations) == [
        "shelf.books.get", "shelf.books.insert", "shelf.books.insert.upload", "shelf.shelves.get",
    ]  # fmt: skip
    assert (api.problems, api.skipped) == ((), ())
    assert [one.tags for one in api.operations if one.operation_id == "shelf.books.get"] == [("books",)]


def test_methods_that_share_a_path_with_reserved_expansion_are_told_apart(reader: SourceReader) -> None:
    api = reader.api(document())
    get = named(api, "shelf.books.get")
    assert get.path == "/v1/{name}#shelf.books.get"
    assert named(api, "shelf.shelves.get").path == "/v1/{name}#shelf.shelves.get"
    (name,) = [one for one in get.parameters if one.name == "name"]
    assert (name.place, name.required, name.style) == ("path", True, "segments")


def test_parameters_of_the_transport_are_not_for_a_model(reader: SourceReader) -> None:
    api = reader.api(document())
    assert parameters(named(api, "shelf.books.get")) == {
        "name": ("path", True),
        "view": ("query", False),
        "max": ("query", False),
        "deep": ("query", False),
        "fields": ("query", False),
    }
    assert parameters(named(api, "shelf.books.insert")) == {}


def test_a_query_parameter_that_says_that_it_is_required_is(reader: SourceReader) -> None:
    data = document()
    told = {
        "said": "Required. The reader.",
        "inside": "The reader. Required.",
        "usual": "Required. It is 10.",
        "quiet": "The reader.",
    }
    method = data["resources"]["shelves"]["methods"]["get"]
    method["parameters"] |= {
        name: {
            "type": "string",
            "location": "query",
            "description": words,
            **({"default": "10"} if name == "usual" else {}),
        }
        for name, words in told.items()
    }
    found = parameters(named(reader.api(data), "shelf.shelves.get"))
    assert {name: found[name] for name in told} == {
        "said": ("query", True),
        "inside": ("query", False),
        "usual": ("query", False),
        "quiet": ("query", False),
    }


def test_a_body_has_what_its_method_requires_and_nothing_that_only_comes_back(reader: SourceReader) -> None:
    api = reader.api(document())
    body = named(api, "shelf.books.insert").body
    assert body is not None
    assert isinstance(body.schema, dict)
    first, second = body.schema["allOf"]
    assert second == {"required": ["title"]}
    sent = api.schemas[first["$ref"].removeprefix("#/$defs/")]
    assert isinstance(sent, dict)
    assert "created" not in sent["properties"]
    assert sent["properties"]["any"] == {}
    assert sent["properties"]["pages"]["type"] == "string"


def test_credentials_are_a_token_for_the_first_scope_or_a_key(reader: SourceReader) -> None:
    api = reader.api(document())
    get = named(api, "shelf.books.get")
    assert get.security == (("Oauth2",), ("ApiKey",))
    assert dict(get.scopes)["Oauth2"] == (_SCOPE,)
    assert named(api, "shelf.books.insert").security == (("ApiKey",),)
    kinds = {one.name: (one.kind, one.place, one.parameter) for one in api.security_schemes}
    assert kinds == {"Oauth2": ("oauth2", "", ""), "ApiKey": ("apiKey", "query", "key")}


@pytest.mark.parametrize(
    ("method", "code", "pointer"),
    [
        ({**_GET, "httpMethod": 7}, "operation-invalid", ""),
        ({**_GET, "response": {"$ref": "Gone"}}, "reference-dangling", "/response"),
        (
            {**_GET, "parameters": {**_GET["parameters"], "bad": {"type": "strin", "location": "query"}}},
            "schema-type",
            "/parameters/bad/type",
        ),
    ],
)
def test_problems_point_into_the_discovery_document(
    reader: SourceReader, method: dict[str, Any], code: str, pointer: str
) -> None:
    (found,) = reader.api(document(get=method)).problems
    assert (found.code, found.pointer) == (code, f"/resources/shelves/resources/books/methods/get{pointer}")


@parametrize_subtests(
    "wrong, key",
    product(
        [None, 7, "text", [], {}, [{}], {"a": None}],
        ["resources", "schemas", "parameters", "auth", "rootUrl", "servicePath", "title"],
    ),
)
def test_no_value_of_a_field_ends_the_reading(reader: SourceReader, key: str, wrong: Any) -> None:
    reader.api({**document(), key: wrong})
    reader.api(document(get={**_GET, "parameters": {"p": wrong}, key: wrong, "request": wrong, "mediaUpload": wrong}))
