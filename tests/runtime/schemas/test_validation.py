"""Arguments against schemas; `jsonschema` is the oracle for what satisfies a schema."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcpfactory_runtime.schemas.validation import compile_schema
from mcpfactory_runtime.schemas.value_validation import ArgumentError
from tests.runtime.requirements import requirement
from tests.subtest_table import parametrize_subtests

CAT = {"type": "object", "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}, "required": ["kind"]}
DOG = {"type": "object", "properties": {"kind": {"const": "dog"}, "bark": {"type": "boolean"}}, "required": ["kind"]}
NODE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "c": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
}


def schema_of(part: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": part}, "required": ["a"], **more}


def value_for(part: Any, value: Any, **more: Any) -> Any:
    return compile_schema(schema_of(part, **more)).validate({"a": value})["a"]


def problem_with(part: Any, value: Any, **more: Any) -> str:
    with pytest.raises(ArgumentError) as caught:
        compile_schema(schema_of(part, **more)).validate({"a": value})
    return str(caught.value).removeprefix("Invalid arguments: ")


def same(one: Any, other: Any) -> bool:
    """Equal on the wire: 1 is not 1.0 and not true."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@parametrize_subtests(
    "part, value",
    [
        ({"type": "number"}, 5),
        ({"type": "number"}, 5.0),
        ({"type": "number", "multipleOf": 0.01}, 0.07),
        ({"type": "integer"}, 10**30),
        ({"type": "string", "format": "date-time"}, "yesterday"),
        ({"type": "string", "format": "uuid"}, "7"),
        ({"type": "string", "pattern": "^(?=x)"}, "not judged: no look-ahead in that engine"),
        ({"type": ["integer", "string"]}, "5"),
        ({"type": ["string", "null"]}, None),
        ({"type": "string", "nullable": True}, None),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "5"),
        (
            {
                "anyOf": [
                    {"type": "array", "items": {"type": "integer"}},
                    {"type": "array", "items": {"type": "string"}},
                ]
            },
            ["5"],
        ),
        ({"oneOf": [CAT, DOG]}, {"kind": "dog", "bark": True, "more": 1}),
        ({"enum": ["a", 1, None, {"x": 1}]}, {"x": 1}),
        ({"type": "object"}, {"any": [1, {"thing": None}]}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"x": 1}),
        ({"type": "object", "additionalProperties": False, "patternProperties": {"^x": {}}}, {"x1": 1}),
        (
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": {"type": "boolean"}},
            [1, "x", True],
        ),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}, [1]),
        ({"allOf": [CAT, {"required": ["lives"]}]}, {"kind": "cat", "lives": 9}),
        ({"minLength": 3}, 7),
        ({"type": "array", "uniqueItems": True}, [1, True, "1", [1], {"a": 1}]),
        ({"properties": {"x": {"type": "string"}}}, [1]),
        ({"type": "invented"}, object.__name__),
        ({"not": {"pattern": "^(?=x)"}}, "x: whether it looks ahead to it is not judged"),
        ({"if": {"pattern": "^(?=x)"}, "then": False}, "x"),
        ({"oneOf": [{"pattern": "^(?=x)"}, {"type": "string"}]}, "y"),
        ({"type": "array", "contains": {"pattern": "^(?=x)"}, "maxContains": 0}, ["y"]),
        ({"enum": ["1", "2"], "type": "integer"}, "2"),
        (True, {"x": 1}),
    ],
)
def test_what_fits_or_cannot_be_judged_arrives_unchanged(part: Any, value: Any) -> None:
    assert same(value_for(part, value), value)


