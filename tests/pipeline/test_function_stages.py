"""Stages that a workspace adds as Python functions."""

from __future__ import annotations

import pytest

from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.manifest import recorded_artifacts
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.fake_stages import BUILD, add_server


@pytest.fixture
def executor():
    return None  # processes, as they are usually run


STAGE = """
from house_rules.words import WORDS
from mcpfactory_pipeline import StageInputs, StageOutputs

def size(inputs: StageInputs) -> StageOutputs:
    count = len(inputs.candidate.wheel.read_bytes())
    inputs.keep.mkdir(parents=True, exist_ok=True)
    (inputs.keep / "size.txt").write_text(str(count))
    print("looked at", inputs.server)
    passed = count <= inputs.settings["most"]
    return StageOutputs("passed" if passed else "failed", f"{count} {WORDS}", {"bytes": count})
"""


class Rules:
    """A workspace with one server and a package of its own that judges it."""

    def __init__(self, workspace) -> None:
        self.root = workspace.root
        self.folder = add_server(self.root, "books")
        (self.root / "house_rules").mkdir()
        (self.root / "house_rules" / "words.py").write_text('WORDS = "bytes"\n')
        self.write(STAGE)
        self.configure('entry = "house_rules.wheels:size"\nsettings = { most = 3 }\n')

    def write(self, text: str) -> None:
        (self.root / "house_rules" / "wheels.py").write_text(text)

    def configure(self, text: str) -> None:
        head = '[workspace]\nname = "space"\n[pipeline]\nattempts = 1\n[[pipeline.stages]]\nname = "size"\n'
        (self.root / "mcpfactory.toml").write_text(head + text)
        self.space = Workspace.find(self.root)

    @property
    def stage(self):
        return next(stage for stage in workspace_stages(self.space) if stage.name == "size")

    def run(self):
        """How the stage ended."""
        run_pipeline(self.space, stages=(BUILD, self.stage))
        return Store(self.space).state("books").stages["size"]


@pytest.fixture
def rules(workspace):
    return Rules(workspace)


def test_a_function_of_the_workspace_judges_a_server_with_its_settings_and_keeps_its_report(rules):
    record = rules.run()
    assert (record.outcome, record.message, record.summary) == ("passed", "3 bytes", {"bytes": 3})
    kept = recorded_artifacts(record, rules.space.artifacts / "books" / "manifests")
    assert f"{record.candidate}/size/size.txt" in kept
    assert "looked at books" in (rules.space.artifacts / "books" / "logs" / "size.log").read_text()
    (rules.folder / "source.txt").write_text("four")
    assert rules.run().outcome == "failed"


def test_a_change_in_its_package_or_its_settings_makes_it_stale(rules):
    stamps = [rules.stage.stamp]
    (rules.root / "house_rules" / "words.py").write_text('WORDS = "octets"\n')
    stamps.append(rules.stage.stamp)
    rules.configure('entry = "house_rules.wheels:size"\nsettings = { most = 4 }\n')
    stamps.append(rules.stage.stamp)
    assert len(set(stamps)) == 3
    assert rules.stage.stamp == stamps[-1]


@pytest.mark.parametrize(
    ("entry", "body", "message"),
    [
        ("house_rules.nowhere:size", STAGE, "no module house_rules.nowhere"),
        ("house_rules.wheels:weight", STAGE, "the module has no weight"),
        ("house_rules.wheels:size", "def size(inputs): return True", "returned bool instead of StageOutputs"),
        ("house_rules.wheels:size", "def size(inputs): raise KeyError('moon')", "KeyError: 'moon'"),
        (
            "house_rules.wheels:size",
            "from mcpfactory_pipeline.plan.stage import *\ndef size(inputs): return StageOutputs('fine', '')",
            "returned the unknown outcome 'fine'",
        ),
        (
            "house_rules.wheels:size",
            "from mcpfactory_pipeline.plan.stage import *\ndef size(inputs): return StageOutputs('passed', '', channel='production')",
            "must not build or promote a candidate",
        ),
        (
            "house_rules.wheels:size",
            "from mcpfactory_pipeline.plan.stage import *\ndef size(inputs): return StageOutputs('passed', '', {'a': {1}})",
            "the returned summary is not valid JSON",
        ),
    ],
)
def test_what_no_stage_may_do_is_broken_machinery_with_words(rules, entry, body, message):
    rules.write(body)
    rules.configure(f'entry = "{entry}"\nsettings = {{ most = 3 }}\n')
    record = rules.run()
    assert (record.outcome, message in record.message) == ("errored", True), record.message
