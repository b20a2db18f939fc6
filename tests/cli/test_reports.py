"""`validate` gives its report in several forms at once, and `waive` accepts a finding for a time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from mcpfactory_pipeline.checks.exchange import HANDSHAKES
from mcpfactory_pipeline.isolation.levels import side_effect_free_level
from tests.cli.conftest import ROOT
from tests.dates import NEXT_MONTH
from tests.pipeline.checks.code_scanning import upload_faults

ZOO = f"{sys.executable} -c pass"


def test_every_format_is_written_into_a_folder_and_the_text_is_printed(shop, tmp_path):
    wanted = [word for name in ("json", "junit", "sarif", "markdown", "html", "badge") for word in ("--format", name)]
    done = shop("validate", "bookshop", *wanted, "--output", str(tmp_path / "reports"))
    assert done.out.startswith("PASSED")
    files = {file.name: file.read_text() for file in (tmp_path / "reports").iterdir()}
    assert set(files) == {"report.json", "junit.xml", "report.sarif", "report.md", "report.html", "badge.svg"}
    report = json.loads(files["report.json"])
    score = report["score"]
    assert f"score {score}/100" in done.out
    assert f"{score}/100" in files["badge.svg"]
    assert ET.fromstring(files["junit.xml"])[0].get("failures") is not None
    assert upload_faults(json.loads(files["report.sarif"]), shop.folder) == []
    # What each tool did while its API failed.
    rows = report["api_failures"]
    assert {row["then"] for row in rows} == {"works"}
    assert len(rows) == 36  # 18 failures, for a tool that reads and one that writes
    (post,) = [row for row in rows if row["does"] == "answers 503" and row["method"] == "POST"]
    assert post["sent"] == "once"
    assert "503 Service Unavailable" in post["answer"]


def test_one_format_without_a_file_is_what_is_printed(empty):
    done = empty("validate", "--command", ZOO, "--timeout", "10", "--format", "sarif")
    assert done.code == 1
    assert done.data["version"] == "2.1.0"


def sarif_places(cli, *words):
    """Where the findings about a server are, after they were checked for an upload from the folder above."""
    log = cli("validate", *words, "--timeout", "10", "--format", "sarif").data
    assert upload_faults(log, cli.folder.parent) == []
    places = [one["locations"][0]["physicalLocation"] for one in log["runs"][0]["results"]]
    return {(one["artifactLocation"]["uri"], one["region"]["startLine"]) for one in places}


def test_findings_about_a_server_elsewhere_are_at_the_file_of_the_repository_that_names_it(empty, tmp_path):
    url, command = "http://127.0.0.1:9/mcp", f"{sys.executable} -c pass"
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    cli = empty.at(tmp_path / "a b")
    cli.folder.mkdir()
    (cli.folder / "package.json").write_text("{}")
    assert sarif_places(cli, "--url", url) == {("a%20b/package.json", 1)}
    servers = {"one": {"command": sys.executable, "args": ["-c", "pass"]}, "two": {"url": url}}
    (cli.folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}, indent=1))
    assert sarif_places(cli, "--url", url) == {("a%20b/.mcp.json", 11)}
    assert sarif_places(cli, "--command", command) == {("a%20b/.mcp.json", 7)}
    (tmp_path / "own.py").write_text("")
    assert sarif_places(cli, "--command", f"{sys.executable} ../own.py") == {("a%20b/package.json", 1)}
    (cli.folder / "own.py").write_text("")
    assert sarif_places(cli, "--command", f"{sys.executable} own.py") == {("a%20b/own.py", 1)}


def test_the_name_of_a_file_says_the_format(empty):
    done = empty("validate", "--command", ZOO, "--timeout", "10", "-o", "a.html", "-o", "b.svg")
    assert done.code == 1
    assert (empty.folder / "a.html").read_text().startswith("<!DOCTYPE html>")
    assert (empty.folder / "b.svg").read_text().startswith("<svg")


def test_formats_and_files_that_do_not_go_together_are_refused_before_anything_runs(empty):
    for words in (["-f", "pdf"], ["-o", "report"], ["-f", "html", "-f", "json"], ["-f", "html", "-o", "a", "-o", "b"]):
        done = empty("validate", "--command", ZOO, *words)
        assert (done.code, done.out) == (2, "")
        assert "hint:" in done.err


def test_a_waiver_is_written_beside_the_server_and_the_report_lists_it(shop):
    rule = "descriptions.arguments"
    done = shop(
        "waive", rule, "--server", "bookshop", "--reason", "soon", "--expires", NEXT_MONTH, "--tool", "list_books"
    )
    assert done.code == 0, done.err
    assert "by tester" in done.out
    text = (shop.folder / "servers/bookshop/waivers.toml").read_text()
    assert f"until = {NEXT_MONTH}" in text
    again = f"waive {rule} --server bookshop --reason later --expires {NEXT_MONTH} --tool list_books --dry-run"
    assert f"it replaces the waiver until {NEXT_MONTH} by tester: soon" in shop(*again.split()).err
    report = shop("validate", "bookshop", "--json", "--limit", "max_start_ms=0", "--limit", "max_call_ms=60000").data
    assert [(one["rule"], one["person"], one["tool"]) for one in report["waivers"]] == [(rule, "tester", "list_books")]
    assert report["measured"]["start_ms"] > 0
    costs = {one["rule"] for one in report["findings"] if one["rule"].startswith("performance.")}
    assert costs == {"performance.start"}
    assert "performance.calls" in report["checked"]
    assert "performance.memory" in report["not_applicable"], "no limit was given"


# A server whose only tool needs an argument, a variable, and somebody's word that it may be called.
SHY = """
import json, os, sys
for line in sys.stdin:
    try:
        asked = json.loads(line)
    except ValueError:
        continue
    method, params = asked.get("method"), asked.get("params") or {}
    if method is None:
        continue
    version = params.get("protocolVersion")
    answers = {
        "initialize": {"protocolVersion": version if version in ("2025-06-18", "2025-11-25") else "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "shy", "version": ""}},
        "ping": {},
        "tools/list": {"tools": [{"name": "look_up", "description": "Look a word up in the dictionary of the house.",
            "inputSchema": {"type": "object", "properties": {"word": {"type": "string", "description": "The word."}}, "required": ["word"]}}]},
        "tools/call": {"content": [{"type": "text", "text": params.get("name", "") + " " + os.environ.get("HOUSE", "nothing")}], "isError": "HOUSE" not in os.environ},
    }
    if "id" in asked:
        known = method in answers and "io.modelcontextprotocol/protocolVersion" not in params.get("_meta", {})
        answer = {"result": answers[method]} if known else {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


def test_what_could_not_be_shown_of_a_foreign_server_is_another_verdict_than_what_is_wrong(empty):
    (empty.folder / "shy.py").write_text(SHY)
    (empty.folder / "cases.json").write_text('[{"tool": "look_up", "arguments": {"word": "owl"}}]')
    command = ("validate", "--command", f"{sys.executable} -S shy.py", "--json")
    verdicts = {
        words: (done.code, done.data["verdict"])
        for words in (
            (),
            ("--policy", "promotion"),
            ("--cases", "cases.json"),
            ("--cases", "cases.json", "--env", "HOUSE=zoo"),
        )
        for done in [empty(*command, *words)]
    }
    assert list(verdicts.values()) == [(7, "not shown"), (1, "not shown"), (1, "refused"), (0, "passed")]


def test_a_rule_is_explained_by_its_id_and_a_mistyped_one_is_answered_with_those_near(empty):
    done = empty("validate", "--explain", "content.base64")
    assert (done.code, "RFC 4648" in done.out, "gate" in done.out) == (0, True, True)
    assert empty("validate", "--explain", "http.get", "--json").data["rule"] == "http.get"
    lost = empty("validate", "--explain", "content.base32")
    assert lost.code == 3
    assert "content.base64" in lost.err


STASH = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.broken_servers.healthy import SampleServer, text

class Stash(SampleServer):
    def tools(self):
        mode = {{"type": "object", "properties": {{"mode": {{"type": "string"}}}}}}
        about = {{"read_board": "Return the lines on the notice board.", "work": "Push, list or pop what was laid aside."}}
        schemas = {{"read_board": {{"type": "object"}}, "work": mode}}
        return [{{"name": name, "description": about[name], "inputSchema": schema,
                 "annotations": {{"readOnlyHint": name == "read_board"}}}} for name, schema in schemas.items()]

    def call(self, name, arguments):
        if name == "work" and os.path.exists("work.txt"):
            os.rename("work.txt", "aside.txt")
        return text("two lines")

Stash({list(HANDSHAKES)!r}, []).run()
"""

RECORDER = """
import subprocess, sys

with subprocess.Popen([sys.executable, "-S", "stash.py"], stdin=subprocess.PIPE) as server, open("sent.jsonl", "a") as sent:
    for line in sys.stdin.buffer:
        sent.write(line.decode(errors="replace"))
        server.stdin.write(line)
        server.stdin.flush()
    server.stdin.close()
"""


def test_validate_lists_every_call_that_the_server_received(empty):
    (empty.folder / "stash.py").write_text(STASH)
    (empty.folder / "recorder.py").write_text(RECORDER)
    (empty.folder / "work.txt").write_text("hours of work")
    report = empty("validate", "--command", f"{sys.executable} -S recorder.py", "--allow-calls", "--json").data
    sent = map(message_of, (empty.folder / "sent.jsonl").read_text().splitlines())
    params = [message["params"] for message in sent if message.get("method") == "tools/call"]
    received = [(one["name"], one["arguments"]) if isinstance(one, dict) else ("", one) for one in params]
    listed = [(call["tool"], call["arguments"]) for call in report["called"]]
    masked = [re.sub(r"mcpfactory-bait-\w+", "[folder of the bait]", json.dumps(one)) for one in received]
    assert sorted(map(json.dumps, listed)) == sorted(masked)


def message_of(line: str) -> dict:
    """The JSON object of a line; {} where validate sent what is none, on purpose."""
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


SANDBOX = side_effect_free_level() is not None


def test_validate_calls_no_name_that_a_tool_which_may_write_has_too(empty):
    listed = """[{"name": "work", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": hint}} for hint in (True, False)]"""
    (empty.folder / "twins.py").write_text(TWINS.format(listed=listed))
    report = empty("validate", "--command", f"{sys.executable} -S twins.py", "--json").data
    assert ("work" in {call["tool"] for call in report["called"]}) is SANDBOX
    assert ("work" in report["not_called"]) is not SANDBOX


TWINS = """
import json, sys

for line in sys.stdin:
    try:
        asked = json.loads(line)
    except ValueError:
        continue
    result = {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "t", "version": "1"}}}}
    if isinstance(asked, dict) and "id" in asked:
        result = {{"tools": {listed}}} if asked.get("method") == "tools/list" else result
        print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": result}}), flush=True)
"""


@pytest.mark.parametrize(
    ("words", "consent"),
    [((), False), (("--cases", "cases.json"), True)],
    ids=["no consent", "--cases"],
)
def test_validate_calls_a_tool_that_may_write_only_with_consent_and_lists_its_calls(empty, words, consent):
    (empty.folder / "stash.py").write_text(STASH)
    (empty.folder / "cases.json").write_text('[{"tool": "work", "arguments": {}}]')
    work = empty.folder / "work.txt"
    work.write_text("hours of work")
    command = ("validate", "--command", f"{sys.executable} -S stash.py", *words)
    text = empty(*command, "-o", "report.json").out
    report = json.loads((empty.folder / "report.json").read_text())
    assert work.exists() is not consent
    made = {"tool": "work", "arguments": {}}
    assert (made in report["called"], "work" in report["not_called"]) == (consent or SANDBOX, not consent)
    assert {"tool": "read_board", "arguments": {}} in report["called"]
    assert ("read_board" in text, "work: it is not marked readOnlyHint" in text) == (True, not consent)


PICKY = """
from mcpfactory_runtime import Server

server = Server("picky", version="1")

@server.tool(annotations={"readOnlyHint": True})
def double(number: str) -> str:
    "Return the double of a number in Roman numerals."
    return {"II": "IV"}[number]

server.run()
"""


def test_the_cases_that_validate_writes_are_cases_after_a_person_filled_them_in(empty):
    (empty.folder / "picky.py").write_text(PICKY)
    command = ("validate", "--command", f"{sys.executable} picky.py")
    assert empty(*command, "--write-cases", "cases.json").code == 7
    cases = empty.folder / "cases.json"
    (case,) = json.loads(cases.read_text())
    assert (case["tool"], "replace the arguments" in case["title"]) == ("double", True)
    cases.write_text(cases.read_text().replace(json.dumps(case["arguments"]["number"]), '"II"'))
    assert empty(*command, "--cases", "cases.json").code == 0
