"""Stages that a workspace adds in its configuration."""

from __future__ import annotations

import pkgutil
import sys

import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.run.run import plan_servers, run_pipeline
from mcpfactory_pipeline.stages import STAGES, workspace_stages
from mcpfactory_pipeline.state.manifest import recorded_artifacts
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.conftest import Recorder
from tests.pipeline.fake_stages import BUILD, SHIP, add_server
from tests.pipeline.inprocess_executor import InProcessExecutor


@pytest.fixture
def executor():
    return None  # processes, as they are usually run


SCRIPT = """
import os, sys
from pathlib import Path
text = Path(os.environ["MCPFACTORY_WHEEL"]).read_text()
Path(os.environ["MCPFACTORY_REPORTS"], "size.txt").write_text(str(len(text)))
print(os.environ["MCPFACTORY_SERVER"], os.environ["MCPFACTORY_CANDIDATE"], Path.cwd())
sys.exit(len(text) > 3)
"""


def configured(workspace, *stages: str) -> Workspace:
    text = "[workspace]\n" + "".join(f"[[pipeline.stages]]\n{stage}\n" for stage in stages)
    (workspace.root / "mcpfactory.toml").write_text(text)
    return Workspace.find(workspace.root)


@pytest.fixture
def small(workspace):
    """A workspace with a stage that lets only small wheels pass, and the cheap stages around it."""
    (workspace.root / "size.py").write_text(SCRIPT)
    space = configured(workspace, f'name = "size"\ncommand = ["{sys.executable}", "size.py"]')
    own = next(stage for stage in workspace_stages(space) if stage.name == "size")
    return space, (
        BUILD,
        own,
        SHIP.__class__(**{**{field: getattr(SHIP, field) for field in SHIP.__slots__}, "needs": ("size",)}),
    )


def test_a_command_of_the_workspace_is_a_stage_and_a_condition_of_promotion(workspace):
    space = configured(workspace, 'name = "licences"\ncommand = ["true"]')
    stages = workspace_stages(space)
    assert [stage.name for stage in stages] == ["generate", "build", "test", "validate", "licences", "staging"]
    assert stages[-1].needs == ("test", "validate", "licences")
    assert stages[4].check
    assert [stage.name for stage in workspace_stages(Workspace.find(workspace.root))][:4] == [s.name for s in STAGES][
        :4
    ]


def test_its_exit_code_judges_and_its_output_and_reports_are_kept(small):
    space, stages = small
    folder = add_server(space.root, "books")
    assert run_pipeline(space, stages=stages).servers == {"books": "passed"}
    state = Store(space).state("books")
    assert state.stages["size"].summary == {"exit": 0}
    kept = recorded_artifacts(state.stages["size"], space.artifacts / "books" / "manifests")
    assert f"{state.candidate}/size/size.txt" in kept
    log = (space.artifacts / "books" / "logs" / "size.log").read_text()
    assert f"books {state.candidate} {space.root}" in log
    (folder / "source.txt").write_text("too long")
    assert run_pipeline(space, stages=stages, executor=InProcessExecutor()).servers == {"books": "failed"}


def test_a_change_of_its_script_makes_it_stale(small):
    space, _ = small
    add_server(space.root, "books")
    stages = workspace_stages(space)
    before = next(stage for stage in stages if stage.name == "size").stamp
    (space.root / "size.py").write_text(SCRIPT + "#")
    after = next(stage for stage in workspace_stages(space) if stage.name == "size").stamp
    assert before != after


