"""References that apply schemas to the same value in a circle lose what closes it; all others stay."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcpfactory_codegen.openapi.shared_schemas import break_cycles

NAMES = [f"s{number}" for number in range(6)]
REFERENCES = st.lists(st.sampled_from(NAMES), max_size=2).map(
    lambda names: [{"$ref": f"#/$defs/{name}"} for name in names]
)
SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "allOf": REFERENCES,
        "anyOf": REFERENCES,
        "not": st.sampled_from(NAMES).map(lambda name: {"$ref": f"#/$defs/{name}"}),
        "properties": st.dictionaries(st.sampled_from("ab"), REFERENCES.map(lambda all_of: {"allOf": all_of})),
    },
)


def broken(schemas: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    reported: list[str] = []
    schemas = deepcopy(schemas)
    break_cycles(schemas, lambda name: f"{name}_base", reported.append)
    return schemas, reported


def applied(schema: Any) -> set[str]:
    """The schemas that this one applies to the same value by itself."""
    if not isinstance(schema, dict):
        return set()
    own = {schema["$ref"].removeprefix("#/$defs/")} if "$ref" in schema else set()
    parts = [*schema.get("allOf", ()), *schema.get("anyOf", ()), schema.get("not")]
    return own.union(*map(applied, parts))


@given(st.fixed_dictionaries(dict.fromkeys(NAMES, SCHEMAS)))
@settings(max_examples=200, deadline=None)
def test_no_schema_is_applied_to_its_own_value_without_end(schemas: dict[str, Any]) -> None:
    done, _ = broken(schemas)
    for name in done:
        reached: set[str] = set()
        waiting = applied(done[name])
        while waiting:
            reached |= waiting
            waiting = set().union(*(applied(done[one]) for one in waiting)) - reached
        assert name not in reached


def test_inheritance_that_is_written_twice_gets_a_base() -> None:
    pet = {"type": "object", "oneOf": [{"$ref": "#/$defs/cat"}]}
    done, reported = broken({"pet": pet, "cat": {"allOf": [{"$ref": "#/$defs/pet"}]}})
    assert done == {
        "pet": pet,
        "cat": {"allOf": [{"$ref": "#/$defs/pet_base"}]},
        "pet_base": {"type": "object"},
    }
    assert reported == []


def test_schema_that_another_part_applies_is_applied_once() -> None:
    names = [f"s{number:02}" for number in range(30)]
    every = {one: {"allOf": [{"$ref": f"#/$defs/{name}"} for name in names if name != one]} for one in names}
    done, _ = broken(every)
    assert sorted(len(applied(schema)) for schema in done.values()) == [0] + [1] * 29
