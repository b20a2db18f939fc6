"""What is read of operations: parameters, bodies, responses, security and servers."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_codegen.ir import Encoding
from tests.codegen.reading.support import FRONT, Reader, codes, problem
from tests.subtest_table import parametrize_subtests


def body(**content: Any) -> dict[str, Any]:
    return {"requestBody": {"content": {name.replace("_", "/"): value for name, value in content.items()}}}


@pytest.mark.parametrize(
    ("written", "schema", "sent"),
    [
        ("*/*", {"type": "object"}, "application/json"),
        ("*/*", {"type": "string", "format": "binary"}, "application/octet-stream"),
        ("text/*", {"type": "string"}, "text/plain"),
        ("image/*", {"type": "string", "format": "binary"}, "application/octet-stream"),
    ],
)
def test_a_range_of_media_types_becomes_one_that_can_be_sent(
    reader: Reader, written: str, schema: Any, sent: str
) -> None:
    api = reader.parts(paths={"/a": {"post": {"requestBody": {"content": {written: {"schema": schema}}}}}})
    assert api.operations[0].body is not None
    assert api.operations[0].body.content_type == sent
    assert codes(api) == ["body-media-type"]


@parametrize_subtests(
    "media, schema, sent",
    [
        ("application/octet-stream", {"type": "object"}, "application/json"),
        ("application/octet-stream", {"type": "string", "format": "binary"}, "application/octet-stream"),
        ("text/plain", {"allOf": [{"properties": {"a": {"type": "string"}}}]}, "application/json"),
        ("multipart/form-data", {"type": "array", "items": {"type": "string"}}, "application/json"),
        ("multipart/form-data", {"type": "object", "properties": {"a": {}}}, "multipart/form-data"),
        ("text/xml", {"type": "object", "properties": {"a": {}}, "xml": {"name": "a"}}, "text/xml"),
    ],
)
def test_a_media_type_that_cannot_carry_its_schema_is_sent_as_json(
    reader: Reader, media: str, schema: dict[str, Any], sent: str
) -> None:
    body = {"content": {media: {"schema": schema}}}
    api = reader.parts(paths={"/a": {"post": {"requestBody": body, "responses": {"200": {"description": "ok"}}}}})
    assert api.operations[0].body is not None
    assert api.operations[0].body.content_type == sent
    assert codes(api) == (["body-media-type"] if sent != media else [])


@parametrize_subtests(
    "media, schema",
    [
        ("application/jwt", {"type": "object", "properties": {"a": {}}}),
        ("application/yaml", {"allOf": [{"properties": {"a": {}}}]}),
        ("application/cbor", {"type": "array", "items": {"type": "string"}}),
        ("application/x-ndjson", {"type": "object", "properties": {"a": {}}}),
        ("text/csv", {"type": "array", "items": {"type": "object"}}),
        ("image/png", {"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "array", "items": {}}]}),
        ("multipart/mixed", {"type": "array", "items": {"type": "object"}}),
    ],
)
def test_body_that_json_values_cannot_build_is_one_text(reader: Reader, media: str, schema: dict[str, Any]) -> None:
    body = {"content": {media: {"schema": schema}}}
    api = reader.parts(paths={"/a": {"post": {"requestBody": body, "responses": {"200": {"description": "ok"}}}}})
    assert api.operations[0].body is not None
    assert api.operations[0].body.content_type == media
    assert api.operations[0].body.schema == {"type": "string", "description": f"The body as {media}."}
    assert codes(api) == ["body-media-type"]


def test_a_form_by_another_name_is_a_form(reader: Reader) -> None:
    body = {"content": {"application/form-data": {"schema": {"type": "object", "properties": {"a": {}}}}}}
    api = reader.parts(paths={"/a": {"post": {"requestBody": body, "responses": {"200": {"description": "ok"}}}}})
    assert api.operations[0].body is not None
    assert api.operations[0].body.content_type == "multipart/form-data"
    assert codes(api) == ["media-invalid"]


def test_a_list_of_media_types_means_its_first(reader: Reader) -> None:
    api = reader.parts(
        paths={"/a": {"post": {"requestBody": {"content": {"text/csv, text/plain": {"schema": {}}, "string": {}}}}}}
    )
    assert api.operations[0].body is not None
    assert api.operations[0].body.content_type == "text/csv"
    assert codes(api) == ["media-invalid", "media-invalid"]


def test_fields_of_a_multipart_body_that_are_files_are_marked(reader: Reader) -> None:
    properties = {
        "old": {"type": "string", "format": "binary"},
        "new": {"type": "string", "contentMediaType": "image/png"},
        "untyped": {},
        "many": {"type": "array", "items": {"$ref": "#/components/schemas/File"}},
        "maybe": {"anyOf": [{"type": "string", "format": "binary"}, {"type": "null"}]},
        "text": {"type": "string"},
        "base64": {"type": "string", "contentMediaType": "image/png", "contentEncoding": "base64"},
        "json": {"type": "string", "contentMediaType": "application/json"},
    }
    schema = {
        "allOf": [
            {"$ref": "#/components/schemas/Upload"},
            {"properties": {"last": {"type": "string", "format": "binary"}}},
        ]
    }
    found = reader.operation(
        requestBody={"content": {"multipart/form-data": {"schema": schema, "encoding": {"untyped": {"contentType": "image/gif"}}}}},
        components={"schemas": {"File": {"type": "string", "format": "binary"}, "Upload": {"type": "object", "properties": properties}}},
    ).body  # fmt: skip
    assert found is not None
    assert {name for name, one in found.encoding.items() if one.file} == {
        "old",
        "new",
        "untyped",
        "many",
        "maybe",
        "last",
    }
    assert found.encoding["untyped"] == Encoding("image/gif", file=True)


def test_a_parameter_of_the_operation_replaces_that_of_the_path(reader: Reader) -> None:
    shared = [{"name": "X-A", "in": "header", "schema": {"type": "string"}}, {"name": "q", "in": "query", "schema": {}}]
    own = [{"name": "x-a", "in": "header", "schema": {"type": "integer"}}, {"name": "q", "in": "cookie", "schema": {}}]
    api = reader.parts(paths={"/a": {"parameters": shared, "get": {"parameters": own}}})
    found = api.operations[0].parameters
    assert [(one.place, one.name) for one in found] == [("header", "x-a"), ("query", "q"), ("cookie", "q")]
    assert found[0].schema == {"type": "integer"}


def test_templates_of_rfc_6570_are_read_as_their_parameters(reader: Reader) -> None:
    parameter = {
        "name": "id",
        "in": "path",
        "required": True,
        "style": "label",
        "explode": True,
        "schema": {"type": "array"},
    }
    found = reader.operation(path="/a/{.id*}", parameters=[parameter])
    assert (found.path, found.pointer) == ("/a/{id}", "/paths/~1a~1{.id*}/get")
    assert [(one.name, one.style, one.explode) for one in found.parameters] == [("id", "label", True)]


def test_responses_of_success_come_first(reader: Reader) -> None:
    written = {"default": {"description": ""}, "404": {"description": ""}, "2XX": {"description": ""}, "201": {"description": ""}, "200": {"description": ""}, "5xx": {"description": ""}}  # fmt: skip
    assert [one.status for one in reader.operation(responses=written).responses] == [
        "200",
        "201",
        "2XX",
        "default",
        "404",
        "5XX",
    ]


def test_status_codes_that_yaml_reads_as_numbers_are_text(reader: Reader) -> None:
    api = reader.text(
        "openapi: 3.1.0\ninfo: {title: a, version: 1.0}\npaths: {/a: {get: {responses: {200: {description: Yes}}}}}"
    )
    assert [one.status for one in api.operations[0].responses] == ["200"]
    assert api.version == "1.0"


SCHEMES = {
    "key": {"type": "apiKey", "in": "query", "name": "k"},
    "basic": {"type": "http", "scheme": "Basic"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "oauth": {"type": "oauth2", "flows": {}},
    "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://a.test"},
    "tls": {"type": "mutualTLS"},
    "digest": {"type": "http", "scheme": "digest"},
}


@parametrize_subtests(
    "root, own, meant",
    [
        ([{"key": []}], None, (("key",),)),
        ([{"key": []}], [], ()),
        ([{"key": []}], [{"bearer": []}], (("bearer",),)),
        ([{"key": [], "basic": []}, {"oauth": ["a"]}], None, (("key", "basic"), ("oauth",))),
        ([{}, {"oidc": []}], None, ((), ("oidc",))),
        ([{"tls": [], "key": []}], None, (("tls", "key"),)),
        ([{"digest": []}, {"key": []}], None, (("key",),)),
        ([{"ghost": []}, {"key": []}], None, (("key",),)),
    ],
)
def test_security_is_the_operations_own_or_the_documents(reader: Reader, root: Any, own: Any, meant: Any) -> None:
    operation = {} if own is None else {"security": own}
    parts = {} if root is None else {"security": root}
    api = reader.parts(paths={"/a": {"get": operation}}, components={"securitySchemes": SCHEMES}, **parts)
    assert api.operations[0].security == meant


def test_schemes_are_reduced_to_how_the_credential_travels(reader: Reader) -> None:
    api = reader.parts(components={"securitySchemes": SCHEMES})
    assert [(one.name, one.kind, one.place, one.parameter, bool(one.note)) for one in api.security_schemes] == [
        ("key", "apiKey", "query", "k", False),
        ("basic", "basic", "", "", False),
        ("bearer", "bearer", "", "", False),
        ("oauth", "bearer", "", "", True),
        ("oidc", "oauth2", "", "", True),
        ("tls", "mutualTLS", "", "", False),
    ]


def test_schemes_that_nothing_asks_for_are_sent_when_they_are_configured(reader: Reader) -> None:
    schemes = {"securitySchemes": {name: SCHEMES[name] for name in ("key", "bearer")}}
    api = reader.parts(paths={"/a": {"get": {}}}, components=schemes)
    assert api.operations[0].security == (("key",), ("bearer",), ())
    assert codes(api) == ["security-unapplied"]
    opened = reader.parts(paths={"/a": {"get": {}}}, components=schemes, security=[])
    assert (opened.operations[0].security, codes(opened)) == ((), [])


@parametrize_subtests(
    "servers, meant",
    [
        ([{"url": "https://a.test/"}], ("https://a.test",)),
        (
            [{"url": "https://{x}.test/{y}", "variables": {"x": {"default": "a"}, "y": {"enum": ["v2", "v1"]}}}],
            ("https://a.test/v2",),
        ),
        ([{"url": "https://{x}.test"}, {"url": "https://b.test"}], ("https://b.test",)),
        ([{"url": "api.test/v1"}], ("https://api.test/v1",)),
        ([{"url": "//api.test/v1"}], ("https://api.test/v1",)),
        ([{"url": "localhost:8080/v1"}], ("http://localhost:8080/v1",)),
        ([{"url": "ftp://a.test"}, {"url": "javascript:alert(1)"}, {"url": "https://a b"}, {"url": "https://"}], ()),
        ([{"url": "/v1"}], ()),
        (None, ()),
    ],
)
def test_servers_are_absolute_addresses(reader: Reader, servers: Any, meant: Any) -> None:
    front = {key: value for key, value in FRONT["3.1"].items() if key != "servers"}
    api = reader.text(front | {"paths": {}} | ({} if servers is None else {"servers": servers}))
    assert api.servers == meant
    assert ("server-missing" in codes(api)) == (not meant)


@pytest.mark.parametrize(
    ("fields", "meant"),
    [
        (
            {"host": "a.test", "basePath": "/v1", "schemes": ["http", "https"]},
            ("https://a.test/v1", "http://a.test/v1"),
        ),
        ({"host": "a.test", "schemes": ["ws"]}, ("https://a.test",)),
        ({"host": "a.test", "schemes": []}, ("https://a.test",)),
    ],
)
def test_the_address_of_swagger_2_is_put_together(reader: Reader, fields: Any, meant: Any) -> None:
    assert (
        reader.text({"swagger": "2.0", "info": {"title": "a", "version": "1"}, "paths": {}, **fields}).servers == meant
    )


def test_a_method_of_a_later_version_is_read_and_said(reader: Reader) -> None:
    api = reader.parts("3.0", paths={"/a": {"query": {}, "GET": {}}})
    assert {one.method for one in api.operations} == {"QUERY", "GET"}
    assert codes(api) == ["path-method", "path-method"]


def test_a_broken_operation_costs_itself_and_says_why(reader: Reader) -> None:
    paths = {"/good": {"get": {}}, "/bad": {"post": {"operationId": "bad", "requestBody": {"$ref": "#/nowhere"}}}}
    api = reader.parts(paths=paths)
    assert [one.key for one in api.operations] == ["GET /good"]
    (skipped,) = api.skipped
    assert (skipped.method, skipped.path, skipped.operation_id, skipped.pointer) == (
        "POST",
        "/bad",
        "bad",
        "/paths/~1bad/post",
    )
    assert skipped.reason
    assert problem(api, "reference-dangling").level == "error"


@pytest.mark.parametrize(("header", "kept"), [("Content-Length", 1), ("host", 1), ("Connection", 0)])
def test_required_header_of_the_client_is_no_parameter(reader: Reader, header: str, kept: int) -> None:
    parameter = {"name": header, "in": "header", "required": True, "schema": {"type": "string"}}
    api = reader.parts(paths={"/a": {"put": {"parameters": [parameter]}}})
    assert (len(api.operations), codes(api)) == (kept, ["parameter-header"])
    assert [one.parameters for one in api.operations] == [()] * kept


def test_an_unknown_version_is_a_problem_and_no_crash(reader: Reader) -> None:
    api = reader.text({"openapi": "4.1.0", "info": {"title": "a", "version": "1"}, "paths": {"/a": {"get": {}}}})
    assert (api.operations, codes(api)) == ((), ["version-unsupported"])
    newer = reader.text({"openapi": "3.9.0", "info": {"title": "a", "version": "1"}, "paths": {"/a": {"get": {}}}})
    assert len(newer.operations) == 1
    assert codes(newer)[0] == "version-unknown"


def test_a_habit_is_reported_a_bounded_number_of_times(reader: Reader) -> None:
    paths: dict[str, Any] = {f"/{number}": {"get": {"callbacks": {"a": {}}}} for number in range(200)}
    api = reader.parts(paths=paths)
    assert len(api.operations) == 200
    assert len(api.problems) == 51
    assert "150 more" in api.problems[-1].message
