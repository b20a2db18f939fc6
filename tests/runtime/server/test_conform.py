"""What a generated tool answers keeps to its output schema, whatever the API says."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mcpfactory_runtime.server.generated.manifest import make_result_converter
from mcpfactory_runtime.server.results import Text, ToolResult
from tests.subtest_table import parametrize_subtests

NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([1.0, 1.5, 1e300, "", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
KINDS = st.sampled_from(["string", "number", "integer", "boolean", "null", "object", "array"])


def _plain(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": KINDS | st.lists(KINDS, min_size=1, max_size=3, unique=True)},
        optional={
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "items": inner,
            "additionalProperties": inner | st.just(False),
        },
    )


SCHEMAS = st.recursive(
    st.just({}) | st.builds(dict, type=KINDS) | st.builds(dict, enum=st.lists(VALUES, min_size=1, max_size=3)),
    _plain,
    max_leaves=8,
)


def answer(value: Any) -> ToolResult:
    return ToolResult([Text(json.dumps(value))], structured=value)


@given(SCHEMAS, VALUES)
def test_structured_content_satisfies_what_was_listed_or_the_result_is_an_error(schema: Any, value: Any) -> None:
    listed = {"type": "object", "properties": {"result": schema}}
    check = Draft202012Validator(listed)
    result = make_result_converter(listed)(answer({"result": value}))
    assert json.loads(result["content"][0]["text"]) == {"result": value}
    if check.is_valid({"result": value}):
        assert result == answer({"result": value}).to_dict()
    elif result.get("isError"):
        assert "structuredContent" not in result
    else:
        assert check.is_valid(result["structuredContent"])


LISTED = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": "string"},
        "ready": {"type": ["boolean", "null"]},
        "tags": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    },
}


@parametrize_subtests(
    "value, structured, missing",
    [
        ({"id": 1, "more": True}, {"id": 1, "more": True}, ""),
        ({"id": "one", "name": "x"}, {"name": "x"}, "id"),
        ({"id": "1", "name": "1", "ready": "true"}, {"id": 1, "name": "1", "ready": True}, ""),  # as XML says it
        ({"id": "1.5", "ready": "yes"}, {}, "id, ready"),
        ({"id": 1, "name": None}, {"id": 1}, ""),
        ({"tags": [{"n": 1}, {"n": "x"}, 5]}, {"tags": [{"n": 1}, {}]}, "tags[].n, tags[]"),
        ([1], {}, "everything"),
    ],
)
def test_what_differs_is_left_out_of_the_structured_content_and_named(
    value: Any, structured: Any, missing: str
) -> None:
    result = make_result_converter(LISTED)(answer(value))
    assert result["structuredContent"] == structured
    assert not result.get("isError")
    notes = [block["text"] for block in result["content"][1:]]
    assert notes == (
        [f"Note: the API's response does not match its document: {missing} is not in the structured content."]
        if missing
        else []
    )


def test_a_required_member_that_is_missing_is_an_error_that_says_the_call_was_made() -> None:
    result = make_result_converter({**LISTED, "required": ["id"]})(answer({"id": "one"}))
    assert result["isError"]
    assert "structuredContent" not in result
    assert "id is missing. The call itself was carried out" in result["content"][-1]["text"]


def test_an_answer_without_structure_is_the_empty_object() -> None:
    assert make_result_converter(LISTED)(ToolResult("204 No Content, empty body."))["structuredContent"] == {}
    assert "structuredContent" not in make_result_converter(LISTED)(ToolResult("no", is_error=True))
