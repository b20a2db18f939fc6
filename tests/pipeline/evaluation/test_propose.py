"""Proposals are no cases: they come from what is there, are not asked, and can be moved over as they stand."""

from __future__ import annotations

import pytest
import yaml

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.checks.evaluation.case_quality import example_arguments_by_tool, proposals_text, propose_cases
from mcpfactory_pipeline.checks.evaluation.evaluation_reports import PROPOSALS
from mcpfactory_pipeline.checks.evaluation.judgment import Attempt, MadeCall, ModelRunSetting
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase, read_evaluation_cases

TOOLS = [
    {"name": "find_tea", "description": "Find tea.\nAll kinds.", "inputSchema": {}},
    {"name": "buy_tea", "description": "Buy: tea # now", "inputSchema": {}},
    {"name": "tea_party", "title": "A party", "inputSchema": {}},
]
CASES = [
    EvaluationCase.model_validate({"name": "tea", "question": "Tea?", "right": [[{"tool": "find_tea"}]]}),
    EvaluationCase.model_validate({"name": "buy-tea", "question": "And?", "right": []}),
]
EXAMPLES = example_arguments_by_tool(
    {
        "cases": [
            {"tool": "buy_tea", "arguments": {"kind": "green", "most": 3}, "variants": [
                {"title": "required arguments only", "arguments": {"kind": "green"}}
            ]},
            {"tool": "tea_party", "arguments": {"guests": 2}},
        ]
    }
)  # fmt: skip


def attempt(verdict: str, *calls: MadeCall, words: str = "own") -> Attempt:
    return Attempt("tea", ModelRunSetting(words=words), 1, verdict, calls=calls)


def test_each_tool_without_a_case_is_proposed_in_the_documents_words_with_the_arguments_of_its_example():
    found = propose_cases(TOOLS, CASES, examples=EXAMPLES, workflows=["tea_party"])
    assert [(one.name, one.question, one.origin) for one in found] == [
        ("buy-tea-2", "Buy: tea # now", "what buy_tea says of itself"),
        ("tea-party", "A party", "the declared workflow tea_party"),
    ]
    assert found[0].right == [{"tool": "buy_tea", "arguments": {"kind": "green"}}]
    assert found[1].right == [{"tool": "tea_party", "arguments": {"guests": 2}}]
    assert "without the document's words" in found[0].doubt


def test_the_file_is_not_asked_and_its_entries_are_cases_once_they_are_moved(tmp_path):
    text = proposals_text(propose_cases(TOOLS, CASES, examples=EXAMPLES))
    file = tmp_path / PROPOSALS
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert read_evaluation_cases(tmp_path) == ()
    (tmp_path / "evals/copied.yaml").write_text(text)
    with pytest.raises(ConfigError, match="must contain a list of cases"):
        read_evaluation_cases(tmp_path)
    (tmp_path / "evals/copied.yaml").write_text(text.replace("proposals:", "cases:"))
    assert [case.name for case in read_evaluation_cases(tmp_path)] == ["buy-tea-2", "tea-party"]
    assert yaml.safe_load(proposals_text([])) == {"proposals": []}
