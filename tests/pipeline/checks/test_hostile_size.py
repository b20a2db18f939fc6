"""What a server sends to be judged costs in proportion to its size, and odd values break nothing."""

from __future__ import annotations

import base64
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mcpfactory_pipeline.checks.canaries import canary_tool_probes
from mcpfactory_pipeline.checks.evidence import Evidence, Listing, RecordedCall, Session
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.jsonschemas import instance_error
from mcpfactory_pipeline.checks.modified_states import tamper_request_state
from mcpfactory_pipeline.checks.resource_templates import expand_uri_template, listed_uri_templates
from mcpfactory_pipeline.checks.samples import extra_valid_arguments, extreme_arguments, vary_texts_and_numbers
from mcpfactory_pipeline.checks.transport import conversation
from mcpfactory_pipeline.checks.transport.conversation import MessageLog, split_streams
from mcpfactory_pipeline.checks.transport.header_arguments import header_value
from tests.subtest_table import parametrize_subtests


def test_a_flood_on_streams_is_kept_up_to_a_bound_and_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []
    real = conversation.is_acknowledgement
    monkeypatch.setattr(conversation, "is_acknowledgement", lambda message: looked.append(message) or real(message))
    log = MessageLog(Session("a flood"))
    log.heard = []
    for _ in range(12_000):
        log.received({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
    assert len(log.heard) == 10_000
    first, second = split_streams([{"id": 1}, {"id": 2}], log.heard)
    assert (len(first.heard), len(second.heard)) == (10_000, 0)
    assert len(looked) == 10_000


CANARIES: Any = SimpleNamespace(files=[Path("/x"), Path("/y")], url="http://127.0.0.1:1", url_forms=[])


@parametrize_subtests(
    "name, description, tempted",
    [
        ("transcript", "Fetches the transcript of a video.", True),
        ("subscribe", "Stores a subscription and its description.", True),
        ("rates", "Rates of a currency code at the terminal of an airport.", True),
        ("run_cmd", "Does it.", False),
        ("exec", "Runs a program in the sandbox and returns what it prints.", False),
        ("pythonRepl", "A session.", False),
        ("do", "Run the given Python code.", False),
        ("do", "Executes a shell command.", False),
    ],
)
def test_only_tools_that_are_there_to_run_something_get_no_commands(
    name: str, description: str, *, tempted: bool
) -> None:
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    tool = {"name": name, "description": description, "inputSchema": schema}
    kinds = {one.kind for one in canary_tool_probes([(name, tool)], {name: {"word": "x"}}, CANARIES)}
    assert ("command" in kinds) is tempted


def test_tools_that_state_a_path_get_canaries_before_others() -> None:
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    tools = [(name, {"name": name, "inputSchema": schema}) for name in (*"abcdefgh", "read_file")]
    probes = canary_tool_probes(tools, {name: {"word": "x"} for name, _ in tools}, CANARIES)
    assert "read_file" in {one.target for one in probes if one.kind == "file"}


@parametrize_subtests(
    "schema",
    [
        {"allOf": [{"$ref": "#"}]},
        {"$ref": "#/x-hidden", "x-hidden": {"pattern": "("}},
        {"$ref": "#/x-hidden", "x-hidden": {"type": "word"}},
        {"$ref": "#/x-hidden", "x-hidden": {"minLength": "many"}},
    ],
)
def test_a_schema_that_cannot_be_evaluated_is_an_error(schema: dict[str, Any]) -> None:
    assert instance_error("word", schema) == "the schema cannot be evaluated"


_SLOW = {"type": "string", "pattern": r"^(\w+\s?)+!$"}  # refuses a text in exponential time


@parametrize_subtests("part", [_SLOW, {"type": "string", "anyOf": [_SLOW]}])
def test_a_pattern_of_a_server_is_given_no_text_that_it_did_not_choose(part: dict[str, Any]) -> None:
    schema = {"properties": {"word": part}}
    assert extra_valid_arguments(schema, {"word": "a!"}) == extreme_arguments(schema, {"word": "a!"}) == []
    assert instance_error("word " * 1_000, part) == ""


@parametrize_subtests("value", ["[" * 600 + "]" * 600, "9" * 4_300])
def test_each_state_has_a_modified_form(value: str) -> None:
    state = base64.urlsafe_b64encode(value.encode()).decode()
    assert tamper_request_state(state) != state


def test_the_largest_number_has_no_larger_neighbor() -> None:
    schema = {"properties": {"count": {"type": "integer"}}}
    assert vary_texts_and_numbers(schema, {"count": int("9" * 4_300)}) == []


def test_half_of_a_surrogate_pair_can_be_sent_in_a_uri_and_a_header() -> None:
    assert expand_uri_template("zoo://{cage}", {"cage": "owl \ud83e"}, Evidence()) == ["zoo://owl%20%3F"]
    assert header_value("\ud83e") == "=?base64?Pw==?="


def test_few_lines_of_a_result_are_tried_and_no_template_with_many_variables() -> None:
    lines = "\n".join(map(str, range(100_000)))
    result = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": lines}]}}
    many = "zoo://{" + ",".join(f"a{number}" for number in range(100_000)) + "}"
    listed = Listing("resources/templates/list", tuple({"uriTemplate": one} for one in (many, "zoo://{cage}")))
    evidence = Evidence(calls=[RecordedCall("cages", WireExchange({}, result), "guess")])
    evidence.lists[listed.method] = listed
    assert listed_uri_templates(evidence) == ["zoo://{cage}"]
    assert expand_uri_template("zoo://{cage}", {}, evidence) == ["zoo://0", "zoo://1", "zoo://2", "zoo://3"]
