"""The example of 25 stages with four people's gates, in short: two servers, and stages of mcpfactory that cost next to nothing."""

from __future__ import annotations

import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from mcpfactory_pipeline.base.hashing import hash_file, hash_record
from mcpfactory_pipeline.plan.stage import Built, StageInputs, StageOutputs
from mcpfactory_pipeline.promotion.promote import promote_due
from mcpfactory_pipeline.promotion.stage_decision import approve_stage
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.views.inbox import read_inbox
from mcpfactory_pipeline.views.status import status_row
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.cheap import add_server, as_cheap, nothing
from tests.pipeline.here import Here

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "twenty-five"
SERVERS = ["books", "films"]
WAITS = (
    ("Ada", "approve-tools"),
    ("Grace", "approve-report"),
    ("Linus", "approve-publishing"),
    ("Barbara", "approve-announcement"),
)


def build(inputs: StageInputs) -> StageOutputs:
    """A small wheel, with a package and metadata."""
    wheel = inputs.work / f"{inputs.server}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in (("p/__init__.py", "x = 1\n"), ("p-1.0.dist-info/METADATA", "Name: p\nRequires-Dist: q\n")):
            archive.writestr(zipfile.ZipInfo(name), text + f"# {inputs.server}\n")
    files = {wheel.name: hash_file(wheel)}
    candidate = hash_record(files).removeprefix("sha256:")[:16]
    folder = inputs.artifacts / inputs.server / candidate
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(wheel, folder / wheel.name)
    return StageOutputs("passed", "built", built=Built(candidate, "1.0", files))


@pytest.fixture
def desk(workspace, monkeypatch):
    shutil.copytree(EXAMPLE, workspace.root, dirs_exist_ok=True)
    for name in SERVERS:
        folder = add_server(workspace.root, name)
        (folder / "api").mkdir()
        (folder / "api" / "openapi.yaml").write_text(f"openapi: 3.1.0\ninfo: {{title: {name}, description: d}}\n")
        (folder / ".mcpfactory").mkdir()
        (folder / ".mcpfactory" / "report.json").write_text(json.dumps({"tools": [{"name": f"list_{name}"}]}))
    monkeypatch.setattr("mcpfactory_pipeline.run.watch.seconds_in_channel", lambda *_: 3600.0)
    return Workspace.find(workspace.root)


def test_two_servers_go_through_25_stages_and_wait_for_one_person_after_the_other(desk, act):
    usual = {"build": build, "test": nothing}
    stages = tuple(replace(one, run=usual.get(one.name, one.run)) for one in as_cheap(workspace_stages(desk)))
    assert len(stages) == 25
    assert [stage.name for stage in stages if stage.approval] == [stage for _, stage in WAITS]

    def waiting() -> list[tuple[str, str, str]]:
        return sorted((item.kind, item.server, item.about) for item in read_inbox(desk, stages=stages))

    def go() -> None:
        assert run_pipeline(desk, stages=stages, executor=Here(), jobs=1).servers == dict.fromkeys(SERVERS, "passed")

    go()
    for who, gate in WAITS:
        assert waiting() == [("approval", server, gate) for server in SERVERS]
        act(who)
        for server in SERVERS:
            approve_stage(desk, server, gate, stages=stages)
        if gate == "approve-publishing":
            assert waiting() == [("ready", server, "production") for server in SERVERS]
            assert [entry["server"] for entry in promote_due(desk, "production", stages=stages)] == SERVERS
        go()
    assert waiting() == []
    for server in desk.servers():
        row, _ = status_row(desk, Store(desk), stages, server)
        assert {stage["verdict"] for stage in row["stages"].values()} == {"up-to-date"}
    assert verify(desk) == []
