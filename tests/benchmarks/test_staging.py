"""Documents on their way to staging: which are sent, what stopped them, what is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.staging.__main__ import main
from benchmarks.staging.arrival import Arrival, Found, Obstacle, Source
from benchmarks.staging.hostile import hostility
from benchmarks.staging.obstacles import Made, found, obstacles
from benchmarks.staging.results import keep, kept
from benchmarks.staging.sources import from_files, from_folder
from benchmarks.staging.table import explained, findings, line, total

API = """openapi: 3.1.0
info: {title: Shop, version: '1'}
paths:
  /a:
    get:
      operationId: a
      responses: {'200': {description: ok}}
"""
TOOLS = [{"name": "get_a", "operation": {"method": "GET", "path": "/a", "operationId": "a"}}]
FAILURE = '<failure message="assert 1 == 2&#10; where 1">long</failure>'


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPFACTORY_BENCH_HOME", str(tmp_path / "home"))


@pytest.fixture
def source(tmp_path: Path) -> Source:
    file = tmp_path / "shop.yaml"
    file.write_text(API, encoding="utf-8")
    return next(from_files([file]))


def _left(workspace: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        file = workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return workspace


def test_what_stopped_a_document_is_told_with_the_line_of_its_operation(source: Source, tmp_path: Path) -> None:
    found = {"rule": "behaviour.read-only", "where": "get_a", "message": "sent\n POST"}
    cases = "".join(
        f'<testcase name="test_call[get_a-{number}]">{FAILURE}</testcase>' for number in ("all", "few", "low", "high")
    )
    workspace = _left(
        tmp_path / "space",
        {
            "servers/shop/.mcpfactory/report.json": {"tools": TOOLS, "skipped": [], "problems": []},
            "pipeline/artifacts/shop/1/test/junit.xml": f"<testsuites>{cases}</testsuites>",
            "pipeline/artifacts/shop/1/validate/report.json": {
                "findings": [found, {**found, "rule": "descriptions.length"}],
                "failed_gates": ["behaviour.read-only", "robustness.once", "robustness.lives"],
                "not_called": {"get_a": "there is no case for it", "b": ""},
            },
        },
    )
    failed = {"test": "4 failed", "validate": "score 9", "build": "no wheel"}
    place = "shop.yaml:5 /paths/~1a/get"
    assert list(obstacles(Made(source, workspace), failed)) == [
        *(
            Obstacle("test", "test_call", f"get_a: {number}: assert 1 == 2 where 1", place)
            for number in ("all", "few", "low")
        ),
        Obstacle("validate", "behaviour.read-only", "get_a: sent POST", place),
        Obstacle(
            "validate",
            "robustness.once",
            "could not be checked (and 1 gates): get_a: there is no case for it, and so 1 more",
            place,
        ),
        Obstacle("build", "", "no wheel"),
    ]


def test_findings_of_a_server_that_arrives_are_told_too_with_the_line(source: Source, tmp_path: Path) -> None:
    long = {"rule": "descriptions.length", "severity": 2, "where": "get_a.a", "message": "long"}
    told = [*([long] * 4), {**long, "rule": "annotations.title", "severity": 1}, {**long, "rule": "x", "where": ""}]
    files = {
        "servers/shop/.mcpfactory/report.json": {"tools": TOOLS},
        "pipeline/artifacts/shop/1/validate/report.json": {"findings": told},
    }
    place = "shop.yaml:5 /paths/~1a/get"
    seen = tuple(found(Made(source, _left(tmp_path / "space", files))))
    assert seen == (
        Found("descriptions.length", 2, 4, ("get_a.a: long",) * 3, (place,) * 3),
        Found("x", 2, 1, (": long",), ("",)),
    )
    none = Arrival("none", "file", 1, arrived=True)
    assert list(findings([Arrival("shop", "file", 1, arrived=True, findings=seen[1:]), none])) == [
        "shop:",
        "  2 x: 1",
        "    : long",
        "none: no finding of severity 2 or more",
    ]
    assert list(findings([replace(none, findings=seen)]))[2] == f"    get_a.a: long ({place})"


def test_documents_of_a_folder_are_those_that_say_a_version(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    for name in ("1 Öl.yaml", "below/api.v2.json", "below/api v2.yml"):
        _left(folder, {name: API if "json" not in name else '{"info": {}, "swagger": "2.0"}'})
    _left(folder, {"late.json": json.dumps({"definitions": {"a": "b" * 300_000}, "swagger": "2.0"}, indent=1)})
    _left(folder, {"package.json": '{"name": "openapi"}', "read.md": API, "nothing.yaml": "a: 1"})
    assert [one.name for one in from_folder(folder)] == ["api-1-l", "api-v2", "api-v2-2", "late"]


def test_a_result_is_kept_for_this_document_with_this_code(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    arrival = Arrival("shop", "file", 1, obstacles=(Obstacle("test", "t", "wrong", "line 5"),), stages={"new": 1.5})
    arrival = replace(arrival, findings=(Found("a.b", 2, 1, ("long",), ("line 5",)),))
    assert kept(source) is None
    keep(source, arrival)
    assert kept(source) == arrival
    assert kept(replace(source, digest="0" * 64)) is None
    monkeypatch.setattr("benchmarks.staging.results.code_digest", lambda: "1" * 64)
    assert kept(source) is None


def test_the_share_leaves_out_what_cannot_arrive() -> None:
    lost = Arrival("lost", "file", 3, obstacles=(Obstacle("test", "t", "wrong", "line 5"),))
    all_of_them = [Arrival("shop", "file", 2, arrived=True), lost, Arrival("none", "file", 0, hostile="no operation")]
    assert [one.expected for one in all_of_them] == [True, False, True]
    assert total(all_of_them).endswith("1 of the others are hostile: 50 % of those that can arrive")
    assert line(lost).endswith("no: t")
    assert line(all_of_them[2]).endswith("hostile: no operation")
    assert list(explained([lost])) == ["lost (file)", "  test t: wrong", "    at line 5"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("openapi: 3.1.0\npaths: {}\n", "no operation"),
        ('{"swagger": "2.0", "definitions": {}}', "no operation"),
        ("paths: {/a: {parameters: []}}", "no operation"),
        ("webhooks: {a: {post: {}}}", "no operation, webhooks only"),
        (API, ""),
        ("paths: {/a: {$ref: a.yaml}}", ""),
        ("paths: {$ref: paths.yaml}", ""),
        ("{", ""),
        ("- a", ""),
    ],
)
def test_a_document_without_operations_is_hostile_and_says_so(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "api.yaml"
    file.write_text(text, encoding="utf-8")
    assert hostility(file) == reason


def test_a_document_that_does_not_arrive_is_exit_1_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The real commands, as far as `new` goes."""
    for name, paths in (("empty", "{}"), ("broken", "{/a: {$ref: none.yaml}}")):
        text = f"openapi: 3.1.0\ninfo: {{title: None, version: '1'}}\npaths: {paths}\n"
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    told = tmp_path / "told.json"
    files = [str(tmp_path / "empty.yaml"), str(tmp_path / "broken.yaml")]
    assert main(["--files", *files, "--json", str(told), "--limit", "100"]) == 1
    assert capsys.readouterr().out.count("  new: exit 4: error: ") == 2
    empty, broken = json.loads(told.read_text())["documents"]
    assert (empty["arrived"], empty["hostile"], empty["obstacles"][0]["stage"]) == (False, "no operation", "new")
    assert (broken["arrived"], broken["hostile"]) == (False, "")
    assert main(["--files", str(tmp_path / "none.yaml")]) == 3
