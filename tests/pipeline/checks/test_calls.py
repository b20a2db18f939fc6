"""Which tools of a server that is not ours are called, and with what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcpfactory_pipeline.checks.call_plan import plan_calls, read_example_calls
from mcpfactory_pipeline.checks.exchange import ValidationTargetError
from tests.subtest_table import parametrize_subtests

WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}


def tool(**annotations: bool) -> tuple[str, dict[str, Any]]:
    return "look_up", {"name": "look_up", "inputSchema": WORD, "annotations": annotations}


def planned(*tools: tuple[str, Any], **options: Any) -> list[tuple[str, Any]]:
    return [(one.origin, one.arguments) for one in plan_calls(tools, None, **options)[0]]


def test_a_tool_that_nothing_marks_as_harmless_is_called_only_when_that_is_allowed() -> None:
    assert planned(tool()) == []
    assert planned(tool(), allow_calls=True) == [("guess", {"word": "value"})]


def test_a_tool_that_is_marked_as_destructive_is_not_called_even_then() -> None:
    assert planned(tool(destructiveHint=True), allow_calls=True) == []


def test_a_case_is_called_as_it_was_given_instead_of_a_guess() -> None:
    examples = [{"tool": "look_up", "arguments": {"word": "owl"}}, {"tool": "other", "arguments": {}}]
    assert planned(tool(readOnlyHint=True), examples=examples) == [("case", {"word": "owl"})]


@parametrize_subtests("text", ["{", '{"a": 1}', "[1]", '[{"tool": 1}]', '[{"tool": "a", "arguments": []}]', '"text"'])
def test_a_file_that_holds_no_cases_is_told_as_such(text: str, tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_text(text)
    with pytest.raises(ValidationTargetError, match="is not a valid file of cases"):
        read_example_calls(file)
