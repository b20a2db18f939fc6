"""Postman collections: requests of folders become operations; variables, examples and auth say what an example can say."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.openapi import read_source
from mcpfactory_codegen.read.document import load
from mcpfactory_codegen.read.overlay import apply_overlays, load_overlay
from mcpfactory_codegen.servers.config import ApiConfig
from mcpfactory_codegen.servers.create import create_server
from mcpfactory_codegen.servers.documents import stored_document
from mcpfactory_codegen.sources.translation_helpers import redacted
from tests.codegen.sources.support import SourceReader, named, parameters
from tests.subtest_table import parametrize_subtests

V21 = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"


def collection(*items: Any, **members: Any) -> dict[str, Any]:
    """A collection of these items, with a variable for the base URL."""
    return {
        "info": {"name": "Shop", "schema": V21, "description": {"content": "Sells."}},
        "variable": [
            {"key": "baseUrl", "value": "https://{{host}}/v1"},
            {"key": "host", "value": "shop.test"},
            {"key": "api_version", "value": "2024"},
            {"key": "apiToken", "value": "hunter2"},
        ],
        "item": list(items),
        **members,
    }


def request(raw: str = "{{baseUrl}}/books", name: str = "List books", **members: Any) -> dict[str, Any]:
    """An item with a request."""
    return {"name": name, "request": {"method": "GET", "url": {"raw": raw}, **members}}


def body(**members: Any) -> dict[str, Any]:
    """An item with a POST of a body."""
    return request(name="Add book", method="POST", body=members)


def test_requests_of_folders_are_operations(reader: SourceReader) -> None:
    folder = {
        "name": "Books",
        "item": [
            request(description="All of them."),
            {"name": "Deep", "item": [request("{{baseUrl}}/deep", "Go deep")]},
        ],
    }
    api = reader.api(collection(folder))
    assert (api.title, api.description, api.servers, api.problems) == ("Shop", "Sells.", ("https://shop.test/v1",), ())
    found = [(one.key, one.operation_id, one.summary, one.tags) for one in api.operations]
    assert found == [
        ("GET /books", "list_books", "List books", ("Books",)),
        ("GET /deep", "go_deep", "Go deep", ("Deep",)),
    ]
    assert api.operations[0].pointer == "/item/0/item/0"
    assert api.operations[0].description == "All of them."


@parametrize_subtests("url, server, path, given", [
        ("{{baseUrl}}/books/:id", "https://shop.test/v1", "/books/{id}", {"id": ("path", True)}),
        ("{{baseUrl}}/books/{{book_id}}", "https://shop.test/v1", "/books/{book_id}", {"book_id": ("path", True)}),
        ("{{baseUrl}}/{{api_version}}/a", "https://shop.test/v1", "/2024/a", {}),
        ("https://{{host}}:8443/a?x=1&x=2", "https://shop.test:8443", "/a", {"x": ("query", False)}),
        ("http://user:hunter2@other.test/a", "http://other.test", "/a", {}),
        ("shop.test/a", "https://shop.test", "/a", {}),
        ("{{nothing}}/a", "", "/a", {}),
        ({"protocol": "https", "host": ["shop", "test"], "path": ["a", ":b"]}, "https://shop.test", "/a/{b}", {"b": ("path", True)}),
        ({"raw": "{{baseUrl}}/a?x=1", "query": [{"key": "x", "value": "1", "description": "(Required) How."}]},
         "https://shop.test/v1", "/a", {"x": ("query", True)}),
    ])  # fmt: skip
def test_an_address_is_a_base_url_a_path_and_arguments(
    reader: SourceReader, url: Any, server: str, path: str, given: dict[str, tuple[str, bool]]
) -> None:
    api = reader.api(collection({"name": "One", "request": {"method": "GET", "url": url}}))
    (one,) = api.operations
    assert (api.base_url, one.path, parameters(one)) == (server, path, given)


def test_a_request_in_one_text_and_requests_elsewhere(reader: SourceReader) -> None:
    api = reader.api(
        collection(request(), request("{{baseUrl}}/b", "B"), {"name": "C", "request": "https://other.test/c"})
    )
    assert named(api, "c").key == "GET /c"
    assert named(api, "c").server
    assert not named(api, "b").server


KEY_21 = {"type": "apikey", "apikey": [{"key": "key", "value": "X-Shop"}, {"key": "value", "value": "hunter2"}]}
KEY_20 = {"type": "apikey", "apikey": {"key": "shop", "value": "hunter2", "in": "query"}}
TOKEN = [
    {"key": "accessTokenUrl", "value": "https://shop.test/token"},
    {"key": "authUrl", "value": "https://shop.test/login"},
]


@pytest.mark.parametrize(
    ("auth", "scheme"),
    [
        (KEY_21, ("apiKey", "header", "X-Shop")),
        (KEY_20, ("apiKey", "query", "shop")),
        ({"type": "basic", "basic": [{"key": "password", "value": "hunter2"}]}, ("basic", "", "")),
        ({"type": "bearer", "bearer": [{"key": "token", "value": "{{apiToken}}"}]}, ("bearer", "", "")),
        ({"type": "oauth2", "oauth2": TOKEN}, ("oauth2", "", "")),
        ({"type": "oauth2"}, ("bearer", "", "")),
    ],
)
@pytest.mark.parametrize("level", ["collection", "folder", "request"])
def test_auth_of_each_level_is_in_force_below(
    reader: SourceReader, auth: Any, scheme: tuple[str, str, str], level: str
) -> None:
    item = request(auth=auth) if level == "request" else request()
    folder = {"name": "F", "item": [item]} | ({"auth": auth} if level == "folder" else {})
    free = request("{{baseUrl}}/free", "Free", auth={"type": "noauth"})
    api = reader.api(collection(folder, free, **({"auth": auth} if level == "collection" else {})))
    (one,) = api.security_schemes
    assert (one.kind, one.place, one.parameter) == scheme
    assert named(api, "list_books").security == ((one.name,),)
    assert named(api, "free").security == ()


def test_credentials_in_headers_and_queries_are_no_arguments(reader: SourceReader) -> None:
    headers = [
        {"key": "X-Api-Key", "value": "hunter2"},
        {"key": "X-Shop-Version", "value": "7"},
        {"key": "X-Trace", "value": "{{t}}"},
    ]
    api = reader.api(collection(request("{{baseUrl}}/a?access_token=hunter2&q=1", "A", header=headers)))
    (one,) = api.operations
    assert parameters(one) == {"q": ("query", False), "X-Shop-Version": ("header", True), "X-Trace": ("header", False)}
    assert {(scheme.place, scheme.parameter) for scheme in api.security_schemes} == {
        ("header", "X-Api-Key"),
        ("query", "access_token"),
    }
    assert "hunter2" not in json.dumps([repr(api)])


@parametrize_subtests("sent, content_type, properties", [
        ({"mode": "raw", "raw": '{"title": "Emma", "pages": 3, "id": {{id}}, "x": null}'}, "application/json", ["title", "pages", "id", "x"]),
        ({"mode": "urlencoded", "urlencoded": [{"key": "a", "value": "1"}]}, "application/x-www-form-urlencoded", ["a"]),
        ({"mode": "formdata", "formdata": [{"key": "f", "type": "file"}]}, "multipart/form-data", ["f"]),
        ({"mode": "graphql", "graphql": {"query": "{ a }"}}, "application/json", ["query", "variables"]),
        ({"mode": "file"}, "application/octet-stream", None),
        ({"mode": "raw", "raw": "<a/>", "options": {"raw": {"language": "xml"}}}, "application/xml", None),
        ({"mode": "raw", "raw": "plain"}, "text/plain", None),
    ])  # fmt: skip
def test_a_body_has_the_shape_of_its_example(
    reader: SourceReader, sent: dict[str, Any], content_type: str, properties: list[str] | None
) -> None:
    (one,) = reader.api(collection(body(**sent))).operations
    assert one.body is not None
    assert one.body.content_type == content_type
    assert isinstance(one.body.schema, dict)
    assert (list(one.body.schema["properties"]) if properties is not None else None) == properties


def test_answers_have_the_types_of_the_saved_examples(reader: SourceReader) -> None:
    saved = [
        {"name": "Found", "code": 200, "body": '{"title": "Emma", "pages": 3}'},
        {"name": "Other", "code": 200, "body": '{"title": null, "new": [1]}'},
        {"name": "None", "code": 404, "body": "no"},
        {"name": "Odd", "code": "x", "body": None},
    ]
    (one,) = reader.api(collection(request() | {"response": saved})).operations
    first, second = one.responses
    assert (first.status, second.status, second.schema) == ("200", "404", None)
    assert isinstance(first.schema, dict)
    assert first.schema["required"] == ["title"]
    assert first.schema["properties"]["title"] == {"type": ["string", "null"]}
    assert first.schema["properties"]["pages"] == {"type": ["number", "null"]}


def test_a_request_without_a_url_is_left_out_and_reported(reader: SourceReader) -> None:
    api = reader.api(collection(request(), {"name": "Empty", "request": {"method": "GET", "url": ""}}))
    assert [(one.code, one.pointer) for one in api.problems] == [("operation-invalid", "/item/1")]
    assert len(api.skipped) == 1


@parametrize_subtests(
    "wrong, key",
    product(
        [None, 7, "text", [], {}, [{}], [[]], {"a": None}, [7]],
        ["url", "header", "body", "auth", "method", "description"],
    ),
)
def test_no_value_of_a_request_ends_the_reading(reader: SourceReader, key: str, wrong: Any) -> None:
    reader.api(collection(request(**{key: wrong}), {"name": wrong, "request": request()["request"], "response": wrong}))
    reader.api(
        collection(
            request(url={"raw": "{{baseUrl}}/:a", "query": wrong, "variable": wrong, "host": wrong}), variable=wrong
        )
    )
    reader.api(
        collection(
            body(mode="raw", raw=wrong), body(mode="formdata", formdata=wrong), auth={"type": "oauth2", "oauth2": wrong}
        )
    )


def test_a_number_beyond_all_bounds_and_an_address_that_is_none_are_values_like_others(reader: SourceReader) -> None:
    """Found by mutated collections: each ended the reading."""
    tokens = [{"key": "accessTokenUrl", "value": "http://["}, {"key": "authUrl", "value": "http://["}]
    api = reader.api(collection(body(mode="raw", raw='{"a": 1e999}'), auth={"type": "oauth2", "oauth2": tokens}))
    assert len(api.operations) == 1


SECRET = "correcthorsebattery"
TOKEN = "ghp_0f9e8d7c6b5a4f3e2d1c"


def _private() -> dict[str, Any]:
    """A collection with a secret in each place that could hold one."""
    client = [{"key": "accessTokenUrl", "value": "https://shop.test/token"}, {"key": "clientSecret", "value": SECRET}]
    sent = {
        "password": SECRET, "pin": 1234, "link": f"/in?token={SECRET}#id_token={SECRET}", "odd": TOKEN, "mine": "{{apiToken}}",
        "inner": json.dumps({"password": SECRET, "pin": 1234}), "query": f'mutation {{ login(password: "{SECRET}") {{ id }} }}',
        "form": f"a=1&password={SECRET}", "shell": "curl -H 'Authorization: Bearer s3cret-0f9e8d7c' x",
    }  # fmt: skip
    add = {
        **body(mode="raw", raw=json.dumps(sent)),
        "response": [
            {
                "code": 200,
                "header": [{"key": "Set-Cookie", "value": SECRET}],
                "cookie": [{"value": SECRET}],
                "body": json.dumps({"token": SECRET, "n": 1}),
            }
        ],
        "event": [{"script": {"exec": [f"pm.environment.set('x', '{SECRET}')"]}}],
    }
    form = [{"key": "password", "value": SECRET}, {"key": "title", "value": "Emma"}]
    items = [
        request(f"{{{{baseUrl}}}}/a?api_key={SECRET}", "A", auth={"type": "oauth2", "oauth2": client}),
        request(
            "{{baseUrl}}/b", "B", auth={"type": "apikey", "apikey": {"key": "X-K", "value": SECRET, "in": "header"}}
        ),
        request("{{baseUrl}}/c", "C", header=[{"key": "X-Odd", "value": TOKEN}, {"key": "X-Kind", "value": "books"}]),
        request("{{baseUrl}}/d", "D", header=f"Authorization: Bearer {SECRET}\nX-Api-Key: {SECRET}"),
        request("{{baseUrl}}/e", "E", header=[{"key": "Authorization", "value": f"Basic {SECRET}"}]),
        request("{{baseUrl}}/f", "F", method="POST", body={"mode": "urlencoded", "urlencoded": form}),
        add,
    ]
    variables = [{"key": "baseUrl", "value": f"https://me:{SECRET}@shop.test/v1"}, {"key": "apiToken", "value": SECRET}]
    auth = {"type": "bearer", "bearer": [{"key": "token", "value": SECRET}]}
    return collection(*items, variable=variables, auth=auth)


def test_no_credential_of_a_collection_gets_into_a_server(tmp_path: Path) -> None:
    (tmp_path / "shop.json").write_text(json.dumps(_private()))
    made = create_server(tmp_path, source=tmp_path / "shop.json", name="shop")
    files = {file: file.read_text("utf-8", "replace") for file in made.path.rglob("*") if file.is_file()}
    assert made.path / "api/collection.json" in files
    assert [
        str(file) for file, content in files.items() if any(one in content for one in (SECRET, TOKEN, "s3cret"))
    ] == []


@parametrize_subtests(
    "written",
    [
        "The token of a page: see the key figures.", '{"page_token": "abc", "token": true}', '{"token": "{{token}}"}',
        "skateboards-of-2024-and-before",
    ],
)  # fmt: skip
def test_what_is_no_credential_stays(written: str) -> None:
    assert redacted(written) == written


def test_what_a_collection_says_besides_its_credentials_stays(reader: SourceReader) -> None:
    api = reader.api(_private())
    assert api.servers == ("https://shop.test/v1",)
    kinds = {one.name: (one.kind, one.place, one.parameter) for one in api.security_schemes}
    needed = {one.path: [kinds[name] for name in one.security[0]] for one in api.operations}
    assert needed["/b"] == [("apiKey", "header", "X-K")]
    assert needed["/d"] == [("bearer", "", ""), ("apiKey", "header", "X-Api-Key")]
    (basic,) = [one for one in api.operations if one.path == "/e"]
    assert {kinds[name][0] for names in basic.security for name in names} == {"bearer", "basic"}
    assert parameters(named(api, "c"))["X-Kind"] == ("header", True)
    assert parameters(named(api, "c"))["X-Odd"] == ("header", False)
    (add,) = [one.body for one in api.operations if one.operation_id == "add_book"]
    assert add is not None
    assert isinstance(add.schema, dict)
    assert add.schema["properties"]["pin"] == {"type": "integer"}


def test_requests_of_one_address_with_other_bodies_are_separate_operations(reader: SourceReader) -> None:
    def payment(kind: str, amount: str) -> dict[str, Any]:
        raw = {"Header": {"Category": kind}, f"{kind}Request": {"Amount": amount}}
        sent = {"mode": "raw", "raw": json.dumps(raw)}
        return request("{{baseUrl}}/", kind, method="POST", body=sent)

    api = reader.api(collection(payment("Payment", "1"), payment("Refund", "2"), payment("Payment", "3")))
    assert [one.key for one in api.operations] == ["POST /", "POST /#refund"]
    members = [
        one.body.schema["properties"] for one in api.operations if one.body and isinstance(one.body.schema, dict)
    ]
    assert [[*one] for one in members] == [["Header", "PaymentRequest"], ["Header", "RefundRequest"]]
    assert members[1]["Header"]["properties"]["Category"]["examples"] == ["Refund"]


def test_literal_ids_of_a_path_are_arguments(reader: SourceReader) -> None:
    paths = ("/books/42", "/books/43", "/api/2/books/6f1ed002-ab5d-4a3f-9d3e-3f6a5b0c1d2e/pages/7")
    api = reader.api(collection(*(request("{{baseUrl}}" + path, f"Get {path}") for path in paths)))
    assert [one.path for one in api.operations] == ["/books/{book_id}", "/api/2/books/{book_id}/pages/{page_id}"]
    assert api.operations[0].parameters[0].example == "42"


def test_description_of_a_folder_describes_its_tag(reader: SourceReader) -> None:
    api = reader.api(collection({"name": "Books", "description": "What we sell.", "item": [request()]}))
    assert api.tag_descriptions == {"Books": "What we sell."}


def test_names_of_requests_have_whole_words(reader: SourceReader) -> None:
    api = reader.api(collection(request(name="Get user's OAuth IDs")))
    assert [one.operation_id for one in api.operations] == ["get_users_oauth_ids"]


@pytest.mark.parametrize("wrapped", [False, True])
def test_environment_overrides_variables_without_its_secrets(tmp_path: Path, wrapped: bool) -> None:
    values = [
        {"key": "host", "value": "staging.shop.test"},
        {"key": "host", "value": "off.test", "enabled": False},
        {"key": "tenant", "value": "acme"},
        {"key": "id", "value": "42"},
        {"key": "partner", "value": "hunter2", "type": "secret"},
    ]
    headers = [
        {"key": "X-Tenant", "value": "{{tenant}}"},
        {"key": "X-Off", "value": "{{tenant}}", "disabled": True},
        {"key": "X-Partner", "value": "{{partner}}"},
    ]
    asked = request("{{baseUrl}}/books?shelf={{tenant}}&id={{id}}&via={{partner}}&since={{since}}", header=headers)
    exported = {"collection": collection(asked), "environment": {"name": "Staging", "values": values}}
    for name, part in (("shop", "collection"), ("staging", "environment")):
        (tmp_path / f"{name}.json").write_text(json.dumps({part: exported[part]} if wrapped else exported[part]))
    made = create_server(tmp_path, source=tmp_path / "shop.json", name="shop", overlays=[tmp_path / "staging.json"])
    assert [file for file in made.path.rglob("*") if file.is_file() and b"hunter2" in file.read_bytes()] == []
    config = ApiConfig(document="api/collection.json", overlays=("api/overlays/staging.json",))
    api = read_source(stored_document(made.path, config))
    (books,) = api.operations
    assert [*api.servers] == ["https://staging.shop.test/v1"]
    assert {one.name: one.schema.get("default") for one in books.parameters} == {
        "shelf": "acme", "id": None, "since": None, "X-Tenant": "acme", "X-Off": None,
    }  # fmt: skip
    assert {(one.place, one.parameter) for one in api.security_schemes} == {("header", "X-Partner"), ("query", "via")}


def test_environment_of_another_document_is_a_problem(reader: SourceReader) -> None:
    document = load(reader.write({"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "paths": {}}))
    overlay = load_overlay(reader.write({"values": [{"key": "host", "value": "shop.test"}]}, "staging.json"))
    (problem,) = apply_overlays(document, [overlay]).problems
    assert problem.code == "overlay-unmatched"
    assert "Postman collection" in problem.message
    assert "$" not in problem.message


@pytest.mark.parametrize(("value", "servers"), [("https://shop.test/v1", ["https://shop.test/v1"]), ("shop.test", [])])
def test_secret_variable_is_a_base_url_only_with_a_scheme(reader: SourceReader, value: str, servers: list[str]) -> None:
    variable = {"key": "baseUrl", "value": value, "type": "secret"}
    assert [*reader.api(collection(request(), variable=[variable])).servers] == servers
