"""The trial of the gate, a few rows of each kind that build nothing: `python -m benchmarks.trials gate` plays them all, on real servers.

The commands are the real ones, in this process; only what fills the origin costs nothing: stages that pass.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.trials.fake_stages import environment
from benchmarks.trials.gate import ATTEMPTS, attack
from benchmarks.trials.gate.workspace import AttackedWorkspace, Done
from mcpfactory_pipeline.base.hashing import hash_file, hash_named_texts
from mcpfactory_pipeline.delivery.ci import admission
from mcpfactory_pipeline.plan.stage import BuiltFiles, StageInputs, StageOutputs
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.cli.conftest import InProcessCli
from tests.pipeline.fake_stages import add_server
from tests.pipeline.inprocess_executor import InProcessExecutor
from tests.subtest_table import parametrize_subtests

ROWS = (
    "promote without an approval",
    "rejection taken out of the history",
    "an end of a stage that no run began",
    "remove approval stage and promote in one push",
    "event dated ahead to satisfy soak",
    "replaced wheel of a candidate",
    "an approved candidate",
    "a shard result as it was handed over",
    "approval in a shard result",
)


class Typed(AttackedWorkspace):
    """A workspace whose commands run in this process."""

    def run(self, *words: str, by: str = "Ada", cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Done:
        done = InProcessCli(cwd or self.root, {**environment(), "MCPFACTORY_ACTOR": by, **(env or {})})(*words)
        self.typed.append(f"mcpfactory {' '.join(words)} → {done.code}")
        return Done(done.code, done.out, done.err)


def build(inputs: StageInputs) -> StageOutputs:
    """A "wheel" with the text of source.txt in it."""
    version = "0.1.0" if (inputs.folder / "source.txt").read_text() == "one" else "0.1.1"
    name = f"{inputs.server}_mcp-{version}-py3-none-any.whl"
    content = hash_file(inputs.folder / "source.txt")
    candidate = hash_named_texts({name: content}).removeprefix("sha256:")[:16]
    place = inputs.artifacts / inputs.server / candidate
    place.mkdir(parents=True)
    shutil.copy(inputs.folder / "source.txt", place / name)
    return StageOutputs("passed", "built", built=BuiltFiles(candidate, version, {name: content}))


def ship(_inputs: StageInputs) -> StageOutputs:
    """Says that it is in staging."""
    return StageOutputs("passed", "shipped", channel="staging")


def run_stages(root: Path) -> None:
    """Runs the workspace's own stages, with functions that only pass: what they read is recorded as it is."""
    workspace, own = Workspace.find(root), {"build": f"{__name__}:build", "staging": f"{__name__}:ship"}
    stages = [
        replace(stage, run=own.get(stage.name, "tests.pipeline.fake_stages:nothing"))
        for stage in workspace_stages(workspace)
    ]
    outcome = run_pipeline(workspace, stages=stages, executor=InProcessExecutor())
    assert set(outcome.servers.values()) == {"passed"}


@pytest.fixture(scope="module")
def origin(tmp_path_factory) -> Path:
    """As `make_origin` leaves it: alpha has an older candidate in production and a newer one in staging."""
    root = tmp_path_factory.mktemp("gate") / "origin"
    space = Typed(root)
    assert space.run("init", str(root), "--factory", "index", cwd=root.parent).code == 0
    space.configure()
    for name in ("alpha", "beta"):
        folder = add_server(root, name)
        (folder / "pyproject.toml").write_text(f'[project]\nname = "{name}-mcp"\nversion = "0.1.0"\n')
    commit(space, "Two servers")
    run_stages(root)
    for name in ("alpha", "beta"):
        for words, by in ((("approve", name), "Grace"), (("promote", name, "--channel", "production"), "Ada")):
            done = space.run("pipeline", *words, by=by)
            assert done.code == 0, done.text
    commit(space, "In production")
    (space.server() / "source.txt").write_text("two")
    run_stages(root)
    commit(space, "A newer alpha")
    return root


def commit(space: AttackedWorkspace, words: str) -> None:
    if not (space.root / ".git").exists():
        space.git("init", "-q", "-b", "main")
    space.git("add", "-A")
    space.git("commit", "-qm", words)


def met(origin: Path, folder: Path, name: str) -> tuple[str, ...]:
    """What came of a row that must not."""
    (attempt,) = (one for one in ATTEMPTS if one.name == name)
    return attack(attempt, origin, folder / "workspace", Typed).harm


@parametrize_subtests("name", ROWS)
def test_what_must_not_come_into_a_channel_or_be_believed_is_refused_and_what_is_honest_is_not(origin, tmp_path, name):
    assert met(origin, tmp_path, name) == ()


def test_without_a_guard_the_row_is_red(origin, tmp_path, monkeypatch):
    monkeypatch.setattr("mcpfactory_pipeline.delivery.ci.fold.RUN_EVENTS", admission.RUN_EVENTS | {"approved"})
    assert "fold ended with 0, and refused nothing of alpha" in met(origin, tmp_path, "approval in a shard result")
