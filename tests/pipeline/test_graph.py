"""The graph of stages: what needs what, where people decide, and where a server stands."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.views.graph import FORMATS, stage_graph, to_text
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from tests.pipeline.fake_stages import STAGES
from tests.pipeline.staged_workspace import configured

OWN = """
[[pipeline.stages]]
name = "approve-tools"
kind = "approval"
needs = ["generate"]
before = ["build"]
[[pipeline.stages]]
name = "smoke"
command = ["true"]
needs = ["channel:staging"]
"""
ROW = {
    "stages": {
        "generate": {"verdict": "up-to-date", "outcome": "passed", "message": "2 tools", "reasons": []},
        "approve-tools": {"verdict": "waiting", "outcome": None, "message": "", "reasons": ["1 of 1 approval missing"]},
        "test": {"verdict": "blocked", "outcome": "failed", "message": "", "reasons": ["<b>&"]},
    }
}


@pytest.fixture
def stages(workspace):
    return workspace_stages(configured(workspace, OWN))


def test_channels_that_people_promote_to_are_drawn_behind_their_approvals():
    policies = (ChannelPolicy(name="staging"), ChannelPolicy(name="production", source="staging", approvals=2))
    nodes = stage_graph(STAGES, {"stages": {}, "channels": {"production": {"version": "1.2"}}}, policies)
    drawn = [(node.name, node.kind, node.needs, node.status, node.note) for node in nodes[len(STAGES) :]]
    assert drawn == [
        ("approval for production", "approval", ("staging",), "", "2 approvals"),
        ("production", "channel", ("approval for production",), "offers 1.2", ""),
    ]
    assert len(stage_graph(STAGES)) == len(STAGES)


def test_a_narrow_text_leaves_out_needs_and_cuts_notes(stages):
    nodes = stage_graph(stages, ROW)
    wide = to_text(nodes).splitlines()
    narrow = to_text(nodes, 40).splitlines()
    assert to_text(nodes, 200).splitlines() == wide
    assert "needs" not in "".join(narrow)
    assert len(narrow) == len(wide)
    assert max(map(len, narrow)) <= 40 < max(map(len, wide))


def test_json_has_kind_level_and_the_nearest_needs(stages):
    nodes = {node["name"]: node for node in json.loads(FORMATS["json"](stage_graph(stages, ROW)))}
    assert (nodes["staging"]["kind"], nodes["approve-tools"]["kind"], nodes["smoke"]["kind"]) == (
        "channel",
        "approval",
        "stage",
    )
    assert nodes["staging"]["needs"] == ["test", "validate"]
    assert nodes["smoke"]["level"] == 5
    assert nodes["test"]["status"] == "failed"


def test_mermaid_has_a_shape_for_each_kind_and_an_arrow_for_each_need(stages):
    text = FORMATS["mermaid"](stage_graph(stages, ROW))
    assert '  s1(["approve-tools<br>waiting"])' in text
    assert '  s5[["staging"]]' in text
    assert text.count("-->") == 7


def test_gates_and_soak_of_a_channel_stand_before_its_approvals_and_it():
    policies = (
        ChannelPolicy(name="staging", gates={"min_score": 80}),
        ChannelPolicy(name="production", source="staging", gates={"contract": True}, soak="1h", approvals=1),
    )
    staged = [replace(stage, channel=policies[0]) if stage.channel else stage for stage in STAGES]
    nodes = {node.name: node for node in stage_graph(staged, None, policies)}
    assert nodes["gates of staging"].needs == ("test",)
    assert nodes["gates of staging"].note == "min score 80"
    assert nodes["staging"].needs == ("gates of staging",)
    assert nodes["gates of production"].note == "contract; 1 h in staging"
    assert nodes["approval for production"].needs == ("gates of production",)
    assert nodes["production"].needs == ("approval for production",)
    assert [nodes[name].level for name in ("test", "gates of staging", "staging")] == [1, 2, 3]
