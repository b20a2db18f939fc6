"""The coverage manifest: what became of each operation, counted so that 100 % means every one."""

from __future__ import annotations

import json

import pytest

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.state.manifest import with_details
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.views.status import status
from mcpfactory_pipeline.workspace.coverage import coverage, source_gate_facts
from tests.pipeline.conftest import ROOT
from tests.pipeline.inprocess_executor import InProcessExecutor


def report(folder, **parts) -> None:
    (folder / ".mcpfactory").mkdir(exist_ok=True)
    (folder / ".mcpfactory" / "report.json").write_text(json.dumps(parts))


def tool(method: str, path: str) -> dict:
    return {"name": "x", "operation": {"method": method, "path": path}}


def test_operations_are_made_left_out_with_the_reason_or_missing(tmp_path):
    made = [tool("GET", "/a"), tool("GET", "/b")]
    report(tmp_path, tools=made, skipped=[{"method": "POST", "path": "/a", "reason": "no JSON"}], tokens=70)
    assert coverage(tmp_path, 4) == {
        "operations": 4, "made": 2, "left_out": {"POST /a": "no JSON"}, "missing": 1, "share": 50,
    }  # fmt: skip
    assert source_gate_facts(tmp_path) == {"document": True, "tools": 2, "tokens": 70, "coverage": 66}


def test_only_everything_is_a_hundred_percent(tmp_path):
    made = [tool("GET", f"/{number}") for number in range(999)]
    report(tmp_path, tools=made, skipped=[{"method": "GET", "path": "/last", "reason": "r"}], tokens=1)
    assert coverage(tmp_path)["share"] == 99
    report(tmp_path, tools=made, skipped=[], tokens=1)
    assert coverage(tmp_path)["share"] == 100


def test_a_server_without_a_report_has_no_manifest(tmp_path):
    assert (coverage(tmp_path), source_gate_facts(tmp_path)) == ({}, {"document": False})


@pytest.mark.parametrize("parts", [{}, {"tools": [{}], "skipped": []}, {"tools": [], "skipped": [{"path": "/"}]}])
def test_a_report_that_is_none_breaks_the_stage_with_a_hint(tmp_path, parts):
    report(tmp_path, **parts)
    with pytest.raises(StageError, match=r"\.mcpfactory/report\.json cannot be read") as caught:
        coverage(tmp_path)
    assert "delete the file" in caught.value.hint


def test_a_real_server_has_its_manifest_in_the_state_and_its_facts_at_the_candidate(workspace):
    create_server(workspace.root / "servers", name="bookshop", source=str(ROOT / "docs/examples/bookshop/openapi.yaml"))
    config = workspace.root / "servers/bookshop/mcpfactory.toml"
    config.write_text(config.read_text().replace("include_paths = []", 'include_paths = ["/books*"]'))
    run_pipeline(workspace, until="build", executor=InProcessExecutor())
    coverage = status(workspace)[0]["coverage"]
    assert coverage["operations"] == 11
    assert 0 < coverage["made"] < 11
    assert coverage["missing"] == 0
    assert "POST /orders" in coverage["left_out"]
    assert coverage["left_out"]["POST /orders"]
    state = Store(workspace).state("bookshop")
    known = state.candidates[state.candidate]
    assert known.facts["coverage"] == coverage["share"] == 100 * coverage["made"] // 11
    assert known.facts["tokens"] > 100
    event = next(event for event in Store(workspace).history("bookshop") if event.get("built"))
    detailed = with_details(event, workspace.artifacts / "bookshop" / "manifests")
    assert set(detailed["made_from"]) == {"document", "config", "template", "codegen", "runtime", "python", "commit"}
