from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpfactory_pipeline.base.events import Reporter, RunEvent
from mcpfactory_pipeline.build.factory_distributions import cached_runtime_wheel
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.run.executor import Executor
from mcpfactory_pipeline.run.run import RunOutcome, run_pipeline
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.fake_stages import STAGES
from tests.pipeline.inprocess_executor import InProcessExecutor
from tests.pipeline.staged_workspace import StagedWorkspace, configured

ROOT = Path(__file__).resolve().parents[2]


class Recorder(Reporter):
    """Reporter that records its events."""

    def __init__(self) -> None:
        self.events: list[RunEvent] = []

    def emit(self, event: RunEvent) -> None:
        self.events.append(event)

    def of(self, kind: type[RunEvent]) -> list:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture(autouse=True)
def _named_actor(monkeypatch):
    """Set the actor independently of the machine, and let job processes import the fake stages."""
    monkeypatch.setenv("MCPFACTORY_ACTOR", "tester")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))


@pytest.fixture(scope="session")
def wheelhouse(tmp_path_factory) -> Path:
    """Return the folder of the runtime's wheel for channels, built once for all workspaces."""
    artifacts = tmp_path_factory.mktemp("runtime")
    cached_runtime_wheel(artifacts)
    return artifacts / ".wheelhouse"


@pytest.fixture(scope="session")
def empty_workspace(tmp_path_factory, wheelhouse) -> Path:
    """Return a workspace without servers and retry delays; tests must not change it."""
    space = configured(apply_setup(plan_workspace_setup(tmp_path_factory.mktemp("empty") / "space"), git=False))
    shutil.copytree(wheelhouse, space.artifacts / ".wheelhouse")
    return space.root


@pytest.fixture
def workspace(tmp_path, empty_workspace) -> Workspace:
    """Return a copy of the workspace without servers."""
    return Workspace.find(shutil.copytree(empty_workspace, tmp_path / "space"))


@pytest.fixture
def executor() -> Executor | None:
    """Return the executor of `run`. Modules about processes and executors override it with None (the default)."""
    return InProcessExecutor()


@pytest.fixture
def run(workspace, executor) -> Callable[..., RunOutcome]:
    """Return a function that runs the fake stages in the workspace."""
    usual = {"stages": STAGES, "executor": executor, "jobs": 1 if executor else 2}

    def call(*names: str, **options) -> RunOutcome:
        return run_pipeline(workspace, names, **{**usual, **options})

    return call


@pytest.fixture
def start_pipeline_process(workspace) -> Callable[..., subprocess.Popen]:
    """Return a function that runs servers of the workspace in a separate process."""

    def start(*names: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.pipeline.pipeline_process", str(workspace.root), *names],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ},
        )  # fmt: skip

    return start


@pytest.fixture(scope="session")
def workspace_of_books(tmp_path_factory, empty_workspace) -> Path:
    """Return a workspace with one server in staging; tests must not change it."""
    space = Workspace.find(shutil.copytree(empty_workspace, tmp_path_factory.mktemp("books") / "space"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MCPFACTORY_ACTOR", "tester")
        StagedWorkspace(
            space, lambda *names: run_pipeline(space, names, stages=STAGES, executor=InProcessExecutor(), jobs=1)
        )
    return space.root


@pytest.fixture
def books(workspace, workspace_of_books, run) -> StagedWorkspace:
    """Return the test's workspace with the server."""
    for name in ("servers", "pipeline"):
        shutil.copytree(workspace_of_books / name, workspace.root / name, dirs_exist_ok=True)
    return StagedWorkspace(workspace, run)


@pytest.fixture
def set_actor(monkeypatch):
    """Set the actor."""
    return lambda name: monkeypatch.setenv("MCPFACTORY_ACTOR", name)
