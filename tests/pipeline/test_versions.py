"""A channel never offers other bytes under a version that it offered."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from benchmarks.trials.fake_stages import environment
from mcpfactory_pipeline.base.errors import PromotionError
from mcpfactory_pipeline.decisions.decision import approve
from mcpfactory_pipeline.decisions.promote import promote, rollback
from mcpfactory_pipeline.decisions.restore import restore_candidate_files
from mcpfactory_pipeline.plan.stage import StageInputs, StageOutputs
from mcpfactory_pipeline.stages import STAGES
from mcpfactory_pipeline.state.store import Store
from tests.cli.conftest import InProcessCli
from tests.pipeline import fake_stages
from tests.pipeline.build_backend import write_server

REAL = (replace(STAGES[1], needs=()), fake_stages.TEST, fake_stages.SHIP)


@pytest.fixture
def release(workspace, run):
    """Runs the pipeline on a server with this text and version; gives the version that staging then offers."""

    def call(text: str, version: str = "1.0") -> str:
        write_server(workspace.root, {"books_mcp/text.py": text}, version=version)
        assert run("books", stages=REAL).servers == {"books": "passed"}
        return Store(workspace).state("books").channels["staging"].version

    return call


def to_production(workspace) -> None:
    approve(workspace, "books", "production", stages=REAL)
    promote(workspace, "books", "production", stages=REAL)


def test_other_bytes_get_a_local_version_which_staging_offers_and_production_refuses(workspace, release):
    assert release("one") == "1.0"
    to_production(workspace)
    first = Store(workspace).state("books").candidate
    local = release("two")
    state = Store(workspace).state("books")
    assert local == f"1.0+dev{local[-8:]}"
    assert "mcpfactory release apply books" in state.stages["build"].message
    shown = InProcessCli(workspace.root, environment())("pipeline", "status")
    assert "mcpfactory release apply books" in shown.out + shown.err
    with pytest.raises(PromotionError, match="development build") as caught:
        to_production(workspace)
    assert caught.value.hint == "mcpfactory release apply books"
    shutil.rmtree(workspace.artifacts / "books" / state.candidate)
    assert restore_candidate_files(workspace, "books", state.candidate).outcome == "rebuilt"
    assert release("one") == "1.0", "its own bytes keep the version"
    assert release("two", "1.1") == "1.1"
    assert release("three", "1.1.0").startswith("1.1.0+dev"), "1.1.0 is 1.1 to installers"
    assert release("two", "1.1") == "1.1"
    to_production(workspace)
    assert rollback(workspace, "books", "production", reason="bad", stages=REAL)["candidate"] == first


def same_version(inputs: StageInputs) -> StageOutputs:
    """A build that gives every text the version 1.0."""
    outputs = fake_stages.build(inputs)
    assert outputs.built is not None
    return replace(outputs, built=replace(outputs.built, version="1.0"))


def test_a_channel_refuses_other_bytes_under_its_version(workspace, run):
    stages = (replace(fake_stages.BUILD, run=f"{__name__}:same_version"), fake_stages.TEST, fake_stages.SHIP)
    folder = fake_stages.add_server(workspace.root, "books")
    run("books", stages=stages)
    first = Store(workspace).state("books").candidate
    (folder / "source.txt").write_text("two")
    assert run("books", stages=stages).servers == {"books": "failed"}
    state = Store(workspace).state("books")
    assert state.channels["staging"].candidate == first != state.candidate
    assert f"offered 1.0 with other bytes before ({first})" in state.stages["staging"].message
    with pytest.raises(PromotionError, match="with other bytes") as caught:
        promote(workspace, "books", "staging", stages=stages)
    assert caught.value.hint == "mcpfactory pipeline run books --again build"
