"""Every server of the README's table is staged, was asked questions, and gives a reason for what it leaves out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from benchmarks.codebase.servers import server_names, table_rows

ROOT = Path(__file__).resolve().parents[2]
ROWS = table_rows((ROOT / "README.md").read_text("utf-8"))
FEWEST = 5  # conversations as evaluation cases


def test_every_server_that_is_no_example_has_its_row():
    assert sorted(ROWS) == server_names()


@pytest.mark.parametrize("name", server_names())
def test_what_is_left_out_of_an_api_has_its_reason_in_the_readme_of_the_server(name):
    page = (ROOT / "servers" / name / "README.md").read_text("utf-8")
    operations = ROWS[name][2]
    whole = re.match(r"(\d+) of \1 operations", operations) or operations.startswith("no API")
    assert whole or re.search(r"left out", page, re.IGNORECASE), "say what is left out, and why"


@pytest.mark.parametrize("name", server_names())
def test_every_server_is_asked_five_questions_or_more_in_both_modes_and_each_right_way_is_right(name):
    cases = yaml.safe_load((ROOT / "servers" / name / "evals/cases.yaml").read_text("utf-8"))["cases"]
    report = (ROOT / "servers" / name / "evals/report.md").read_text("utf-8")
    answered = [case["name"] for case in cases if case["right"]]
    assert len(answered) >= FEWEST
    rows = dict(re.findall(r"^\| ([a-z0-9-]+) \| .* \| ([a-z ]+) \|$", report, re.MULTILINE))
    assert {name: rows.get(name) for name in answered} == dict.fromkeys(answered, "right")
    searching = (ROOT / "servers" / name / "api").exists()
    assert ("| search |" in report) is searching


def test_every_server_is_staged():
    for name in server_names():
        state = json.loads((ROOT / "pipeline/state" / f"{name}.json").read_text("utf-8"))
        assert state["stages"]["staging"]["outcome"] == "passed", name