def test_a_program_that_is_not_there_is_broken_machinery(workspace):
    space = configured(workspace, 'name = "size"\ncommand = ["no-such-program"]')
    add_server(space.root, "books")
    own = next(stage for stage in workspace_stages(space) if stage.name == "size")
    recorder = Recorder()
    ended = run_pipeline(space, stages=(BUILD, own), executor=InProcessExecutor(), reporter=recorder)
    assert ended.servers == {"books": "errored"}
    assert "no-such-program cannot be started" in Store(space).state("books").stages["size"].message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('command = ["x"]', "stages.1.: name is missing"),
        ('name = "Big Name"\ncommand = ["x"]', 'name: "Big Name" is not valid'),
        ('name = "a"', "'command' is missing"),
        ('name = "a"\ncommand = "x y"', "command: must be a list"),
        ('name = "a"\ncommand = []', "command: .* is not valid"),
        ('name = "a"\ncommand = ["x"]\nreads = ["moon"]', 'reads.1.: "moon" is not valid'),
        ('name = "a"\ncommand = ["x"]\nneeds = ["moon"]', "'needs' contains the unknown stage 'moon'"),
        ('name = "a"\ncommand = ["x"]\nneeds = ["channel:moon"]', "needs 'channel:moon', which is not a channel"),
        ('name = "a"\ncommand = ["x"]\nneeds = ["build"]\nbefore = ["build"]', "in a cycle: build"),
        ('name = "a"\ncommand = ["x"]\nkind = "manual"', 'kind: "manual" is not valid'),
        ('name = "a"\ncommand = ["x"]\non_failure = "cry"', 'on_failure: "cry" is not valid'),
        ('name = "a"\ncommand = ["x"]\nsoak = "1h"', "'soak' can be used only in a stage that runs after a promotion"),
        ('name = "a"\nkind = "approval"\ncommand = ["x"]', "unknown field 'command'"),
        ('name = "a"\nkind = "approval"\napprovals = 0', "approvals: 0 is not valid"),
        ('name = "a"\nkind = "approval"\napprovals = 2\napprovers = ["ada"]', "has only 1 approver$"),
        ('name = "a"\nkind = "approval"\nshows = ["file:../secret"]', "shows.1.: invalid entry 'file:../secret'"),
        ('name = "a"\nkind = "approval"\nshows = ["moon:x"]', "shows.1.: invalid entry 'moon:x'"),
        ('name = "a"\nkind = "approval"\non_rejection = "restart"', 'on_rejection: "restart" is not valid'),
        (
            'name = "a"\nkind = "approval"\non_rejection = "restart:test"',
            "must be an earlier stage, not 'test'",
        ),
        ('name = "a"\ncommand = ["x"]\ntimeout = 0', "timeout: 0 is not valid"),
        ('name = "a"\ncommand = ["x"]\nmemory = "much"', "memory: 'much' is not a valid size"),
        ('name = "a"\ncommand = ["x"]\nmemory = "0MB"', "memory: '0MB' is not a valid size"),
        ('name = "a"\ncommand = ["x"]\nentry = "a:b"', "'command' and 'entry' cannot be combined"),
        ('name = "a"\ncommand = ["x"]\nsettings = { a = 1 }', "'settings' requires 'entry'"),
        ('name = "a"\nentry = "tools.a"', 'entry: "tools.a" is not valid'),
        ('name = "a"\nentry = "a:b"\nsettings = { since = 2020-02-02 }', "settings.since: .* is not valid"),
        ('name = "build"\ncommand = ["x"]', "stage build already exists"),
        ('name = "staging"\ncommand = ["x"]', "stage staging already exists"),
    ],
)
def test_a_stage_that_cannot_be_used_is_named_with_what_mends_it(workspace, text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        plan_servers(configured(workspace, text))
    assert caught.value.hint


def test_the_function_of_every_stage_exists(workspace):
    """A stage names its functions, so that neither an import nor mypy notices a wrong name."""
    settings = '[workspace]\n[pipeline.evaluation]\nmodels = ["openai:gpt-5"]\n'
    stages = '[[pipeline.stages]]\nname = "a"\ncommand = ["true"]\n[[pipeline.stages]]\nname = "b"\nentry = "b:run"\n'
    (workspace.root / "mcpfactory.toml").write_text(settings + stages)
    found = workspace_stages(Workspace.find(workspace.root))
    names = {name for stage in found for name in (stage.run, stage.adopted) if name}
    assert len(names) > 10
    assert all(callable(pkgutil.resolve_name(name)) for name in names)
