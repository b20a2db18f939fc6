"""OpenAPI's schemas in the words of JSON Schema 2020-12."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from mcpfactory_codegen.openapi import read_api
from mcpfactory_runtime.schemas.sample import sample
from tests.codegen.reading.support import FRONT, Reader, checked, codes, problem
from tests.subtest_table import parametrize_subtests

CONVERSIONS: list[tuple[str, str, Any, Any]] = [
    ("nullable adds null to the type", "3.0", {"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    ("nullable adds null to the values", "3.0", {"type": "string", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
    ("nullable around a choice", "3.0", {"nullable": True, "anyOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    ("nullable around allOf of one", "3.0", {"nullable": True, "description": "d", "allOf": [{"type": "object"}]}, {"description": "d", "anyOf": [{"type": "object"}, {"type": "null"}]}),
    ("nullable around oneOf keeps it exclusive", "3.0", {"nullable": True, "oneOf": [{"type": "string"}]}, {"anyOf": [{"oneOf": [{"type": "string"}]}, {"type": "null"}]}),
    ("nullable without a type says nothing", "3.0", {"nullable": True, "properties": {}}, {"properties": {}}),
    ("x-nullable is understood", "3.0", {"type": "integer", "x-nullable": True}, {"type": ["integer", "null"]}),
    ("exclusiveMinimum true takes over the minimum", "3.0", {"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
    ("exclusiveMaximum false is dropped", "3.0", {"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
    ("exclusiveMinimum without a minimum is dropped", "3.0", {"exclusiveMinimum": True}, {}),
    ("numeric exclusiveMinimum stays", "3.1", {"exclusiveMinimum": 1}, {"exclusiveMinimum": 1}),
    ("example becomes examples", "3.0", {"type": "string", "example": "a"}, {"type": "string", "examples": ["a"]}),
    ("examples by name become a list", "3.0", {"examples": {"one": {"value": 1}}}, {"examples": [1]}),
    ("OpenAPI's own keywords go", "3.0", {"type": "string", "xml": {}, "externalDocs": {}, "x-y": 1}, {"type": "string"}),
    ("identifiers go, for they would move references", "3.1", {"$id": "https://a.test/x", "$anchor": "a", "type": "string"}, {"type": "string"}),
    ("a list of types stays", "3.1", {"type": ["string", "null"]}, {"type": ["string", "null"]}),
    ("a tuple becomes prefixItems", "3.0", {"items": [{"type": "string"}], "additionalItems": False}, {"prefixItems": [{"type": "string"}], "items": False}),
    ("dependencies become dependentRequired", "3.1", {"dependencies": {"a": ["b"]}}, {"dependentRequired": {"a": ["b"]}}),
    ("format and content keywords stay", "3.1", {"type": "string", "format": "uuid", "contentEncoding": "base64"}, {"type": "string", "format": "uuid", "contentEncoding": "base64"}),
    ("boolean schemas stay", "3.1", {"additionalProperties": False, "not": True}, {"additionalProperties": False, "not": True}),
    ("all the rest of 2020-12 stays", "3.1", {"if": {"type": "string"}, "then": {"minLength": 1}, "contains": {}, "minContains": 0}, {"if": {"type": "string"}, "then": {"minLength": 1}, "contains": {}, "minContains": 0}),
    ("numbers as text are read", "3.0", {"minLength": "3", "maximum": "1.5"}, {"minLength": 3, "maximum": 1.5}),
    ("named groups lose their names", "3.1", {"pattern": "^(?<year>[0-9]+)$"}, {"pattern": "^([0-9]+)$"}),
    ("a JavaScript literal loses its slashes", "3.1", {"pattern": "/^a$/"}, {"pattern": "^a$"}),
    ("a property may be called like a keyword", "3.1", {"properties": {"$ref": {"type": "string"}, "enum": {"type": "string"}}}, {"properties": {"$ref": {"type": "string"}, "enum": {"type": "string"}}}),
    ("data is not looked into", "3.1", {"default": {"$ref": "nowhere"}, "enum": [{"$ref": "#/x"}], "const": {"type": 5}}, {"default": {"$ref": "nowhere"}, "enum": [{"$ref": "#/x"}], "const": {"type": 5}}),
]  # fmt: skip


@parametrize_subtests("version, written, meant", [row[1:] for row in CONVERSIONS])
def test_a_schema_is_translated(reader: Reader, version: str, written: Any, meant: Any) -> None:
    assert reader.schema(written, version) == meant


MENDED: list[tuple[str, Any, Any]] = [
    ("schema-type", {"type": "int"}, {"type": "integer"}),
    ("schema-type", {"type": "datetime"}, {"type": "string", "format": "date-time"}),
    ("schema-type", {"type": "wibble"}, {}),
    ("schema-type", {"type": ["string", {"a": 1}]}, {}),
    ("schema-enum", {"type": "string", "enum": [1, True]}, {"type": "string", "enum": ["1", "true"]}),
    ("schema-enum", {"type": "integer", "enum": ["1", "2"]}, {"type": "integer", "enum": [1, 2]}),
    ("schema-enum", {"type": "string", "enum": ["a", None]}, {"type": ["string", "null"], "enum": ["a", None]}),
    ("schema-enum", {"enum": []}, {}),
    ("schema-enum", {"type": "array", "items": {"type": "string"}, "enum": ["EU", "HK"]}, {"type": "array", "items": {"type": "string", "enum": ["EU", "HK"]}}),
    ("schema-bounds", {"type": "string", "minLength": 10**9}, {"type": "string"}),
    ("schema-bounds", {"minItems": 2_000_000, "maxItems": 3_000_000}, {"maxItems": 3_000_000}),
    ("schema-bounds", {"minLength": 5, "maxLength": 3}, {}),
    ("schema-bounds", {"minimum": 1.5, "maximum": 1}, {}),
    ("schema-keyword", {"minimum": 10**400, "maximum": 3}, {"maximum": 3}),
    ("schema-keyword", {"multipleOf": float("inf")}, {}),
    ("schema-keyword", {"maxLength": float("nan")}, {}),
    ("schema-pattern", {"pattern": "^a{1000000000}$"}, {}),
    ("schema-keyword", {"enum": "a"}, {}),
    ("schema-keyword", {"required": True}, {}),
    ("schema-keyword", {"minLength": -1}, {}),
    ("schema-keyword", {"multipleOf": 0}, {}),
    ("schema-keyword", {"properties": ["a"]}, {}),
    ("schema-keyword", {"allOf": {"type": "string"}}, {}),
    ("schema-keyword", {"description": ["a"]}, {}),
    ("schema-pattern", {"pattern": "(["}, {}),
    ("schema-pattern", {"pattern": r"^\p{L}+$"}, {}),
    ("schema-unknown-keyword", {"minLenght": 1}, {}),
    ("schema-invalid", {"items": 5}, {"items": {}}),
    ("schema-invalid", {"properties": {"a": "strange"}}, {"properties": {"a": {}}}),
    ("schema-invalid", {"properties": {"a": "string"}}, {"properties": {"a": {"type": "string"}}}),
    ("schema-default", {"type": "integer", "default": "ten"}, {"type": "integer"}),
    ("schema-default", {"type": "number", "default": "1e999"}, {"type": "number"}),
    ("schema-default", {"type": "integer", "default": "10"}, {"type": "integer", "default": 10}),
]  # fmt: skip


@parametrize_subtests("code, written, meant", MENDED)
def test_what_is_invalid_is_dropped_or_mended_and_said(reader: Reader, code: str, written: Any, meant: Any) -> None:
    api = reader.parts(paths={"/a": {"get": {"parameters": [{"name": "p", "in": "query", "schema": written}]}}})
    assert api.operations[0].parameters[0].schema == meant
    assert problem(api, code).pointer.startswith("/paths/~1a/get/parameters/0/schema/")


_A: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
_B: dict[str, Any] = {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}
_SHUT: dict[str, Any] = {"additionalProperties": False}
_TO_B: dict[str, Any] = {"$ref": "#/components/schemas/B"}
CLOSED: list[tuple[str, str, Any, Any, int]] = [
    ("beside allOf", "3.0", {**_A, **_SHUT, "allOf": [_TO_B]}, _B, 1),
    ("beside oneOf", "3.0", {**_A, **_SHUT, "oneOf": [_TO_B, {"properties": {"c": {}}, "required": ["c"]}]}, _B, 1),
    ("beside anyOf", "3.1", {**_A, **_SHUT, "anyOf": [_TO_B]}, _B, 1),
    ("a branch", "3.0", {"allOf": [_TO_B, _A]}, {**_B, **_SHUT}, 1),
    ("a branch of a branch", "3.0", {"allOf": [{"allOf": [{**_A, **_SHUT}]}, _TO_B]}, _B, 1),
    ("all, and twice", "3.0", {"allOf": [{**_A, **_SHUT}, _TO_B, _TO_B], **_SHUT}, {**_B, **_SHUT}, 3),
]  # fmt: skip


@parametrize_subtests("version, written, b, told", [row[1:] for row in CLOSED])
def test_an_object_closed_beside_its_parts_has_values(
    reader: Reader, version: str, written: Any, b: Any, told: int
) -> None:
    content = {"content": {"application/json": {"schema": {"type": "array", "items": written}}}}
    alone = {"content": {"application/json": {"schema": _TO_B}}}
    paths = {"/0": {"post": {"requestBody": alone}}, "/a": {"post": {"requestBody": content}}}
    api = reader.parts(version, paths=paths, components={"schemas": {"B": b}})
    body = api.operations[1].body
    assert body is not None
    value = sample(body.schema, api.root)
    assert isinstance(value, list)
    validator = jsonschema.Draft202012Validator({"allOf": [body.schema], "$defs": api.schemas})
    assert [error.message for error in validator.iter_errors(value)] == []
    assert validator.is_valid([{"a": 1, "b": "x"}])
    assert codes(api).count("schema-closed-object") == told


@pytest.mark.parametrize(
    "kept",
    [
        {**_A, **_SHUT, "anyOf": [{"required": ["a"]}]},
        {**_A, **_SHUT, "allOf": [{"properties": {"a": {"minimum": 1}}}]},
        {"oneOf": [{**_A, **_SHUT}, {**_B, **_SHUT}]},
    ],
)
def test_an_object_that_is_closed_around_all_its_parts_stays_closed(reader: Reader, kept: Any) -> None:
    assert reader.schema(kept, "3.0") == kept


def test_read_only_properties_are_not_asked_for_and_write_only_ones_not_promised(reader: Reader) -> None:
    item = {
        "type": "object",
        "required": ["id", "name", "secret"],
        "properties": {
            "id": {"type": "integer", "readOnly": True},
            "name": {"type": "string"},
            "secret": {"type": "string", "writeOnly": True},
        },
    }
    nested = {"type": "array", "items": {"$ref": "#/components/schemas/Item"}}
    assert reader.schema(nested, schemas={"Item": item})["items"]["required"] == ["name", "secret"]
    assert list(reader.schema(nested, schemas={"Item": item})["items"]["properties"]) == ["name", "secret"]
    assert list(reader.schema(nested, schemas={"Item": item}, response=True)["items"]["properties"]) == ["id", "name"]


def test_a_shared_schema_has_two_forms_only_where_they_differ(reader: Reader) -> None:
    def media(name: str) -> dict[str, Any]:
        return {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}}

    schemas = {
        "Plain": {"type": "object", "properties": {"a": {"type": "string"}}},
        "Held": {"type": "object", "properties": {"id": {"readOnly": True}}},
        "Holder": {"type": "object", "properties": {"held": {"$ref": "#/components/schemas/Held"}, "plain": {"$ref": "#/components/schemas/Plain"}}},
        "Around": {"type": "object", "properties": {"holder": {"$ref": "#/components/schemas/Holder"}, "again": {"$ref": "#/components/schemas/Around"}}},
    }  # fmt: skip
    post = {"requestBody": media("Around"), "responses": {"200": {"description": "", **media("Around")}}}
    api = reader.parts(paths={"/a": {"post": post}}, components={"schemas": schemas})
    assert list(api.schemas) == [
        "Around",
        "Around_request",
        "Held",
        "Held_request",
        "Holder",
        "Holder_request",
        "Plain",
    ]


def test_a_description_beside_a_reference_counts_in_every_version(reader: Reader) -> None:
    written = {"$ref": "#/components/schemas/A", "description": "here"}
    for version in ("3.0", "3.1"):
        assert reader.schema(written, version, schemas={"A": {"type": "string"}}) == {
            "→": {"type": "string"},
            "description": "here",
        }


def test_constraints_beside_a_reference_count_from_3_1_on(reader: Reader) -> None:
    written = {"schema": {"$ref": "#/components/schemas/A", "maxLength": 5}}
    components = {"schemas": {"A": {"type": "string"}}}
    paths = {"/a": {"get": {"parameters": [{"name": "p", "in": "query", **written}]}}}
    new = reader.parts("3.1", paths=paths, components=components)
    assert new.operations[0].parameters[0].schema == {"$ref": "#/$defs/A", "maxLength": 5}
    null = {"$ref": "#/components/schemas/A", "type": ["string", "null"]}
    assert reader.schema(null, "3.1", schemas={"A": {"type": "string"}})["anyOf"][1] == {"type": "null"}
    old = reader.parts("3.0", paths=paths, components=components)
    assert old.operations[0].parameters[0].schema == {"$ref": "#/$defs/A"}
    assert codes(old) == ["reference-siblings"]


def test_branches_of_a_choice_say_their_discriminator(reader: Reader) -> None:
    def pet(**kind: Any) -> dict[str, Any]:
        return {"type": "object", "properties": {"kind": {"type": "string", **kind}}}

    schemas = {"Cat": pet(), "Dog": pet(), "Cow": pet(const="cow")}
    choice = {
        "oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in schemas],
        "discriminator": {"propertyName": "kind", "mapping": {"meow": "Cat", "purr": "#/components/schemas/Cat"}},
    }
    cat, dog, cow = reader.schema(choice, schemas=schemas)["oneOf"]
    assert cat["allOf"][1] == {"properties": {"kind": {"enum": ["meow", "purr"]}}, "required": ["kind"]}
    assert dog["allOf"][1]["properties"] == {"kind": {"enum": ["Dog"]}}
    assert cow == pet(const="cow")


def test_inheritance_written_twice_stays_finite_and_complete(reader: Reader) -> None:
    """Pet is one of its children, and each child is a Pet: a validator that follows both never ends."""
    schemas = {
        "Pet": {
            "type": "object",
            "required": ["kind"],
            "properties": {"kind": {"type": "string"}},
            "oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}],
            "discriminator": {"propertyName": "kind"},
        },
        "Cat": {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"properties": {"lives": {"type": "integer"}}}]},
        "Dog": {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"properties": {"bark": {"type": "boolean"}}}]},
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}
    api = reader.parts(paths={"/a": {"post": {"requestBody": body}}}, components={"schemas": schemas})
    assert api.operations[0].body is not None
    validator = jsonschema.Draft202012Validator({"$ref": "#/$defs/Pet", "$defs": api.schemas})
    assert validator.is_valid({"kind": "Cat", "lives": 9})
    assert not validator.is_valid({"kind": "Cat", "lives": "nine"})
    assert not validator.is_valid({"kind": "Cow"})
    assert "Pet_base" in api.schemas
    assert codes(api) == []


@pytest.mark.parametrize("mapping", [{}, {"mapping": {"Cat": "Cat"}}])
def test_a_parent_admits_itself_and_the_members_of_its_subtypes(reader: Reader, mapping: dict[str, Any]) -> None:
    kind = {"propertyName": "kind", **mapping}
    pet = {"required": ["kind"], "properties": {"kind": {"type": "string"}}, "discriminator": kind}
    named = {"Cat": ("Pet", "lives"), "Lion": ("Cat", "mane"), "Dog": ("Pet", "bark")}
    schemas = {"Pet": pet} | {
        name: {"allOf": [{"$ref": f"#/components/schemas/{parent}"}, {"properties": {own: {"type": "integer"}}}]}
        for name, (parent, own) in named.items()
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}
    api = reader.parts(paths={"/a": {"post": {"requestBody": body}}}, components={"schemas": schemas})
    validator = jsonschema.Draft202012Validator({"$ref": "#/$defs/Pet", "$defs": api.schemas})
    for name, own in (("Pet", "any"), *((name, own) for name, (_, own) in named.items())):
        assert validator.is_valid({"kind": name, own: 1})
        assert validator.is_valid({"kind": name, own: "text"}) == (name == "Pet")
    assert not validator.is_valid({"kind": "Lion", "lives": "nine"})
    assert codes(api) == []


def test_a_schema_that_is_only_itself_accepts_anything(reader: Reader) -> None:
    api = reader.parts(
        paths={
            "/a": {"get": {"parameters": [{"name": "p", "in": "query", "schema": {"$ref": "#/components/schemas/A"}}]}}
        },
        components={
            "schemas": {
                "A": {"allOf": [{"$ref": "#/components/schemas/B"}]},
                "B": {"not": {"$ref": "#/components/schemas/A"}},
            }
        },
    )
    jsonschema.Draft202012Validator({"$ref": "#/$defs/A", "$defs": api.schemas}).validate(5)
    assert codes(api) == ["schema-cycle"]


def test_a_hash_alone_means_the_schema_it_stands_in(reader: Reader) -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$recursiveRef": "#"}}}
    found = reader.schema({"$ref": "#/components/schemas/Tree"}, schemas={"Tree": tree})
    assert found["properties"]["left"]["properties"]["right"]["type"] == "object"


def test_definitions_of_a_pasted_schema_are_found(reader: Reader) -> None:
    pasted = {"$defs": {"Id": {"type": "integer"}}, "properties": {"id": {"$ref": "#/$defs/Id"}}}
    assert reader.schema({"$ref": "#/components/schemas/A"}, schemas={"A": pasted}) == {
        "properties": {"id": {"type": "integer"}}
    }


def test_anchors_and_identifiers_lead_to_their_schemas(reader: Reader) -> None:
    schemas = {
        "A": {"$anchor": "here", "type": "string"},
        "B": {"$id": "https://schemas.test/b", "type": "integer"},
        "C": {"$dynamicAnchor": "node", "type": "boolean"},
    }
    written = {
        "properties": {"a": {"$ref": "#here"}, "b": {"$ref": "https://schemas.test/b"}, "c": {"$dynamicRef": "#node"}}
    }
    found = reader.schema(written, schemas=schemas)["properties"]
    assert [found[name]["type"] for name in "abc"] == ["string", "integer", "boolean"]


def test_names_do_not_change_when_operations_change_places(reader: Reader) -> None:
    def document(order: list[str]) -> dict[str, Any]:
        paths = {
            f"/{name}": {
                "get": {
                    "parameters": [{"name": "p", "in": "query", "schema": {"$ref": f"#/components/schemas/{name}"}}]
                }
            }
            for name in order
        }
        return FRONT["3.1"] | {"paths": paths, "components": {"schemas": {"a b": {}, "a_b": {}, "c": {}}}}

    first = checked(read_api(reader.load(document(["a b", "a_b", "c"]))))
    second = checked(read_api(reader.load(document(["c", "a_b", "a b"]))))
    by_path = {operation.path: operation.parameters[0].schema for operation in second.operations}
    assert all(by_path[operation.path] == operation.parameters[0].schema for operation in first.operations)