@parametrize_subtests(
    "part, value, expected",
    [
        ({"type": "integer"}, "5", 5),
        ({"type": "integer"}, 5.0, 5),
        ({"type": "number"}, "5", 5),
        ({"type": "number"}, "-1.5e3", -1500.0),
        ({"type": "boolean"}, "True", True),
        ({"type": "string"}, 5, "5"),
        ({"type": "array", "items": {"type": "integer"}}, '["1", 2]', [1, 2]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": ["integer", "null"]}, "5", 5),
        ({"enum": [1, 2]}, "2", 2),
        ({"enum": ["1", "2"]}, 2, "2"),
        ({"anyOf": [CAT, DOG]}, {"kind": "dog", "bark": "true"}, {"kind": "dog", "bark": True}),
        ({"$ref": "#/$defs/Node"}, {"c": [{"v": "2"}]}, {"c": [{"v": 2}]}),
    ],
)
def test_harmless_mistakes_are_mended(part: Any, value: Any, expected: Any) -> None:
    assert same(value_for(part, value, **{"$defs": {"Node": NODE}}), expected)


@parametrize_subtests(
    "part, value, told",
    [
        ({"type": "integer"}, "ten", 'a must be an integer, not "ten".'),
        ({"type": "integer"}, 5.5, "a must be an integer, not 5.5."),
        ({"type": "integer"}, True, "a must be an integer, not true."),
        ({"type": "number"}, "1e999", 'a must be a number, not "1e999".'),
        ({"type": "integer", "minimum": 1}, "0", 'a must be at least 1, not "0".'),
        ({"type": "number", "exclusiveMaximum": 1}, 1, "a must be less than 1, not 1."),
        ({"type": "integer", "multipleOf": 5}, 7, "a must be a multiple of 5, not 7."),
        ({"type": "boolean"}, "yes", 'a must be true or false, not "yes".'),
        ({"type": "string"}, 5.5, "a must be a string, not 5.5."),
        ({"type": "string"}, None, "a must be a string, not null."),
        ({"type": "string", "minLength": 2}, "x", 'a must have at least 2 characters, not "x".'),
        ({"type": "string", "pattern": "^a+$"}, "b", 'a must match the pattern ^a+$, not "b".'),
        ({"type": "array", "maxItems": 1}, [1, 2], "a must have at most 1 items, not an array of 2."),
        ({"type": "array"}, "x", 'a must be an array, not "x".'),
        ({"type": "object", "minProperties": 1}, {}, "a needs at least 1 property, not an object."),
        ({"enum": ["asc", "desc"]}, "up", 'a must be one of "asc", "desc", not "up".'),
        ({"const": 1}, True, "a must be 1, not true."),
        ({"type": ["integer", "boolean"]}, "x", 'a must be an integer or true or false, not "x".'),
        ({"oneOf": [CAT, DOG]}, {"kind": "dog", "bark": "loud"}, 'a.bark must be true or false, not "loud".'),
        (
            {"oneOf": [CAT, DOG]},
            {"kind": "fish"},
            'a fits none of its 2 forms: kind must be "cat"; or kind must be "dog".',
        ),
        ({"oneOf": [CAT, {"type": "string"}]}, 5.5, "a must be an object or a string, not 5.5."),
        ({"type": "array", "items": CAT}, [{"kind": "cat"}, {}], "a[1].kind is required."),
        ({"$ref": "#/$defs/Node"}, {"c": [{"c": [{"v": "x"}]}]}, 'a.c[0].c[0].v must be an integer, not "x".'),
        (
            {"type": "array", "prefixItems": [{"type": "integer"}], "items": False},
            [1, 2],
            "a[1] is not allowed here, not 2.",
        ),
        (False, 1, "a is not allowed here, not 1."),
        (
            {"oneOf": [CAT, {"required": ["kind"]}]},
            {"kind": "cat"},
            "a must match exactly one of the 2 permitted forms, but matches several, not an object.",
        ),
        ({"not": {"const": 1}}, 1, "a must not match the schema in `not`, not 1."),
        ({"if": CAT, "then": {"required": ["lives"]}}, {"kind": "cat"}, "a.lives is required."),
        ({"if": CAT, "else": {"required": ["bark"]}}, {}, "a.bark is required."),
        ({"dependentRequired": {"x": ["y"]}}, {"x": 1}, "a needs y together with x, not an object."),
        ({"dependentSchemas": {"x": {"required": ["y"]}}}, {"x": 1}, "a.y is required."),
        (
            {"type": "array", "contains": {"type": "string"}, "minContains": 2},
            ["x", 1],
            "a must contain at least 2 items that match the schema in `contains`, not an array of 2.",
        ),
        (
            {"type": "array", "uniqueItems": True},
            [{"x": 1}, {"x": 1.0}],
            "a must not have duplicate items, not an array of 2.",
        ),
        ({"propertyNames": {"enum": ["de"]}}, {"xx": 1}, 'the name a.xx must be "de", not "xx".'),
        (
            {"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False},
            {"x1": "y"},
            'a.x1 must be an integer, not "y".',
        ),
        (
            {"patternProperties": {"^x": {}}, "additionalProperties": False},
            {"y": 1},
            "a.y is not a known argument.",
        ),
        ({"enum": ["a", 1], "type": "string"}, 2, 'a must be "a", not 2.'),
    ],
)
def test_a_problem_names_the_argument_what_was_wrong_and_what_is_allowed(part: Any, value: Any, told: str) -> None:
    assert problem_with(part, value, **{"$defs": {"Node": NODE}}) == told


def test_every_problem_is_told_at_once_up_to_a_limit() -> None:
    schema = {"properties": {name: {"type": "integer"} for name in "abcdefghijk"}, "required": list("abcdefghijk")}
    with pytest.raises(ArgumentError) as caught:
        compile_schema(schema).validate({})
    assert str(caught.value).endswith("h is required; and 3 more.")
    assert len(caught.value.problems) == 11


def test_a_misspelt_argument_is_recognised() -> None:
    schema = {"properties": {"limit": {}, "offset": {}}, "additionalProperties": False}
    with pytest.raises(ArgumentError, match=r"limt is not a known argument; did you mean limit\?$"):
        compile_schema(schema).validate({"limt": 1})
    with pytest.raises(ArgumentError, match=r"zzz is not a known argument \(arguments: limit, offset\)\.$"):
        compile_schema(schema).validate({"zzz": 1})


def test_null_for_an_optional_argument_that_may_not_be_null_is_left_out() -> None:
    schema = {
        "properties": {
            "plain": {"type": "integer"},
            "nullable": {"type": ["integer", "null"]},
            "open": {},
            "reference": {"$ref": "#/$defs/R"},
            "choice": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "$defs": {"R": {"enum": ["a"]}},
    }
    given_ = dict.fromkeys(["plain", "nullable", "open", "reference", "choice", "unknown"])
    assert compile_schema(schema).validate(given_) == dict.fromkeys(["nullable", "open", "choice", "unknown"])
    assert given_.keys() == {"plain", "nullable", "open", "reference", "choice", "unknown"}


def test_pointers_reach_any_part_of_the_schema() -> None:
    schema = {
        "properties": {
            "a": {"$ref": "#/$defs/x~1y%20z/properties/p"},
            "b": {"$ref": "#/properties/a"},
            "c": {"$ref": "#"},
        },
        "$defs": {"x/y z": {"properties": {"p": {"type": "boolean"}}}},
    }
    validator = compile_schema(schema)
    assert validator.validate({"a": "true", "b": "false", "c": {"a": True}}) == {
        "a": True,
        "b": False,
        "c": {"a": True},
    }
    with pytest.raises(ArgumentError, match=r"c\.c\.a must be true or false"):
        validator.validate({"c": {"c": {"a": 1}}})


@requirement("json-schema.bounds")
def test_deep_values_and_deep_schemas_end_in_an_answer() -> None:
    deep: Any = {}
    part: Any = {"type": "string"}
    for _ in range(2000):
        deep, part = {"c": [deep]}, {"type": "array", "items": part}
    assert problem_with({"$ref": "#/$defs/Node"}, deep, **{"$defs": {"Node": NODE}}).endswith("is nested too deeply.")
    assert value_for(part, [[[]]]) == [[[]]]


LOOKS_AHEAD = {"pattern": "^(?=x)"}


@requirement("tools.validate")
@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"patternProperties": {"^x": {}}, "required": ["x1"], "additionalProperties": False}, {"x1": 1}),
        (
            {"patternProperties": {"^x": {}}, "required": ["x1"], "additionalProperties": {"type": "integer"}},
            {"x1": "s"},
        ),
        ({"additionalProperties": {"type": "integer"}, "required": ["x"]}, {"x": "s"}),
        ({"not": {"additionalProperties": {"type": "integer"}, "required": ["x"]}}, {"x": "s"}),
        ({"not": {"additionalProperties": False, "required": ["x"]}}, {"x": 1}),
        ({"oneOf": [{"type": "integer", "enum": ["1", "2"]}, {"type": "string"}]}, "1"),
        ({"not": {"type": "string", "enum": ["a"], "maxLength": 0}}, "a"),
        ({"not": {"properties": {"default": LOOKS_AHEAD}, "required": ["default"]}}, {"default": "y"}),
        ({"not": {"prefixItems": [{"type": "integer"}] * 17}}, ["s"] * 17),
        ({"oneOf": [{"type": "integer"}, {"type": "integer", "minimum": 5}]}, 3.0),
        ({"uniqueItems": True}, [2**61, float(2**61)]),
        ({"uniqueItems": True}, [2**61, 2**61 + 1, 1, True]),
    ],
)
def test_keywords_that_depend_on_each_other_judge_as_json_schema_does(part: Any, value: Any) -> None:
    schema = schema_of(part)
    try:
        compile_schema(schema).validate({"a": value})
    except ArgumentError:
        assert not jsonschema.Draft202012Validator(schema).is_valid({"a": value})
    else:
        assert jsonschema.Draft202012Validator(schema).is_valid({"a": value})


