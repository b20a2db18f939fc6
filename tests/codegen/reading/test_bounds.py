"""Documents that are made to hurt: whatever they say, reading ends soon, uses little, and reports instead of failing."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpfactory_codegen.openapi import read_api
from mcpfactory_codegen.read.document import Document, DocumentFile
from tests.codegen.reading.support import FRONT, Reader, checked, codes
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.timeout(TIMEOUT)  # what is bounded takes well under a second; what is not takes hours


def uses(schema: Any) -> dict[str, Any]:
    return {"/a": {"get": {"parameters": [{"name": "p", "in": "query", "schema": schema}]}}}


def test_references_into_each_other_are_cut_off_at_a_budget(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of many references names another level of one deep schema, so that the deepest parts are reached by all."""
    monkeypatch.setattr("mcpfactory_codegen.openapi.schema_translation._BUDGET", 3_000)
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(90):
        deep = {"items": deep}
    pointers = ["#/components/schemas/Deep" + "/items" * n for n in range(90)]
    written = {"properties": {str(n): {"$ref": pointer} for n, pointer in enumerate(pointers)}}
    api = reader.parts(paths=uses(written), components={"schemas": {"Deep": deep}})
    assert codes(api) == ["schema-budget"]


def test_a_long_chain_of_references_is_followed_and_an_endless_one_refused(reader: Reader) -> None:
    chain = {f"S{n}": {"$ref": f"#/components/schemas/S{n + 1}"} for n in range(5000)} | {"S5000": {"type": "string"}}
    api = reader.parts(paths=uses({"$ref": "#/components/schemas/S0"}), components={"schemas": chain})
    assert list(api.schemas) == ["S5000"]
    endless = {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}
    api = reader.parts(paths=uses({"$ref": "#/components/schemas/A"}), components={"schemas": endless})
    assert codes(api) == ["reference-cycle"]


@pytest.mark.parametrize(
    "reference",
    [
        "#/components/schemas/A/properties/x",
        "#/components/schemas/A/items",
        "#/paths/~1a/get/parameters/0/schema",
        "#/paths/~1a/get/parameters/0/schema/properties",
    ],
)
def test_references_that_pass_through_themselves_end(reader: Reader, reference: str) -> None:
    schemas = {"A": {"$ref": "#/components/schemas/A/properties/x"}}
    api = reader.parts(paths=uses({"$ref": reference}), components={"schemas": schemas})
    assert api.operations[0].parameters[0].schema == {}
    assert codes(api)[0] in {"reference-cycle", "reference-dangling"}


def test_a_schema_written_too_deep_is_cut_off(reader: Reader) -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(150):
        deep = {"items": deep}
    assert codes(reader.parts(paths=uses(deep))) == ["schema-too-deep"]


def test_a_document_without_end_of_operations_is_cut_off(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpfactory_codegen.openapi.MAX_OPERATIONS", 10)
    api = reader.parts(paths={f"/{n}": {"get": {}} for n in range(20)})
    assert len(api.operations) == 10
    assert codes(api) == ["too-many-operations"]


CASES = Path(__file__).parent / "cases"
SEEDS: list[dict[str, Any]] = [
    json.loads((CASES / "orders-3.0" / "openapi.json").read_text()),
    FRONT["3.1"] | {"paths": uses({"$ref": "#/components/schemas/A"}), "components": {"schemas": {"A": {"type": "object", "required": ["a"], "properties": {"a": {"readOnly": True, "enum": [1]}}}}, "securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "k"}}}, "security": [{"k": []}], "tags": [{"name": "t", "description": "d"}]},
    FRONT["3.2"] | {"paths": {"/a/{b}": {"additionalOperations": {"LINK": {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": {"properties": {"f": {"format": "binary"}}}, "encoding": {"f": {"contentType": "a/b"}}}}}, "responses": {"200": {"description": "d", "content": {"application/jsonl": {"itemSchema": {}, "examples": {"a": {"dataValue": 1}}}}}}, "servers": [{"url": "/x", "variables": {}}]}}}}},
    FRONT["2.0"] | {"consumes": ["a/b"], "produces": ["a/b"], "paths": {"/a": {"post": {"parameters": [{"in": "formData", "name": "f", "type": "file"}, {"in": "query", "name": "q", "type": "array", "items": {"type": "string"}, "collectionFormat": "ssv"}], "responses": {"200": {"description": "d", "schema": {"type": "file"}, "examples": {"a/b": 1}}}}, "put": {"schemes": ["ws"], "parameters": [{"in": "body", "name": "b", "schema": {}}]}}}, "securityDefinitions": {"o": {"type": "oauth2", "flow": "implicit", "scopes": {}}}},
]  # fmt: skip
JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 0, -1, 1.5, "", "x", "$ref", "#", "#/", "#/components", "#/components/schemas/A", "#/paths", "a.yaml", "http://x", "{", "{}", "\x00", "☕",
     [], {}, [None], [[]], [{}], {"": ""}, {"$ref": 1}, {"$ref": ""}, {"$ref": "#"}, {"$ref": "#/components/schemas/A"}, {"$ref": "#/paths"}, {"x-a": None},
     {"type": []}, {"type": {}}, {"properties": {"a": None}}, {"allOf": [1]}, {"schema": None}, {"name": "a", "in": "query"}, {"name": [], "in": {}}]
)  # fmt: skip


def spots(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(spot for key, value in children for spot in spots(value, (*path, key)))]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_document_makes_reading_fail(data: st.DataObject) -> None:
    """Any value in any place of a document: problems, yes; exceptions, invalid schemas or lost references, no."""
    document = copy.deepcopy(data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(1, 4))):
        spot = data.draw(
            st.sampled_from([one for one in spots(document) if one and one not in {("openapi",), ("swagger",)}])
        )
        holder = document
        for key in spot[:-1]:
            holder = holder[key]
        holder[spot[-1]] = copy.deepcopy(data.draw(JUNK))
    raw = json.dumps(document).encode()
    checked(
        read_api(
            Document(
                document, raw, "json", "openapi.json", "openapi.json", {"openapi.json": DocumentFile(document, raw)}
            )
        )
    )
