"""Declared tests: read strictly, judged purely, replayed without the API, recorded without its secrets."""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from mcpfactory_pipeline.base.errors import ConfigError, ServerError
from mcpfactory_pipeline.checks.declared_tests import (
    DeclaredTest,
    DeclaredTestSetup,
    declared_test_faults,
    read_declared_tests,
    run_declared_tests,
)
from mcpfactory_pipeline.checks.recorder import RequestRecorder, recording_path
from tests.loopback_server import LoopbackHandler, serving
from tests.subtest_table import parametrize_subtests

SECRET = "s3cret/of+the=zoo"
SERVER = """
import json, os, urllib.error, urllib.request
from mcpfactory_runtime import Server, ToolError
server = Server("zoo", version="1")

def ask(method, path):
    request = urllib.request.Request(os.environ["MCPFACTORY_BASE_URL"] + path, method=method)
    request.add_header("Authorization", "Bearer " + os.environ["ZOO_TOKEN"])
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            raise ToolError(f"the API answered {error.code}: {error.read().decode()}")

@server.tool(annotations={"readOnlyHint": True})
def show(cage: int) -> dict:
    key = os.environ["ZOO_TOKEN"].replace("+", "%2B")
    return json.loads(ask("GET", f"/cages/{cage}?detail=full&api_key={key}"))

@server.tool
def free(cage: int) -> str:
    return ask("DELETE", f"/cages/{cage}")

server.run()
"""
TESTS = """\
tests:
  - name: Leo is in
    tool: show
    arguments: {cage: 7}
    contains: Leo
    snapshot: true
    expect:
      - path: $.name
        equals: Leo
        matches: ^L
      - path: $.friends[*]
        count: 2
        schema: {type: string}
      - path: $.enemies
        exists: false
  - name: nobody is in
    tool: show
    arguments: {cage: 8}
    status: error
    contains: "404"
"""


class Api(LoopbackHandler):
    """A small API that gives away what it was told."""

    asked: list[str]

    def get(self) -> None:
        self.asked.append(self.path)
        there = self.path.startswith("/v1/cages/7?")
        body = {"name": "Leo", "friends": ["Lea", "Lou"], "token": self.headers["Authorization"]} if there else {}
        self.answer(200 if there else 404, body, Set_Cookie=f"session={SECRET}")


@pytest.fixture
def api() -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []
    with serving(Api, asked=asked) as url:
        yield f"{url}/v1", asked


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "zoo.py").write_text(SERVER)
    (tmp_path / "tests/cages.yaml").write_text(TESTS)
    return tmp_path


def run(folder: Path, **options: Any) -> list[Any]:
    secrets = {} if options.get("mode", "replay") == "replay" else {"ZOO_TOKEN": SECRET}
    environ = {"ZOO_TOKEN": SECRET, **options.pop("environ", {})}
    bench = DeclaredTestSetup([sys.executable, str(folder / "zoo.py")], environ, secrets=secrets)
    return asyncio.run(run_declared_tests(read_declared_tests(folder), bench, **options))


def test_what_was_recorded_is_replayed_without_the_api_and_holds_no_secret(zoo, api) -> None:
    url, asked = api
    assert [one.faults for one in run(zoo, mode="record", upstream=url)] == [(), ()]
    assert len(asked) == 2
    kept = "".join(file.read_text() for file in (zoo / "tests").glob("*.json"))
    for form in (SECRET, b64encode(SECRET.encode()).decode(), "s3cret"):
        assert form not in kept
    assert json.loads(recording_path(zoo / "tests/cages.yaml").read_text())["cases"][0]["request"]["query"] == [
        ["detail", "full"]
    ]
    found = run(zoo)
    assert [one.faults for one in found if one.test.name == "nobody is in"] == [()]
    assert len(asked) == 2


def test_a_recording_keeps_the_servers_of_an_api_apart(api) -> None:
    url, asked = api
    root = url.removesuffix("/v1")  # has no path, so that an operation may have that of the other server's folder
    with RequestRecorder(root, {}, {"files": f"{url}/files"}) as recorder:
        for place in (f"{recorder.base_url}/files/a?x=1", f"{recorder.additional_servers_url}/files/b?y=2"):
            httpx.get(place, trust_env=False)
        unknown = httpx.get(f"{recorder.additional_servers_url}/filesystem", trust_env=False)
    assert asked == ["/files/a?x=1", "/v1/files/b?y=2"]
    assert [case["request"]["path"] for case in recorder.cases] == ["/files/a", "/files/b"]
    assert (unknown.status_code, unknown.text) == (
        502,
        "the upstream did not answer: the API has no server 'filesystem'",
    )


def test_another_request_than_the_recorded_one_is_a_fault(zoo, api) -> None:
    run(zoo, mode="record", upstream=api[0])
    (zoo / "zoo.py").write_text(SERVER.replace("detail=full", "detail=none"))
    found = run(zoo)
    assert all("unexpected API request" in " ".join(one.faults) for one in found)


def test_an_answer_that_is_not_the_kept_one_is_a_fault_until_it_is_kept_anew(zoo, api) -> None:
    run(zoo, mode="record", upstream=api[0])
    kept = zoo / "tests/cages.snapshots.json"
    kept.write_text(kept.read_text().replace('"Lou"', '"Lola"'))
    assert "the answer differs from the snapshot" in " ".join(run(zoo)[0].faults)
    assert run(zoo, update=True)[0].faults == ()
    assert run(zoo)[0].faults == ()


