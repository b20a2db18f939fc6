"""Every tool against a stub of its API: what is sent, what comes back, and what is refused before anything is sent.

Made by mcpfactory and rewritten whole. The cases in cases.json follow from the API document alone, not from the code
that is tested here; your own hooks and tools are not part of it. `pytest -k get_book` runs the tests of one tool.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcpfactory_runtime import McpError, Server
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.testing import compile_schema, connect
from mcpfactory_runtime.upstream import StubUpstream

import bookshop_mcp._generated
from bookshop_mcp._generated.api import upstream

Json = dict[str, Any]

DATA: Json = json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))
CASES: list[Json] = DATA["cases"]
ONCE = ("POST", "PATCH")  # methods that are never repeated
READING = ("GET", "HEAD", "OPTIONS", "TRACE", "QUERY")
REPEATED = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE")  # methods that may be sent again (RFC 9110 §9.2.2)
MOST = 3  # requests of one call, for the other methods


@dataclass(frozen=True)
class Outcome:
    """What came of one call: the result, whether it is an error, its text, and the methods and Accept headers of its requests."""

    result: Json
    failed: bool
    text: str
    methods: list[str]
    accepts: list[str]


@dataclass(frozen=True)
class Bench:
    """The server, connected in memory, and a stub of its API."""

    runner: asyncio.Runner
    stub: StubUpstream
    client: Client
    listed: dict[str, Json]

    def call(self, case: Json, arguments: Json) -> Outcome:
        """Call the case's tool. The stub answers as the case says, and nothing that it was sent may be wrong."""
        self.stub.expect(case)
        requests, mismatches = len(self.stub.requests), len(self.stub.mismatches)
        try:
            result = self.runner.run(self.client.call_tool(case["tool"], arguments))
        except McpError as error:
            result = {"isError": True, "content": [{"type": "text", "text": str(error)}]}
        assert self.stub.mismatches[mismatches:] == []
        text = "\n".join(block.get("text", "") for block in result["content"])
        sent = self.stub.requests[requests:]
        methods = [request.method for request in sent]
        accepts = [request.header("accept") or "" for request in sent]
        return Outcome(result, result.get("isError") is True, text, methods, accepts)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    server = Server("tested")
    server.mount_manifest(Path(bookshop_mcp._generated.__file__).parent)
    server.offer(mode="full", profile="full")  # tests need all tools
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        for variable in DATA["environment"]:
            patch.setenv(variable, f"test-{variable.lower()}")
        stack = AsyncExitStack()
        stub = runner.run(stack.enter_async_context(StubUpstream(CASES, environ=os.environ, base_path="/base")))
        patch.setenv(DATA["address"], stub.base_url)
        runner.run(stack.enter_async_context(upstream()))
        client = runner.run(stack.enter_async_context(connect(server)))
        listed = {tool["name"]: tool for tool in runner.run(client.list_tools())}
        yield Bench(runner, stub, client, listed)
        runner.run(stack.aclose())


def _each(key: str) -> list[Any]:
    """A parameter set for each entry of that list of every case; its name begins with the tool's."""
    return [
        pytest.param(case, entry, id=f"{case['tool']}-{_told(entry)}")
        for case in CASES
        for entry in ([case] if key == "calls" else []) + case["variants" if key == "calls" else key]
    ]


def _told(entry: Json) -> str:
    if "without" in entry:
        return f"without {entry['without']}"
    if "set" in entry:
        return json.dumps(entry["set"])[:60]
    return str(entry["status"]) if "status" in entry else entry.get("title", "all arguments")


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case['tool']}-") for case in CASES])
def test_the_list_shows_the_documented_arguments(case: Json, bench: Bench) -> None:
    schema = bench.listed[case["tool"]]["inputSchema"]
    assert sorted(schema.get("required", [])) == sorted(case["offers"]["required"])
    assert set(schema["properties"]) == {*case["offers"]["required"], *case["offers"]["optional"]}


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["request"]["method"] not in READING], ids=lambda case: case["tool"]
)
def test_a_tool_that_changes_something_is_not_called_read_only(case: Json, bench: Bench) -> None:
    hints = bench.listed[case["tool"]].get("annotations", {})
    assert not hints.get("readOnlyHint") or case.get("reads")


@pytest.mark.parametrize(("case", "call"), _each("calls"))
def test_a_call_becomes_the_documented_request(case: Json, call: Json, bench: Bench) -> None:
    done = bench.call({**case, **call}, call["arguments"])
    assert not done.failed, done.text
    assert done.methods == [case["request"]["method"]]
    kind = case["response"]["content_type"]
    assert (
        not kind.endswith("json") or kind in done.accepts[0]
    )  # an API that has several forms sends the one that is asked for
    _carries(done.result, case["response"])
    _conforms(done.result, bench.listed[case["tool"]])


@pytest.mark.parametrize(("case", "change"), _each("refused"))
def test_a_wrong_call_is_refused_before_anything_is_sent(case: Json, change: Json, bench: Bench) -> None:
    wrong = str(change.get("without") or next(iter(change["set"])))
    arguments = {name: value for name, value in case["arguments"].items() if name != wrong} | change.get("set", {})
    done = bench.call(case, arguments)
    assert done.failed, done.text
    assert done.methods == []
    assert wrong in done.text  # the model learns which argument is wrong
    assert "internal error" not in done.text


@pytest.mark.parametrize(("case", "answer"), _each("answers"))
def test_a_documented_answer_reaches_the_model(case: Json, answer: Json, bench: Bench) -> None:
    done = bench.call({**case, "response": answer}, case["arguments"])
    assert done.failed is (answer["status"] >= 300 and answer["status"] != 304), done.text
    if done.failed:
        assert str(answer["status"]) in done.text
        assert answer.get("says", "") in done.text
    else:
        _carries(done.result, answer)
        _conforms(done.result, bench.listed[case["tool"]])
    assert set(done.methods) == {case["request"]["method"]}
    assert len(done.methods) <= (1 if done.methods[0] in ONCE else MOST)


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case["request"]["method"] in REPEATED and not case.get("once")],
    ids=lambda case: case["tool"],
)
def test_what_the_api_fails_for_a_moment_is_asked_again(case: Json, bench: Bench) -> None:
    busy = {"status": 503, "content_type": "application/json", "body": {}, "headers": {"Retry-After": "0"}}
    done = bench.call({**case, "response": [busy, case["response"]]}, case["arguments"])
    assert not done.failed, done.text
    assert done.methods == [case["request"]["method"]] * 2


def test_the_address_of_the_api_is_the_documented_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (DATA["address"], "MCPFACTORY_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    assert upstream().base_url == DATA["base_url"]


def _carries(result: Json, response: Json) -> None:
    """The result has what the API answered."""
    body, kind = response["body"], response["content_type"]
    if kind.endswith(("/json", "+json")) and body is not None:  # not lines of JSON
        assert json.loads(result["content"][0]["text"]) == body
        assert result["structuredContent"] == (body if isinstance(body, dict) else {"result": body})
    elif kind.startswith("text/"):
        assert body in [block.get("text") for block in result["content"]]


def _conforms(result: Json, tool: Json) -> None:
    """Structured content is what the list says that it will be."""
    if "outputSchema" in tool:
        compile_schema(tool["outputSchema"]).validate(result["structuredContent"])