@requirement("json-schema.bounds")
def test_choices_inside_each_other_are_tried_once_each() -> None:
    choice = {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"n": {"$ref": "#/$defs/C"}}}]}
    inline: Any = {"type": "string"}
    value: Any = "x"
    for _ in range(24):
        inline = {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"n": inline}}]}
        value = {"n": value}
    assert value_for({"$ref": "#/$defs/C"}, value, **{"$defs": {"C": choice}}) == value
    assert value_for(inline, value) == value


@requirement("json-schema.bounds")
def test_items_are_compared_in_linear_time_and_to_any_depth() -> None:
    compared = 0

    class Counted(int):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return int(self) == other

        __hash__ = int.__hash__

    same_hash = [Counted(number * (2**61 - 1)) for number in range(1, 200)]
    assert value_for({"type": "array", "uniqueItems": True}, same_hash) == same_hash
    assert compared <= 2 * len(same_hash)  # the comparison of this test itself
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    told = problem_with({"type": "array", "uniqueItems": True}, [deep])
    assert told == "they are nested too deeply."


SCALARS = st.sampled_from([None, True, False, 0, 1, -3, 2.5, "", "a", "abc", "5", "true"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=6,
)
LEAVES = st.sampled_from(
    [
        {},
        {"type": "string", "maxLength": 2},
        {"type": "integer", "minimum": 0},
        {"type": "number", "multipleOf": 0.5},
        {"type": "boolean"},
        {"type": "null"},
        {"type": ["integer", "null"]},
        {"enum": ["a", 1, None]},
        {"const": True},
        {"minItems": 1, "minLength": 1},
        {"type": "array", "uniqueItems": True},
        {"type": ["string", "boolean"], "enum": ["a", "abc", 1, True], "maxLength": 2},
        {"type": "object", "required": ["z"]},
        {"type": "object", "propertyNames": {"enum": ["x", "y"]}},
        {"dependentRequired": {"x": ["y"]}},
        {"$ref": "#/$defs/R"},
    ]
)
CONTRADICTORY = st.sampled_from(
    [
        {"type": "integer", "enum": ["a", "5"]},
        {"type": "string", "const": "abc", "maxLength": 2},
        {"required": ["x"], "additionalProperties": False},
        {"type": "object", "patternProperties": {"^z": {}}, "required": ["x", "z"], "additionalProperties": False},
        {"type": "string", "pattern": "^(?=a)"},
    ]
)
"""Slips of documents, which fit nothing or name what cannot be judged; what they say is not demanded."""


def composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(lambda items: {"type": "array", "items": items, "maxItems": 2}, inner),
        st.builds(lambda first, rest: {"type": "array", "prefixItems": [first], "items": rest}, inner, inner),
        st.builds(
            lambda x, needed, rest: {
                "type": "object",
                "properties": {"x": x},
                "required": ["x"] if rest is False else needed,
                "additionalProperties": rest,
            },
            inner,
            st.lists(st.sampled_from("xyz"), unique=True, max_size=2),
            inner | st.booleans(),
        ),
        st.builds(lambda one, other: {"anyOf": [one, other]}, inner, inner),
        st.builds(lambda one, other: {"allOf": [one, other]}, inner, inner),
        st.builds(lambda one, other: {"oneOf": [one, other]}, inner, inner),
        st.builds(lambda one, beside: {**beside, "not": one}, inner, inner),
        st.builds(lambda one, two, three: {"if": one, "then": two, "else": three}, inner, inner, inner),
        st.builds(lambda one, most: {"type": "array", "contains": one, "maxContains": most}, inner, st.integers(1, 2)),
        st.builds(
            lambda x, other, needed, rest: {
                "properties": {"x": x},
                "patternProperties": {"^[xy]": other},
                "required": needed,
                "additionalProperties": rest,
            },
            inner,
            inner,
            st.lists(st.sampled_from("xy"), unique=True, max_size=1),
            inner | st.booleans(),
        ),
        st.builds(lambda one: {"dependentSchemas": {"x": one}}, inner),
        st.builds(lambda x: {"properties": {"x": x}, "minProperties": 1}, inner),
    )


