"""Two candidates side by side, and figures over time."""

from __future__ import annotations

import json
import zipfile
from typing import Any

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.dashboard.app import create_app
from tests.dashboard.conftest import EVIL, FINDING, Bench

JSON = {"Accept": "application/json"}


def put(bench: Bench, version: str, tools: list[str], findings: list[dict[str, Any]]) -> str:
    """A candidate whose wheel has a manifest with these tools, and whose validation found this."""
    candidate = bench.built("atlas", version)
    wheel = next((bench.workspace.artifacts / "atlas" / candidate).glob("*.whl"))
    listed = [{"name": name, "inputSchema": {"type": "object"}, "handler": f"books:{name}"} for name in tools]
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("atlas_mcp/_generated/manifest.json", json.dumps({"manifest": 1, "tools": listed}))
    report = {"score": 100 - 30 * len(findings), "passed": not findings, "findings": findings, "not_checked": []}
    bench.validated("atlas", candidate, "passed", report)
    return candidate


@pytest.fixture
def two(bench: Bench) -> tuple[str, str]:
    bench.add("atlas")
    other = {**FINDING, "rule": "lists.order", "message": "unsorted"}
    old = put(bench, "1.0", ["get_book", "find_book"], [FINDING, other])
    return old, put(bench, "1.1", ["get_book", "add_book"], [other])


def test_a_comparison_says_what_changes_for_callers_and_which_findings_went(bench: Bench, two: tuple[str, str]) -> None:
    client = TestClient(create_app(bench.root), base_url="http://localhost")
    old, new = two
    told = client.get(f"/servers/atlas/compare/{old}/{new}/", headers=JSON).json()
    assert [(one["kind"], one["code"], one["tool"]) for one in told["changes"]] == [
        ("breaking", "tool-removed", "find_book"),
        ("additive", "tool-added", "add_book"),
    ]
    assert [one["rule"] for one in told["gone"]] == ["behaviour.tools-work"]
    assert (told["come"], told["stayed"]) == ([], 1)
    facts = {one["name"]: (one["old"], one["new"]) for one in told["facts"]}
    assert facts["version"] == ("1.0", "1.1")
    assert facts["score"] == ("40", "70")
    assert int(facts["bytes"][0]) > 100
    page = client.get(f"/servers/atlas/compare/{old}/{new}/").text
    assert "<code>find_book</code> is gone" in page
    assert EVIL not in page
    assert f'href="../../servers/atlas/compare/{old}/{new}/"' in client.get("/servers/atlas/").text


def test_without_wheels_and_reports_a_comparison_says_that_it_is_not_known(bench: Bench, two: tuple[str, str]) -> None:
    old, new = two
    for file in (bench.workspace.artifacts / "atlas" / old).rglob("*.*"):
        file.unlink() if file.is_file() else None
    (bench.workspace.artifacts / "atlas" / new / "atlas_mcp-1.1-py3-none-any.whl").write_bytes(b"no archive")
    page = TestClient(create_app(bench.root), base_url="http://localhost").get(f"/servers/atlas/compare/{old}/{new}/")
    assert page.status_code == 200
    assert page.text.count("Not known:") == 2


def test_a_candidate_that_is_not_kept_is_not_found(bench: Bench, two: tuple[str, str]) -> None:
    client = TestClient(create_app(bench.root), base_url="http://localhost", headers=JSON)
    for path in (f"{two[0]}/none", f"..%2f..%2f/{two[1]}"):
        assert client.get(f"/servers/atlas/compare/{path}/").status_code == 404
