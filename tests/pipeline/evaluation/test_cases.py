"""Cases are read strictly: what is not meant is no case that passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.workspace.evaluation_case import read_evaluation_cases
from tests.subtest_table import parametrize_subtests

GOOD = """\
cases:
  - name: stock
    question: How many are on ${site}?
    right:
      - - {tool: get_stock, arguments: {at: "${site}/stock", most: 3}, says: ["4"], free: [most]}
  - name: weather
    question: Will it rain?
    right: []
"""


def written(folder: Path, text: str, name: str = "cases.yaml") -> Path:
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals" / name).write_text(text)
    return folder


def test_cases_come_in_the_order_of_files_and_lines(tmp_path):
    written(tmp_path, GOOD)
    written(tmp_path, "cases: [{name: more, question: And?, right: []}]", "more.yml")
    assert [case.name for case in read_evaluation_cases(tmp_path)] == ["stock", "weather", "more"]
    assert read_evaluation_cases(tmp_path / "nowhere") == ()


def test_values_replace_their_names_everywhere_and_others_stay(tmp_path):
    case = read_evaluation_cases(written(tmp_path, GOOD))[0]
    filled = case.filled({"site": "http://a.test"})
    assert filled.question == "How many are on http://a.test?"
    assert filled.right[0][0].arguments == {"at": "http://a.test/stock", "most": 3}
    assert case.filled({}) == case


@parametrize_subtests(
    "text, said",
    [
        ("cases: [{name: a, question: q}]", "case 1.right: Field required"),
        ("cases: [{name: a, question: q, right: [[]]}]", "case 1.right.1"),
        ("cases: [{name: a, question: q, right: [[{arguments: {}}]]}]", "case 1.right.1.1.tool: Field required"),
        ("cases: [{name: a, question: q, right: [], wrong: 1}]", "case 1.wrong"),
        ("cases: [{name: A b, question: q, right: []}]", "case 1.name"),
        ("cases: [{name: a, question: '', right: []}]", "case 1.question"),
        ("cases: [{name: a, question: q, right: []}, {name: a, question: r, right: []}]", "the name 'a'"),
        ("cases: {}", "Input should be a valid list"),
        ("tests: []", "must contain a list of cases"),
        ("cases: [", "cannot be read"),
    ],
)
def test_a_slip_is_an_error_that_names_its_place(tmp_path, text, said):
    with pytest.raises(ConfigError) as caught:
        read_evaluation_cases(written(tmp_path, text))
    assert said in str(caught.value)
    assert "cases.yaml" in str(caught.value)