SCHEMAS = st.recursive(LEAVES, composed, max_leaves=5)
RECURSIVE = {"R": {"type": "object", "properties": {"y": {"$ref": "#/$defs/R"}, "z": {"type": "string"}}}}


@requirement("json-schema.default-dialect", "tools.validate")
@settings(max_examples=400, deadline=None)
@given(SCHEMAS, VALUES)
@example({"allOf": [{"type": "string", "maxLength": 2}, {"type": "integer", "minimum": 0}]}, 0)
def test_it_agrees_with_json_schema_but_for_what_it_mends(part: Any, value: Any) -> None:
    schema = schema_of(part, **{"$defs": RECURSIVE})
    oracle = jsonschema.Draft202012Validator(schema)
    try:
        result = compile_schema(schema).validate({"a": value})
    except ArgumentError:
        assert not oracle.is_valid({"a": value})
        return
    assert oracle.is_valid(result)
    if oracle.is_valid({"a": value}):
        assert same(result["a"], value)


@requirement("tools.validate")
@settings(max_examples=200, deadline=None)
@given(st.recursive(LEAVES | CONTRADICTORY, composed, max_leaves=5), VALUES)
def test_it_refuses_nothing_that_json_schema_accepts_even_beside_slips(part: Any, value: Any) -> None:
    schema = schema_of(part, **{"$defs": RECURSIVE})
    if jsonschema.Draft202012Validator(schema).is_valid({"a": value}):
        assert same(compile_schema(schema).validate({"a": value})["a"], value)
