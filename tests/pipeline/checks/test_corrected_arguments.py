"""Tools that only failed are called again with arguments from texts, samples and error messages."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from mcpfactory_pipeline.checks.call_plan import PlannedCall, propose_cases
from mcpfactory_pipeline.checks.canaries import Canaries
from mcpfactory_pipeline.checks.corrected_arguments import correct_failed_calls
from mcpfactory_pipeline.checks.evidence import RecordedCall
from mcpfactory_pipeline.checks.exchange import ValidationTarget, WireExchange
from mcpfactory_pipeline.checks.sample_files import SampleFiles
from mcpfactory_pipeline.checks.samples import sample_arguments, scalar_values
from mcpfactory_pipeline.checks.validation import observe_server
from tests.subtest_table import parametrize_subtests

PAGE = "http://127.0.0.1:1/page.html"


def recorded(planned: PlannedCall, run: Callable[..., object]) -> RecordedCall:
    """Call a function as a tool: an exception is the tool's error message."""
    try:
        result = {"content": [{"type": "text", "text": str(run(**planned.arguments))}]}
    except (ValueError, OSError) as error:
        result = {"content": [{"type": "text", "text": str(error)}], "isError": True}
    sent = {"method": "tools/call", "params": {"name": planned.tool, "arguments": dict(planned.arguments)}}
    return RecordedCall(planned.tool, WireExchange(sent, {"result": result}), planned.origin, planned.title)


def corrected(tools: list[tuple[dict[str, Any], Callable[..., object]]]) -> dict[str, dict[str, Any]]:
    """Return the corrected arguments of each tool whose first call failed."""
    samples, runs = SampleFiles(), {tool["name"]: run for tool, run in tools}
    named = {tool["name"]: tool for tool, _ in tools}
    calls = [
        recorded(PlannedCall(name, *sample_arguments(tool["inputSchema"], tool.get("description"))), runs[name])
        for name, tool in named.items()
    ]
    assert all(call.failed for call in calls)

    async def send(planned: PlannedCall) -> RecordedCall:
        calls.append(recorded(planned, runs[planned.tool]))
        return calls[-1]

    try:
        found = asyncio.run(correct_failed_calls(named, calls, send, samples, PAGE))
    finally:
        samples.remove()
    assert len(calls) < 10 * len(tools)
    return {one.tool: dict(one.arguments) for one in found}


def tool(name: str, part: object, description: str = "", key: str = "a", required: bool = True) -> dict[str, Any]:
    schema = {"type": "object", "properties": {key: part}, "required": [key] * required}
    return {"name": name, "description": description, "inputSchema": schema}


def only(*valid: str, message: str) -> Callable[..., object]:
    """Return a function that accepts only these values."""

    def run(**arguments: object) -> object:
        if not arguments or not set(map(str, arguments.values())) <= set(valid):
            raise ValueError(message.format(*arguments.values()))
        return "done"

    return run


TEXT = {"type": "string"}


@parametrize_subtests(
    "part, run, value",
    [
        (TEXT, only("/srv/x", message="path '{0}' is outside the allowed folder '/srv/x'"), "/srv/x"),
        (TEXT, only("yard", message="unknown unit {0}. Use one of: meter, yard"), "yard"),
        (TEXT, only("b7", message="no such board\nAvailable boards:\n- a1 (old)\n- b7"), "b7"),
        (TEXT, only("2024-01-31", message="expected the format YYYY-MM-DD"), "2024-01-31"),
        (TEXT, only("2024-01-31T12:00:00Z", message="not an ISO 8601 timestamp"), "2024-01-31T12:00:00Z"),
        ({"type": "array", "items": TEXT, "minItems": 1}, only("['up']", message="choose 'up'"), ["up"]),
        ({**TEXT, "description": "open|closed"}, only("open", message="no"), "open"),
        ({**TEXT, "description": "Day (YYYY/MM/DD)"}, only("2024/01/31", message="no"), "2024/01/31"),
        ({**TEXT, "description": "Email of a reader"}, only("reader@example.com", message="no"), "reader@example.com"),
        ({**TEXT, "description": "URL of a page"}, only(PAGE, message="no"), PAGE),
    ],
)
def test_messages_and_descriptions_give_values(part: object, run: Callable[..., object], value: object) -> None:
    assert corrected([(tool("choose", part), run)]) == {"choose": {"a": value}}


def test_an_optional_argument_that_the_message_requests_is_added() -> None:
    quarter = tool("report", {"anyOf": [{"enum": ["Q1", "Q2"]}, {"type": "null"}]}, key="quarter", required=False)
    found = corrected([(quarter, only("Q1", message="pass quarter on the call"))])
    assert found == {"report": {"quarter": "Q1"}}


