"""Of several media types, the one that fits: bodies that are sent, and answers that are JSON whatever their label."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_codegen.ir import carries_json
from tests.codegen.reading.support import Reader
from tests.subtest_table import parametrize_subtests

THING = {"type": "object", "properties": {"name": {"type": "string"}}}
LIST = {"type": "array", "items": {"type": "object"}}
FILE = {"type": "object", "properties": {"name": {"type": "string"}, "picture": {"type": "string", "format": "binary"}}}
JSON, FORM, MULTI = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, XML = "application/strategic-merge-patch+json", "application/xml"


@parametrize_subtests(
    "content, chosen",
    [
        ({PATCH: THING, MERGE: THING}, MERGE),
        ({PATCH: THING, STRATEGIC: THING, "application/apply-patch+yaml": THING}, STRATEGIC),
        ({MERGE: LIST, PATCH: LIST}, PATCH),
        ({PATCH: LIST, MERGE: THING}, PATCH),
        ({PATCH: THING, JSON: THING}, JSON),
        ({PATCH: THING}, PATCH),
        ({XML: THING, FORM: THING, JSON: THING}, JSON),
        ({XML: THING, FORM: THING}, FORM),
        ({"text/plain": {"type": "string"}, XML: THING}, XML),
        ({"*/*": THING, JSON: THING}, JSON),
        ({"text/json": THING, "application/vnd.a+json": THING, XML: THING}, "text/json"),
        ({MULTI: THING, FORM: THING}, FORM),
        ({FORM: FILE, MULTI: FILE}, MULTI),
        ({JSON: FILE, MULTI: FILE}, MULTI),
        ({JSON: THING, MULTI: FILE}, JSON),
    ],
)
def test_the_media_type_that_fits_is_sent(reader: Reader, content: dict[str, Any], chosen: str) -> None:
    body = {"content": {name: {"schema": {"$ref": f"#/components/schemas/S{at}"}} for at, name in enumerate(content)}}
    schemas = {f"S{at}": schema for at, schema in enumerate(content.values())}
    found = reader.operation(requestBody=body, components={"schemas": schemas}).body
    assert found is not None
    assert found.content_type == chosen


@parametrize_subtests(
    "label, schema, is_json",
    [
        (JSON, {}, True),
        ("", {}, True),
        ("application/problem+json", {}, True),
        ("text/plain", THING, True),
        ("text/html; charset=utf-8", LIST, True),
        ("application/octet-stream", {"$ref": "#/$defs/Thing"}, True),
        ("text/plain", {"type": "string"}, False),
        ("application/octet-stream", {"type": "string", "format": "binary"}, False),
        ("application/octet-stream", {}, False),
        ("text/csv", LIST, False),
        (XML, THING, False),
        ("application/x-ndjson", LIST, True),
        ("application/x-ndjson", THING, False),
    ],
)
def test_an_answer_is_json_by_its_label_or_its_schema(label: str, schema: dict[str, Any], is_json: bool) -> None:
    assert carries_json(label, schema, {"Thing": THING}) is is_json


NODE = {
    "type": "object",
    "properties": {
        "Name": {"type": "string"},
        "Below": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
    },
}
TITLES = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize(
    ("schema", "lists"),
    [
        ({"properties": {"Title": TITLES}}, {("", "Title")}),
        ({"properties": {"Title": {"type": ["array", "null"], "items": {}}}}, {("", "Title")}),
        ({"properties": {"Titles": {**TITLES, "xml": {"name": "Title"}}}}, {("", "Titles"), ("", "Title")}),
        ({"properties": {"Titles": {**TITLES, "xml": {"wrapped": True}}}}, {("Titles", "Titles")}),
        (
            {"properties": {"T": {"items": {"allOf": [{}, {"xml": {"name": "item"}}]}, "xml": {"name": "Set", "wrapped": True}}}},
            {("Set", "item")},
        ),
        ({"properties": {"T": {"allOf": [{"$ref": "#/components/schemas/Titles"}, {"xml": {"wrapped": True}}]}}}, {("T", "T")}),
        ({"$ref": "#/components/schemas/Node"}, {("", "Below")}),
        ({"allOf": [{"$ref": "#/components/schemas/Node"}, {"properties": {"Title": TITLES}}]}, {("", "Below"), ("", "Title")}),
        ({"properties": {"Title": {"type": "string", "items": {}}}}, set()),
        ({"properties": {"Title": {"$ref": "#/components/schemas/Nowhere"}}}, set()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [XML, "text/xml; charset=utf-8", JSON])
def test_an_xml_answer_knows_its_lists(reader: Reader, kind: str, schema: Any, lists: set[tuple[str, str]]) -> None:
    responses = {"200": {"description": "ok", "content": {kind: {"schema": schema}}}}
    components = {"schemas": {"Node": NODE, "Titles": TITLES}}
    (response,) = reader.operation(responses=responses, components=components).responses
    assert set(response.lists) == (set() if kind == JSON else lists)
