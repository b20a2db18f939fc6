"""What changes of tools mean for callers: the table of `diff`."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_codegen.servers.manifest_diff import Change, diff
from tests.subtest_table import parametrize_subtests

TEXT = {"type": "string"}
NUMBER = {"type": "number"}


def tool(name: str = "get_book", *, handler: str = "books:get_book", **changes: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"id": TEXT}, "required": ["id"], "additionalProperties": False}
    made = {"name": name, "title": "Get", "description": "Gets.", "inputSchema": schema, "handler": handler}
    return {**made, **changes}


def manifest(*tools: dict[str, Any]) -> dict[str, Any]:
    return {"manifest": 1, "server": {}, "tools": list(tools)}


def accepting(schema: Any, *, required: bool = False, **definitions: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {"type": "object", "properties": {"x": schema}, "required": ["x"] if required else []}
    return tool(inputSchema={**whole, **({"$defs": definitions} if definitions else {})})


def answer(**properties: Any) -> dict[str, Any]:
    return {"type": "object", **({"properties": properties} if properties else {})}


def answering(**properties: Any) -> dict[str, Any]:
    return tool(outputSchema=answer(**properties))


def codes(changes: tuple[Change, ...]) -> list[str]:
    return [f"{change.code} {change.argument}".strip() for change in changes]


TOOLS = [
    ("nothing", [tool()], [tool()], []),
    ("removed", [tool(), tool("b", handler="b:b")], [tool()], ["tool-removed"]),
    ("added", [tool()], [tool(), tool("b", handler="b:b")], ["tool-added"]),
    ("renamed, same handler", [tool("a")], [tool("b")], ["tool-renamed"]),
    ("another tool", [tool("a")], [tool("b", handler="b:b")], ["tool-removed", "tool-added"]),
    ("texts", [tool()], [tool(description="Gets one.", title="Get it")], ["text-changed"]),
    ("order", [tool("a"), tool("b", handler="b")], [tool("b", handler="b"), tool("a")], []),
    (
        "no longer read-only",
        [tool(annotations={"readOnlyHint": True})],
        [tool(annotations={"readOnlyHint": False})],
        ["hints-weakened"],
    ),
    ("destructive now", [tool(annotations={"destructiveHint": False})], [tool(annotations={})], ["hints-weakened"]),
    ("read-only now", [tool()], [tool(annotations={"readOnlyHint": True})], ["hints-changed"]),
    ("results described", [tool()], [answering(a=TEXT)], ["output-added"]),
    ("results no longer described", [answering(a=TEXT)], [tool()], ["output-removed"]),
    ("a member of results more", [answering(a=TEXT)], [answering(a=TEXT, b=TEXT)], ["output-added"]),
    ("a member of results less", [answering(a=TEXT, b=TEXT)], [answering(a=TEXT)], ["output-changed"]),
    ("a member of another type", [answering(a={"items": TEXT})], [answering(a={"items": NUMBER})], ["output-changed"]),
    ("results in less depth", [answering(a=answer(b=TEXT))], [answering(a=answer())], ["output-added"]),
]


@parametrize_subtests("old, new, expected", [row[1:] for row in TOOLS])
def test_tools(old: list[dict[str, Any]], new: list[dict[str, Any]], expected: list[str]) -> None:
    assert codes(diff(manifest(*old), manifest(*new))) == expected


REF: dict[str, Any] = {"$ref": "#/$defs/T"}
TREE: dict[str, Any] = {"type": "object", "properties": {"kids": {"type": "array", "items": REF}, "name": TEXT}}
ARGUMENTS = [
    ("the same", TEXT, TEXT, []),
    ("another type", TEXT, {"type": "boolean"}, ["type-changed x"]),
    ("narrower type", NUMBER, {"type": "integer"}, ["type-narrowed x"]),
    ("wider type", {"type": "integer"}, NUMBER, ["type-widened x"]),
    ("null no more", {"type": ["string", "null"]}, TEXT, ["type-narrowed x"]),
    ("any type no more", {}, TEXT, ["type-narrowed x"]),
    ("any type now", TEXT, True, ["type-widened x"]),
    ("order of types", {"type": ["string", "null"]}, {"type": ["null", "string"]}, []),
    ("fewer values", {"enum": ["a", "b"]}, {"enum": ["a"]}, ["enum-narrowed x"]),
    ("more values", {"enum": ["a"]}, {"enum": ["a", "b"]}, ["enum-widened x"]),
    ("other values", {"enum": ["a"]}, {"enum": ["b"]}, ["enum-narrowed x", "enum-widened x"]),
    ("values now", TEXT, {**TEXT, "enum": ["a"]}, ["enum-narrowed x"]),
    ("any value now", {**TEXT, "const": "a"}, TEXT, ["enum-widened x"]),
    ("1 is not true", {"enum": [1]}, {"enum": [True]}, ["enum-narrowed x", "enum-widened x"]),
    ("lower maximum", {**NUMBER, "maximum": 9}, {**NUMBER, "maximum": 5}, ["constraint-narrowed x"]),
    ("higher maximum", {**NUMBER, "maximum": 5}, {**NUMBER, "maximum": 9}, ["constraint-widened x"]),
    ("a minimum now", NUMBER, {**NUMBER, "minimum": 1}, ["constraint-narrowed x"]),
    ("lower minimum", {**NUMBER, "minimum": 1}, {**NUMBER, "minimum": 0}, ["constraint-widened x"]),
    ("longer at least", {**TEXT, "minLength": 1}, {**TEXT, "minLength": 2}, ["constraint-narrowed x"]),
    ("a pattern now", TEXT, {**TEXT, "pattern": "a"}, ["constraint-narrowed x"]),
    ("no pattern now", {**TEXT, "pattern": "a"}, TEXT, ["constraint-widened x"]),
    ("another pattern", {**TEXT, "pattern": "a"}, {**TEXT, "pattern": "b"}, ["constraint-narrowed x"]),
    ("a default now", TEXT, {**TEXT, "default": "a"}, ["default-added x"]),
    ("another default", {**TEXT, "default": "a"}, {**TEXT, "default": "b"}, ["default-changed x"]),
    ("no default now", {**TEXT, "default": "a"}, TEXT, ["default-changed x"]),
    ("its text", TEXT, {**TEXT, "description": "b"}, ["text-changed x"]),
    ("its items", {"type": "array", "items": NUMBER}, {"type": "array", "items": TEXT}, ["type-changed x[]"]),
    ("its member", {"properties": {"y": NUMBER}}, {"properties": {"y": TEXT}}, ["type-changed x.y"]),
    ("a member more", {"properties": {}}, {"properties": {"y": TEXT}}, ["argument-added x.y"]),
    (
        "a needed member more",
        {"properties": {}},
        {"properties": {"y": TEXT}, "required": ["y"]},
        ["argument-added-required x.y"],
    ),
    (
        "a member needed",
        {"properties": {"y": TEXT}},
        {"properties": {"y": TEXT}, "required": ["y"]},
        ["argument-required x.y"],
    ),
    ("a member gone", {"properties": {"y": TEXT}}, {"properties": {}}, ["schema-changed x.y"]),
    (
        "a member gone where others are refused",
        {"properties": {"y": TEXT}, "additionalProperties": False},
        {"additionalProperties": False},
        ["argument-removed x.y"],
    ),
    (
        "others refused now",
        {"type": "object"},
        {"type": "object", "additionalProperties": False},
        ["constraint-narrowed x"],
    ),
    ("a branch more", {"anyOf": [TEXT]}, {"anyOf": [TEXT, NUMBER]}, ["type-widened x"]),
    ("a branch less", {"anyOf": [TEXT, NUMBER]}, {"anyOf": [TEXT]}, ["type-narrowed x"]),
    ("another oneOf", {"oneOf": [TEXT]}, {"oneOf": [TEXT, NUMBER]}, ["schema-changed x"]),
    ("oneOf is anyOf now", {"oneOf": [TEXT, NUMBER]}, {"anyOf": [TEXT, NUMBER]}, ["constraint-widened x"]),
    ("a text in a branch", {"anyOf": [TEXT]}, {"anyOf": [{**TEXT, "title": "b"}]}, []),
    (
        "a branch whose keys stand in another order",
        {"anyOf": [{"type": "object", "additionalProperties": NUMBER}, TEXT]},
        {"anyOf": [{"additionalProperties": NUMBER, "type": "object"}, TEXT]},
        [],
    ),
    ("something that is not compared", {"not": TEXT}, {"not": NUMBER}, ["schema-changed x"]),
]


@parametrize_subtests("old, new, expected", [row[1:] for row in ARGUMENTS])
def test_one_argument(old: Any, new: Any, expected: list[str]) -> None:
    assert codes(diff(manifest(accepting(old)), manifest(accepting(new)))) == expected


def test_arguments_come_and_go() -> None:
    new = {"type": "object", "properties": {"q": TEXT, "need": TEXT}, "required": ["need"]}
    found = diff(manifest(tool()), manifest(tool(inputSchema=new)))
    assert codes(found) == ["argument-removed id", "argument-added-required need", "argument-added q"]
    assert [change.kind for change in found] == ["breaking", "breaking", "additive"]


@pytest.mark.parametrize(
    ("before", "after", "code"), [(False, True, "argument-required"), (True, False, "argument-optional")]
)
def test_an_argument_becomes_required_or_optional(before: bool, after: bool, code: str) -> None:
    old, new = accepting(TEXT, required=before), accepting(TEXT, required=after)
    assert codes(diff(manifest(old), manifest(new))) == [f"{code} x"]


def test_a_definition_is_compared_where_it_is_used_and_a_cycle_ends() -> None:
    grown = {**TREE, "properties": {**TREE["properties"], "name": NUMBER}}
    found = diff(manifest(accepting(REF, T=TREE)), manifest(accepting(REF, T=grown)))
    assert codes(found) == ["type-changed x.name"]


def test_two_tools_that_swap_their_names_are_both_renamed() -> None:
    old = manifest(tool("a", handler="x"), tool("b", handler="y"))
    new = manifest(tool("b", handler="x"), tool("a", handler="y"))
    found = diff(old, new, renamed={"a": "b", "b": "a"})
    assert [(change.code, change.tool) for change in found] == [("tool-renamed", "a"), ("tool-renamed", "b")]
