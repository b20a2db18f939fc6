"""Schemas that lead back to themselves, and schemas that multiply: each in a process of its own, so that one that hangs is red."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Final

import pytest

from tests.runtime.requirements import requirement
from tests.timeouts import TIMEOUT

REFUSED: Final = "refused"
PROGRAM: Final = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
from mcpfactory_runtime.schemas.validation import ArgumentError, compile_schema
schema, arguments = json.load(sys.stdin)
validator = compile_schema(schema)
accepted = validator.accepts(arguments)
try:
    print(json.dumps(validator.validate(arguments)))
    assert accepted
except ArgumentError as error:
    print(json.dumps(str(error)))
    assert not accepted
"""


def refer(name: object) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def validated(schema: dict[str, Any], arguments: dict[str, Any]) -> Any:
    command = [sys.executable, "-c", PROGRAM]
    given = json.dumps([schema, arguments])
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True, timeout=TIMEOUT)
    return json.loads(done.stdout)


STRINGS: Final = {"type": "string"}
CIRCLES: Final[dict[str, tuple[dict[str, Any], Any, Any]]] = {
    "two that are each other": (
        {"properties": {"x": refer("A")}, "$defs": {"A": refer("B"), "B": refer("A")}}, "a", "a"
    ),
    "one that is itself": ({"properties": {"x": refer("A")}, "$defs": {"A": refer("A")}}, "a", "a"),
    "itself or a text": (
        {"properties": {"x": refer("A")}, "$defs": {"A": {"anyOf": [refer("A"), STRINGS]}}}, "a", "a"
    ),
    "the root or a constant": (
        {"oneOf": [{"$ref": "#"}, {"const": STRINGS}], "additionalProperties": STRINGS}, 1, "1"
    ),
    "the root twice": (
        {"allOf": [{"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}], "additionalProperties": STRINGS}, 1, "1"
    ),
    "two in and beside each other": (
        {
            "allOf": [refer("A")],
            "additionalProperties": STRINGS,
            "$defs": {
                "A": {"properties": {"y": refer("B")}, "anyOf": [refer("B"), {"minProperties": 2}]},
                "B": {"allOf": [refer("A"), refer("B")]},
            },
        },
        1,
        "1",
    ),
}  # fmt: skip


@requirement("json-schema.bounds")
@pytest.mark.parametrize("name", CIRCLES)
def test_a_schema_that_leads_back_to_itself_for_the_same_value_ends_in_an_answer(name: str) -> None:
    schema, value, expected = CIRCLES[name]
    assert validated(schema, {"x": value}) == {"x": expected}


def chain(link: Any, length: int = 30) -> dict[str, Any]:
    """Definitions of which each refers to the next as `link` says, down to a text."""
    definitions = {f"S{n}": link(refer(f"S{n + 1}")) for n in range(length)}
    return {"properties": {"x": refer("S0")}, "$defs": {**definitions, f"S{length}": STRINGS}}


def nested(depth: int, value: Any = 5) -> Any:
    for _ in range(depth):
        value = {"y": value}
    return value


def listed(depth: int) -> Any:
    value: Any = "a"
    for _ in range(depth):
        value = [value]
    return value


DOUBLING: Final[dict[str, tuple[Any, Any]]] = {
    "either of two": (lambda to: {"anyOf": [to, to]}, [5]),
    "either, or both": (lambda to: {"anyOf": [to, {"allOf": [to, STRINGS]}]}, [5]),
    "both of two": (lambda to: {"allOf": [to, to]}, "a"),
    "inside the value": (lambda to: {"oneOf": [{"properties": {"y": to}, "type": "object"}] * 2}, nested(30)),
    "as the condition and what follows": (lambda to: {"if": to, "then": to}, "a"),
    "by name and by pattern": (lambda to: {"properties": {"y": to}, "patternProperties": {"^y": to}}, nested(30, "a")),
    "each item and one of them": (lambda to: {"type": "array", "items": to, "contains": to}, listed(30)),
}


@requirement("json-schema.bounds")
@pytest.mark.parametrize("name", DOUBLING)
def test_thirty_schemas_that_refer_to_the_next_twice_end_in_a_refusal_that_says_so(name: str) -> None:
    link, value = DOUBLING[name]
    assert "too many combinations" in validated(chain(link), {"x": value})


@requirement("json-schema.bounds")
def test_thirty_schemas_that_each_apply_all_later_ones_need_little_memory() -> None:
    every = {f"S{n}": {"allOf": [STRINGS, *(refer(f"S{later}") for later in range(n + 1, 30))]} for n in range(30)}
    for start, outcome in ((0, "too many combinations"), (25, "a")):
        schema = {"properties": {"x": refer(f"S{start}")}, "$defs": every}
        assert outcome in str(validated(schema, {"x": "a"}))


@requirement("json-schema.bounds")
def test_a_long_list_of_values_with_alternatives_is_not_too_much() -> None:
    item = {"anyOf": [{"type": "integer"}, {"type": "array", "items": refer("Item")}]}
    schema = {"properties": {"x": refer("Item")}, "$defs": {"Item": item}}
    given = {"x": [[1] * 100] * 300}
    assert validated(schema, given) == given
