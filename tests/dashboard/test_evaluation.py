"""The page of a server's evaluation shows the matrix and what did not pass, as the recorded reports say it."""

from __future__ import annotations

from datetime import date

from starlette.testclient import TestClient

from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.evaluation import evaluated_page
from mcpfactory_pipeline.dashboard.reader import WorkspaceReader
from mcpfactory_pipeline.evaluation.attempt import NO_TOOL, Attempt, MadeCall, Setting, ToolChoice, WrongArgument
from mcpfactory_pipeline.evaluation.model_report import ModelReport
from mcpfactory_pipeline.evaluation.recorded import report_file, write_report
from tests.dashboard.conftest import Bench

SETTING = Setting()
EVIL = "<script>alert(1)</script>"


def report(server: str) -> ModelReport:
    right, taken, none = ToolChoice("find", "find"), ToolChoice("find", "list"), ToolChoice("find", NO_TOOL)
    wrong = (WrongArgument("find", "to.city", "missing", '"Faro"'),)
    attempts = [
        Attempt("tea", SETTING, 1, "passed", (), (right,)),
        Attempt(
            "tea",
            SETTING,
            2,
            "wrong-tool",
            (f"find was expected, {EVIL}",),
            (taken,),
            (),
            (MadeCall("list", {}, 1),),
            EVIL,
        ),
        Attempt("milk", SETTING, 1, "wrong-arguments", ("find: to.city is missing",), (right,), wrong),
        Attempt("milk", SETTING, 2, "no-call", (), (none,)),
    ]
    questions = {"tea": f"Is there tea? {EVIL}", "milk": "Milk?"}
    return ModelReport(
        server, "openai:x", "http://here/v1", date(2026, 11, 1), "t", "c", 2, questions, {SETTING: (4, 900)}, attempts
    )


def test_the_matrix_the_arguments_and_the_failures_are_shown_and_nothing_of_a_model_is_markup(library: Bench) -> None:
    client = TestClient(create_app(library.root), base_url="http://127.0.0.1:8765")
    name = "atlas"
    assert "No model was asked" in client.get(f"/servers/{name}/evaluation/").text
    folder = library.root / "servers" / name
    write_report(folder, report(name))
    page = client.get(f"/servers/{name}/evaluation/")
    assert page.status_code == 200
    assert EVIL not in page.text
    assert "&lt;script&gt;" in page.text
    data = client.get(f"/servers/{name}/evaluation/", headers={"Accept": "application/json"}).json()
    (model,) = data["models"]
    (one,) = model["settings"]
    assert one["choices"] == [{"expected": "find", "right": 2, "others": ["(none) × 1", "list × 1"]}]
    assert one["wrong"] == [{"tool": "find", "field": "to.city", "kind": "missing", "times": 1}]
    assert [(case["case"], case["passed"], case["asked"]) for case in one["cases"]] == [("tea", 1, 2), ("milk", 0, 2)]
    assert [failure["verdict"] for failure in one["failures"]] == ["wrong-tool", "wrong-arguments", "no-call"]
    assert one["failures"][0]["calls"] == ["list"]
    assert (one["rate"], one["questions"]) == (25.0, 2)
    assert 'evaluation/">Evaluation</a>' in client.get(f"/servers/{name}/").text
    report_file(folder, "openai:x").write_text("{}")
    broken = client.get(f"/servers/{name}/evaluation/")
    assert (broken.status_code, "is no report of an evaluation" in broken.text) == (200, True)
    assert str(library.root) not in broken.text
    assert client.get("/servers/none/evaluation/").status_code == 404


def test_what_a_report_means_for_the_newest_candidate_stands_beside_it(library: Bench) -> None:
    detail = WorkspaceReader(library.root).server("atlas")
    for known, words in (
        ({"lower": 0.5}, "counts for the newest candidate with 50%"),
        (
            {"why": "its report is of another tool list"},
            "does not count for the newest candidate: its report is of another",
        ),
    ):
        state = {
            "candidate": "abc",
            "candidates": {"abc": {"checks": {"evaluate": {"summary": {"models": {"openai:x": known}}}}}},
        }
        page = evaluated_page(type(detail)(detail.facts, state=state), [report("atlas")])
        assert page.models[0].gate.startswith(words)
    assert evaluated_page(detail, [report("atlas")]).models[0].gate == ""