def test_live_asks_only_with_tools_that_say_that_they_read(zoo, api) -> None:
    url, asked = api
    more = "  - {tool: free, arguments: {cage: 7}}\n"
    (zoo / "tests/cages.yaml").write_text(TESTS + more)
    found = run(zoo, mode="live", environ={"MCPFACTORY_BASE_URL": url})
    assert [(one.faults, bool(one.skipped)) for one in found] == [((), False), ((), False), ((), True)]
    assert not any("DELETE" in path for path in asked)
    assert list((zoo / "tests").glob("*.json")) == []


def test_a_test_brings_its_own_api_and_a_tool_that_is_not_there_is_a_fault(zoo) -> None:
    (zoo / "tests/cages.yaml").write_text(
        "tests:\n  - tool: show\n    arguments: {cage: 1}\n    contains: Ida\n    upstream:\n"
        "      - request: {method: GET, path: /cages/1}\n        response: {status: 200, body: {name: Ida}}\n"
        "  - tool: feed\n"
    )
    assert [one.faults for one in run(zoo)] == [(), ("the server has no tool feed",)]


def test_a_server_that_does_not_start_is_no_failed_test(zoo) -> None:
    (zoo / "zoo.py").write_text("raise SystemExit(3)")
    with pytest.raises(ServerError, match=r"cages\.yaml cannot be tested"):
        run(zoo)


RESULT: dict[str, Any] = {"content": [{"type": "text", "text": '{"n": 1, "ok": true, "list": []}'}]}


@parametrize_subtests(
    "expected, words",
    [
        ({"path": "$.n", "equals": 1}, ""),
        ({"path": "$.n", "equals": True}, "is 1, not true"),
        ({"path": "$.ok", "equals": 1}, "is true, not 1"),
        ({"path": "$.m", "equals": 1}, "the value is missing"),
        ({"path": "$.m", "exists": False}, ""),
        ({"path": "$.n", "exists": False}, "the value exists"),
        ({"path": "$.list[*]", "count": 0}, ""),
        ({"path": "$.list[*]", "count": 1}, "found 0, not 1"),
        ({"path": "$.n", "matches": "1"}, "does not match"),
        ({"path": "$.n", "schema": {"type": "string"}}, "is 1"),
        ({"path": "$.n", "schema": {"type": "nonsense"}}, "is 1"),
        ({"path": "$.n", "schema": {"minimum": 1}}, ""),
        ({"path": "n ==", "exists": True}, "'n ==' is not a valid JSONPath"),
    ],
)
def test_an_expectation_holds_or_says_why_not(expected, words) -> None:
    found = declared_test_faults(DeclaredTest("t", "t", Path("t.yaml"), expect=(expected,)), RESULT)
    assert (words == "" and found == []) or (words != "" and len(found) == 1 and words in found[0])


@parametrize_subtests(
    "text, words",
    [
        ("tests: 3", "is not a list of tests"),
        ("test: []", "is not a list of tests"),
        ("tests: [{name: a}]", "has no tool"),
        ("tests: [{tool: a, argument: {}}]", "unknown field 'argument'"),
        ("tests: [{tool: a, arguments: [1]}]", r"arguments has the invalid value \[1\]"),
        ("tests: [{tool: a, status: good}]", "status has the invalid value 'good'"),
        ("tests: [{tool: a, expect: [{equals: 1}]}]", "has no path"),
        ("tests: [{tool: a, expect: [{path: $.a}]}]", "has no expected value"),
        ("tests: [{tool: a, expect: [{path: $.a, equal: 1}]}]", "unknown field 'equal'"),
        ("tests: [{tool: a, expect: [{path: $.a, count: true}]}]", "count of"),
        ("tests: [{tool: a, upstream: [{request: 1}]}]", "needs a request and a response"),
        ("tests: [{tool: a, name: b}, {tool: c, name: b}]", "two tests have the name 'b'"),
        ("tests: [", "cannot be read"),
        ("tests: [{tool: a}]\ntests: [{tool: b}]", "appears twice"),
    ],
)
def test_a_slip_of_the_pen_is_refused(tmp_path, text, words) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/a.yaml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        read_declared_tests(tmp_path)


def test_a_server_under_test_gets_what_it_is_given_and_nothing_of_the_shell(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BANK_TOKEN", SECRET)
    (tmp_path / "tests").mkdir()
    (tmp_path / "zoo.py").write_text(
        "import os\nfrom mcpfactory_runtime import Server\nserver = Server('zoo', version='1')\n"
        "@server.tool\ndef seen() -> str:\n    return ' '.join(sorted(os.environ))\nserver.run()\n"
    )
    (tmp_path / "tests/seen.yaml").write_text("tests:\n  - {name: own, tool: seen, contains: ZOO_TOKEN}\n")
    assert [one.faults for one in run(tmp_path)] == [()]
    (tmp_path / "tests/seen.yaml").write_text("tests:\n  - {name: others, tool: seen, contains: BANK_TOKEN}\n")
    ((fault,),) = [one.faults for one in run(tmp_path)]
    assert "BANK_TOKEN" in fault