@parametrize_subtests(
    "name, part, description, suffix",
    [
        ("csv_path", TEXT, "Sum a column.\n\nArgs:\n    csv_path: absolute path to the file\n", ".csv"),
        ("path", TEXT, "Read a PDF file.", ".pdf"),
        ("path", {**TEXT, "description": "Path of a *.dbc database"}, "", ".dbc"),
        (
            "documents",
            {"type": "array", "items": {"properties": {"path": TEXT, "url": TEXT}}},
            "Read XML files",
            ".xml",
        ),
        ("dir", TEXT, "List a folder.", ""),
        ("../x path", TEXT, "Read any file.", ".txt"),
    ],
)
def test_paths_are_sample_files(name: str, part: object, description: str, suffix: str) -> None:
    def read(**arguments: Any) -> object:
        (value,) = scalar_values(arguments)
        if not Path(value).is_absolute() or not Path(value).exists() or Path(value).suffix != suffix:
            raise ValueError("cannot be read")
        return value

    assert "read" in corrected([(tool("read", part, description, key=name), read)])


def test_a_second_message_corrects_the_second_argument() -> None:
    def run(shelf: str, unit: str) -> object:
        if shelf != "attic":
            raise ValueError("unknown shelf, use 'attic'")
        if unit != "yard":
            raise ValueError("unknown unit, use 'yard'")
        return "done"

    both = {"type": "object", "properties": {"shelf": TEXT, "unit": TEXT}, "required": ["shelf", "unit"]}
    assert corrected([({"name": "measure", "inputSchema": both}, run)]) == {
        "measure": {"shelf": "attic", "unit": "yard"}
    }


def test_a_request_of_the_sample_page_is_no_canary() -> None:
    async def visited(url: str) -> bool:
        async with Canaries() as canaries:
            await asyncio.to_thread(lambda: urlopen(canaries.url + url).read())
            return canaries.taken("address", "")

    assert [asyncio.run(visited(url)) for url in ("/bait", "/page.html")] == [True, False]


def test_a_corrected_value_helps_other_tools() -> None:
    first = only("/srv/x", message="'{0}' is outside of '/srv/x'")
    named = [tool("a", TEXT, key="place"), tool("b", TEXT, key="place")]
    found = corrected([(named[0], first), (named[1], only("/srv/x", message="refused"))])
    assert found == {"a": {"place": "/srv/x"}, "b": {"place": "/srv/x"}}


def test_the_number_of_calls_is_bounded() -> None:
    def refuse(**arguments: object) -> object:
        raise ValueError(
            f"use one of: {', '.join(f'{value}-{turn}' for value in arguments.values() for turn in 'abcdef')}"
        )

    assert corrected([(tool("refuse", TEXT), refuse)]) == {}


SERVER = """
from mcpfactory_runtime import Server, ToolError
server = Server("shelves", version="1.0.0")

@server.tool(annotations={"readOnlyHint": True})
def count_lines(text_path: str) -> int:
    "Count the lines of a text file."
    with open(text_path) as lines:
        return len(list(lines))

@server.tool(annotations={"readOnlyHint": True})
def heading(url: str) -> str:
    "Return the heading of a page."
    import urllib.request
    return urllib.request.urlopen(url).read().decode().partition("<h1>")[2].partition("<")[0]

@server.tool(annotations={"readOnlyHint": False})
def empty_file(path: str) -> str:
    "Empty a file."
    if path != "/srv/x":
        raise ToolError("the only permitted path is '/srv/x'")
    return "done"

server.run()
"""


def test_only_read_only_tools_are_corrected_outside_the_sandbox(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    environ = {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = (sys.executable, str(tmp_path / "server.py"))
    target = ValidationTarget(command=command, cwd=tmp_path, environ=environ, allow_calls=True)
    evidence, secrets = asyncio.run(observe_server(target))
    assert {call.tool for call in evidence.calls if not call.failed} == {"count_lines", "heading"}
    assert {call.exchange.params["arguments"].get("path") for call in evidence.calls} == {None, "value", "1"}
    assert "later" not in {one.kind for one in evidence.comparisons}, "calls that write may change other results"
    titles = {case["tool"]: case["title"] for case in propose_cases(evidence)}
    assert titles["count_lines"] == "replace the sample (the call succeeded)"
    reason = "the server answered: the only permitted path is '/srv/x'"
    assert titles["empty_file"] == f"replace the arguments ({reason})"
    assert secrets["folder of the samples"].startswith("mcpfactory-samples-")
