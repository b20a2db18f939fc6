"""Evaluation cases are asked by `validate`: a server and a model of its API as processes, and what their answers show."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from mcpfactory_pipeline.checks import evaluation_calls
from mcpfactory_pipeline.checks.evaluation_calls import EvaluationSetup
from mcpfactory_pipeline.checks.exchange import HANDSHAKES, ValidationTarget
from mcpfactory_pipeline.checks.report import ValidationReport
from mcpfactory_pipeline.checks.validation import validate
from mcpfactory_pipeline.launch.server_connection import run_simulated_api
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase
from tests.pipeline.conftest import ROOT
from tests.skip_conditions import needs
from tests.subtest_table import parametrize_subtests

# Of the standard library alone, and of the handshake's revisions: `validate` starts it a dozen times.
SERVER = '''\
import json, os, sys
from tests.broken_servers.consent import HealthyCareful, text

class ToolError(Exception):
    """What a tool refuses."""

def ask(path: str) -> dict:
    import urllib.request
    base = os.environ.get("STOCK_BASE_URL")
    if base is None:
        raise ToolError("STOCK_BASE_URL is not set: where is the API?")
    try:
        with urllib.request.urlopen(base + path) as answer:
            return json.load(answer)
    except OSError as error:
        raise ToolError(f"the API failed: {{error}}") from None

class Stock(HealthyCareful):
    def respond(self, message):
        (message.get("params") or {{}}).pop("_meta", None)
        return super().respond(message)

    def tools(self):
        isbn = {{"type": "string", "description": "Number of the book."}}
        schema = {{"type": "object", "properties": {{"isbn": isbn}}, "required": ["isbn"]}}
        hints = {{"readOnlyHint": {reads}, "openWorldHint": True}}
        about = "Say how many copies of a book the shop has left."
        return [{{"name": "copies_left", "description": about, "inputSchema": schema, "annotations": hints}}]

    def call(self, name, arguments):
        try:
            return text(self.copies_left(arguments["isbn"]))
        except ToolError as error:
            return text(str(error), isError=True)

    def copies_left(self, isbn):
{body}

Stock(sys.argv[1].split(","), []).run()
'''
MODEL = """\
import json, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        known = {known}
        body = json.dumps({{"copies": 42}} if known else {{"error": "no such book"}}).encode()
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass

api = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=api.serve_forever, daemon=True).start()
print(json.dumps({{"environment": {{"STOCK_BASE_URL": f"http://127.0.0.1:{{api.server_port}}"}}}}), flush=True)
sys.stdin.read()
"""
HONEST = "return f\"{ask('/books/' + isbn)['copies']} copies are left\""
CONSTANT = "if 'STOCK_BASE_URL' not in os.environ: raise ToolError('not set')\nreturn 'Done: 42 copies are left'"
ASKING = f"if not self.agrees():\n    raise ToolError('nobody agreed')\n{HONEST}"
KNOWN = "self.path == '/books/1'"
SAYS = ["42 copies"]


def examined(
    folder: Path, *, body: str = HONEST, model: str = KNOWN, reads: bool = True, says: Any = SAYS, **more: Any
) -> ValidationReport:
    """The report on a server whose only tool needs its API, with one evaluation case."""
    (folder / "server.py").write_text(SERVER.format(body=indent(body, " " * 8), reads=reads))
    program = folder / "upstream.py"
    program.write_text(MODEL.format(known=model) if model else "print('nonsense')")
    call = {"tool": "copies_left", "arguments": {"isbn": "1"}, "says": says, **more}
    case = EvaluationCase.model_validate({"name": "left", "question": "How many are left?", "right": [[call]]})
    command = (sys.executable, program.name)
    evaluations = EvaluationSetup([case], lambda: run_simulated_api(command, cwd=folder, environ={}), dict)
    started = (sys.executable, "-S", "server.py", ",".join(HANDSHAKES))
    target = ValidationTarget(command=started, cwd=folder, environ={"PYTHONPATH": str(ROOT)})
    return asyncio.run(validate(target, evaluations=evaluations))


def found(report: ValidationReport, rule: str) -> list[str]:
    return [one.message for one in report.findings if one.rule == rule]


def test_a_server_whose_every_tool_needs_its_api_is_shown_to_work_by_what_a_person_said_is_right(tmp_path):
    report = examined(tmp_path)
    assert report.passed, report.to_text()
    assert (found(report, "tool-calls.coverage"), dict(report.uncalled)) == ([], {})
    assert "tool-calls.evaluation-cases" in report.checked


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"says": []}, "does not say what the answer contains"),
        ({"body": CONSTANT}, "is the same without its API"),
        ({"model": "True"}, "answers every request"),
    ],
    ids=["a case that says nothing", "a constant answer", "a model that answers anything"],
)
def test_a_case_that_shows_nothing_opens_no_gate_and_covers_no_tool(tmp_path, changes, why):
    report = examined(tmp_path, reads=False, **changes)
    assert not report.passed
    assert report.verdict == "not shown"
    assert "tool-calls.some-succeed" in report.failed_gates
    assert [why in one for one in found(report, "tool-calls.coverage")] == [True]
    assert found(report, "tool-calls.evaluation-cases") == []


def test_a_model_that_does_not_start_closes_no_gate_and_is_told(tmp_path):
    report = examined(tmp_path, model="")
    (message,) = found(report, "tool-calls.evaluation-cases")
    assert message.startswith("not every evaluation case could be run: the model of the API does not start")
    assert "tool-calls.evaluation-cases" not in report.failed_gates


@pytest.mark.parametrize(
    ("body", "closed"),
    [("import time\ntime.sleep(600)", False), ("os._exit(3)", True)],
    ids=["silent", "ended"],
)
def test_what_is_not_answered_in_time_closes_no_gate_and_a_server_that_ends_does(tmp_path, monkeypatch, body, closed):
    monkeypatch.setattr(evaluation_calls, "_ANSWER", 20.0)
    lives = "if 'STOCK_BASE_URL' not in os.environ: raise ToolError('not set')\n"
    report = examined(tmp_path, body=lives + body, reads=False)
    (message,) = found(report, "tool-calls.evaluation-cases")
    assert "left: the server gave no answer" in message
    assert ("tool-calls.evaluation-cases" in report.failed_gates) is closed
    assert not report.passed


@parametrize_subtests(
    "body, person, message",
    [
        (ASKING, {"agreed": True}, None),
        (HONEST, {"agreed": True}, "acted without asking a person"),
        (
            ASKING.replace("if not ", "if not self.agrees() and False and "),
            {"agreed": True},
            "as if the person had agreed, although the person declined",
        ),
    ],
)
def test_a_tool_asks_a_person_where_its_case_says_so_and_does_what_they_answer(tmp_path, body, person, message):
    report = examined(tmp_path, body=body, reads=False, person=person)
    messages = found(report, "tool-calls.evaluation-cases")
    assert [message in one for one in messages] == ([True] if message else []), report.to_text()
    assert report.passed is (message is None), report.to_text()


STAYS = """
import json, os, signal
print(json.dumps({"environment": {"PID": str(os.getpid())}}), flush=True)
signal.pause()
"""


@needs("linux")
def test_no_process_of_a_model_is_left_when_the_wait_for_its_end_is_cancelled(tmp_path):
    async def cancel() -> None:
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def use() -> None:
            async with run_simulated_api([sys.executable, "-c", STAYS], cwd=tmp_path, environ={}) as api:
                ready.set_result(api.environment["PID"])

        using = asyncio.create_task(use())
        pid = await ready  # from here on it waits for the end of the process, which does not come
        using.cancel()
        with pytest.raises(asyncio.CancelledError):
            await using
        assert not Path("/proc", pid).exists()  # noqa: ASYNC240 - at this moment, not later

    asyncio.run(cancel())
