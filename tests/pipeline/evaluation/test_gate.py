"""The gate on a model's pass rate: only a report of this very tool list and these very questions opens it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.channels.contract import FILE, contract_to_text
from mcpfactory_pipeline.checks.evaluation.case_quality import distort_tool_list
from mcpfactory_pipeline.checks.evaluation.evaluation_reports import report_file, write_model_report
from mcpfactory_pipeline.checks.evaluation.judgment import Attempt, ModelRunSetting
from mcpfactory_pipeline.checks.evaluation.model_report import ModelReport, hash_cases, hash_shown_tools
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.plan.gates import closed_gates
from mcpfactory_pipeline.plan.stage import Artifact, StageInputs
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.stages.evaluate import run
from mcpfactory_pipeline.state.state import Candidate
from mcpfactory_pipeline.workspace.evaluation_case import read_evaluation_cases
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace
from tests.subtest_table import parametrize_subtests

MODEL = "openai:x"
TOOLS = [
    {"name": name, "description": f"{name} of the shop", "inputSchema": {"type": "object"}}
    for name in ("find", "buy", "stock")
]
CASES = "cases:\n" + "".join(f"  - {{name: q{number}, question: 'Q {number}?', right: []}}\n" for number in range(20))


@pytest.fixture
def inputs(tmp_path) -> StageInputs:
    """A server with twenty questions, and a candidate whose tool list `validate` kept."""
    folder, candidate = tmp_path / "shop", tmp_path / "artifacts/shop/abc"
    (folder / "evals").mkdir(parents=True)
    (folder / "evals/cases.yaml").write_text(CASES)
    (candidate / "validate").mkdir(parents=True)
    (candidate / "validate" / FILE).write_text(contract_to_text(TOOLS, "1.0"))
    built = Artifact("abc", "1.0", candidate, {})
    settings = {"models": [MODEL], "mode": "full"}
    paths = {"root": tmp_path, "work": tmp_path, "artifacts": tmp_path, "keep": tmp_path}
    return StageInputs("shop", "shop", folder, candidate=built, settings=settings, **paths)


def recorded(inputs: StageInputs, passed: int = 20, **changes) -> ModelReport:
    cases, setting = read_evaluation_cases(inputs.folder), ModelRunSetting()
    attempts = [
        Attempt(case.name, setting, 1, "passed" if number < passed else "wrong-tool", turns=1)
        for number, case in enumerate(cases)
    ]
    made = ModelReport(
        "shop", MODEL, "", date(2026, 1, 1), hash_shown_tools(TOOLS), hash_cases(cases), 1,
        {case.name: case.question for case in cases}, {setting: (3, 99)}, attempts,
    )  # fmt: skip
    made = replace(made, **changes)
    write_model_report(inputs.folder, made)
    return made


def closed(inputs: StageInputs, limit: float = 0.8) -> str:
    outputs = run(inputs)
    assert outputs.outcome == "passed", outputs.message
    candidate = Candidate("1.0", 1, {}, checks={"evaluate": {"outcome": "passed", "summary": dict(outputs.summary)}})
    return closed_gates({"min_pass_rate": limit}, candidate).get("min_pass_rate", "")


def test_the_lower_bound_of_a_report_of_this_list_opens_the_gate(inputs):
    recorded(inputs)
    assert closed(inputs) == ""
    recorded(inputs, passed=19)
    assert "is 0.76 with openai:x, at least 0.8 wanted" in closed(inputs), "19 of 20 is 95 %, and may be 76 %"
    assert closed(inputs, 0.7) == ""


def test_shuffled_descriptions_close_it_and_the_old_ones_open_it_again(inputs):
    recorded(inputs)
    kept = inputs.candidate.folder / "validate" / FILE
    before = kept.read_text()
    kept.write_text(contract_to_text(distort_tool_list(TOOLS, "shuffled")[0], "1.0"))
    assert "its report is about another tool list" in closed(inputs)
    kept.write_text(before)
    assert closed(inputs) == ""


def test_other_questions_close_it(inputs):
    recorded(inputs)
    (inputs.folder / "evals/more.yaml").write_text("cases: [{name: more, question: And?, right: []}]")
    assert "its report is about other cases" in closed(inputs)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"server": "other"}, "its report is about other and openai:x"),
        ({"lists": {ModelRunSetting(mode="search"): (3, 99)}}, "does not include full, full"),
        ({"repeat": 2}, "20 questions have no answer"),
        ({"attempts": ()}, "20 questions have no answer"),
    ],
)
def test_a_report_of_something_else_or_of_half_of_it_opens_nothing(inputs, changes, words):
    recorded(inputs, **changes)
    assert words in closed(inputs, 0.0)
    assert "nothing is known, and gates stay closed" in run(inputs).message


def test_a_report_of_another_endpoint_than_the_workspace_names_counts_for_nothing(inputs):
    inputs = replace(inputs, settings={**inputs.settings, "endpoints": {MODEL: "http://127.0.0.1:9/v1"}})
    recorded(inputs, endpoint="http://127.0.0.1:8/v1")
    assert "its report is about another endpoint than the workspace names" in closed(inputs, 0.0)
    recorded(inputs, endpoint="http://127.0.0.1:9/v1")
    assert closed(inputs) == ""


def test_what_the_file_says_of_itself_does_not_count(inputs):
    recorded(inputs, passed=5)
    file = report_file(inputs.folder, MODEL)
    data = json.loads(file.read_text())
    data["figures"][0]["rate"] = {"rate": 1, "lower": 1, "upper": 1, "questions": 20}
    file.write_text(json.dumps(data))
    assert "with openai:x, at least 0.8 wanted" in closed(inputs)


def test_without_a_report_it_is_closed_and_one_that_cannot_be_read_is_a_failure(inputs):
    assert "openai:x: no report is recorded" in closed(inputs, 0.0)
    recorded(inputs)
    report_file(inputs.folder, MODEL).write_text("{}")
    outputs = run(inputs)
    assert (outputs.outcome, "is not a valid evaluation report" in outputs.message) == ("failed", True)


GATED = '[[pipeline.channels]]\nname = "staging"\ngates = { min_pass_rate = %s }\n'


def test_the_stage_is_there_where_models_count_and_another_model_makes_it_due(tmp_path):
    space = apply_setup(plan_workspace_setup(tmp_path), git=False)
    assert "evaluate" not in [stage.name for stage in workspace_stages(space)]
    plain = (space.root / CONFIG).read_text()
    found = []
    for model in ("openai:x", "anthropic:y"):
        (space.root / CONFIG).write_text(f'{plain}\n[pipeline.evaluation]\nmodels = ["{model}"]\n{GATED % 0.8}')
        stages = {stage.name: stage for stage in workspace_stages(Workspace.find(space.root))}
        assert "evaluate" in stages["staging"].needs
        found.append(stages["evaluate"])
    assert found[0].settings == {"models": ["openai:x"], "mode": "full"}
    (space.root / CONFIG).write_text(
        f'{plain}\n[pipeline.evaluation]\nmodels = ["openai:x"]\n[pipeline.evaluation.endpoints."openai:x"]\nurl = "http://127.0.0.1:9/v1"\n{GATED % 0.8}'
    )
    named = {stage.name: stage for stage in workspace_stages(Workspace.find(space.root))}["evaluate"]
    assert named.settings["endpoints"] == {"openai:x": "http://127.0.0.1:9/v1"}
    assert found[0].stamp != found[1].stamp


@parametrize_subtests(
    "text, words",
    [
        (GATED % 0.8, "channel staging has the gate min_pass_rate, but pipeline.evaluation has no models"),
        (GATED % 80, "gates.min_pass_rate: 80 is not valid"),
        ('[pipeline.evaluation]\nmodels = "openai:x"\n', "models: must be a list of strings"),
        ('[pipeline.evaluation]\nmodels = ["gpt"]\n', 'models[1]: "gpt" is not valid'),
        ('[pipeline.evaluation]\nmode = "fast"\n', 'mode: "fast" is not valid'),
        ("[pipeline.evaluation]\nmodel = 1\n", "unknown field 'model'"),
        ('[pipeline.evaluation.endpoints."openai:x"]\nprice = 1\n', "unknown field 'price'"),
        (
            '[pipeline.evaluation.endpoints."openai:x"]\nread = 1\n',
            "the price written is missing",
        ),
    ],
)
def test_a_slip_in_the_settings_is_an_error(tmp_path, text, words):
    space = apply_setup(plan_workspace_setup(tmp_path), git=False)
    with (space.root / CONFIG).open("a") as file:
        file.write(f"\n{text}")
    with pytest.raises(ConfigError) as caught:
        workspace_stages(Workspace.find(space.root))
    assert words in str(caught.value)
