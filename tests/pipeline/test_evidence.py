"""What a server's tests show: whatever its files do to pytest, a test that failed or did not run is no proof."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpfactory_pipeline.stages.test import (
    defined_tests,
    judge_tests,
    missing_tests_by_candidate,
    prepare_evidence,
    read_evidence,
    store_passed_tests,
)

HONEST = """
import asyncio
from mcpfactory_runtime import Server
from mcpfactory_runtime.testing import connect

server = Server("s")

@server.tool()
def echo(text: str) -> str:
    '''Says it again.'''
    return text

def test_plain():
    assert echo

def test_tool():
    async def call():
        async with connect(server) as client:
            return await client.call_tool("echo", {"text": "a"})
    assert not asyncio.run(call()).get("isError")
"""
BROKEN = "def test_broken():\n    assert 1 == 2\n"
FORGED = (
    "import pytest\n@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
    "    report = yield\n    report.outcome = 'passed'\n    return report\n"
)
UNSEEN = (
    "def pytest_collection_modifyitems(items):\n    items[:] = [one for one in items if 'broken' not in one.name]\n"
)
UNRUN = "def pytest_runtest_protocol(item):\n    return True if 'broken' in item.name else None\n"
SETTINGS = '[tool.pytest.ini_options]\naddopts = ["--import-mode=importlib"{more}]\n'
LEAVES = """
import os, sys
def test_it():
    for word in sys.argv:
        if word.startswith("--junit-xml="):
            open(word.partition("=")[2], "w").write('<testsuites><testsuite tests="1" errors="0" failures="0" skipped="0"/></testsuites>')
    os._exit(0)
"""
GUESSES = """
import json, os, pathlib
def test_it():
    record = {"nonce": "", "tests": {"tests/t.py::t": {"outcome": "passed", "tools": ["echo"]}}, "errors": [], "deselected": []}
    (pathlib.Path.cwd().parent / "evidence/record.json").write_text(json.dumps(record))
    os._exit(0)
"""


def look(folder: Path, files: dict[str, str], more: str = "", *, plugins: bool = False):
    """Runs pytest as the stage does, with the interpreter of this process; gives its exit code and what the plugin saw."""
    bench = folder / "bench"
    for name, text in files.items():
        (bench / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        (bench / "tests" / name).write_text(text)
    (bench / "pyproject.toml").write_text(SETTINGS.format(more=more))
    evidence = prepare_evidence(folder / "evidence")
    words = ["tests", "-q", "-p", "no:cacheprovider", *evidence.options, f"--junit-xml={folder / 'junit.xml'}"]
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), **evidence.environ}
    environ |= {} if plugins else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=bench, env=environ, capture_output=True, check=False
    )
    return done.returncode, read_evidence(evidence, defined_tests(bench / "tests", sorted(files)))


def test_what_passed_and_what_ran_a_tool_are_counted_apart(tmp_path):
    code, seen = look(tmp_path, {"test_a.py": HONEST})
    assert seen.facts() == {
        "tests": 2, "passed": 2, "failed": 0, "skipped": 0, "deselected": 0, "tool_tests": 1, "tools_run": 1,
    }  # fmt: skip
    assert (judge_tests(code, seen).outcome, judge_tests(code, seen).message) == ("passed", "2 passed")


OUT = "passed", "1 passed, 1 deselected: test_broken; they ran no tool of the server"
FAILED = "failed", "1 of 2 tests failed: test_broken; first: AssertionError: assert 1 == 2"
NO_MODULE = "ModuleNotFoundError: No module named 'no_such_module'"
LOST = "failed", f"1 test file cannot be collected: tests/test_broken.py; first: {NO_MODULE}"
PASSES = {"test_a.py": "def test_nothing():\n    pass\n", "test_broken.py": BROKEN}


@pytest.mark.parametrize(
    ("files", "more", "said"),
    [
        pytest.param({}, ', "-p", "no:mcpfactory_evidence"', FAILED, id="plugin switched off"),
        pytest.param({}, ', "--deselect=tests/test_broken.py::test_broken"', OUT, id="deselected in addopts"),
        pytest.param({"conftest.py": 'collect_ignore = ["test_broken.py"]\n'}, "", OUT, id="ignored by a conftest"),
        pytest.param({"conftest.py": UNSEEN}, "", OUT, id="taken out of the list by a hook"),
        pytest.param({"conftest.py": UNRUN}, "", OUT, id="not run by a hook"),
        pytest.param(
            {"test_broken.py": BROKEN + "test_broken.__test__ = False\n"}, "", OUT, id="hidden by its own file"
        ),
        pytest.param({"conftest.py": FORGED}, "", FAILED, id="outcome forged by a hook"),
        pytest.param({"test_broken.py": "import no_such_module\n"}, "", LOST, id="a file that cannot be imported"),
    ],
)
def test_a_failing_test_fails_or_is_told(tmp_path, files, more, said):
    judged = judge_tests(*look(tmp_path, PASSES | files, more))
    assert (judged.outcome, judged.message) == said


UNREGISTERS = "def test_it(pytestconfig):\n    pytestconfig.pluginmanager.unregister(name='mcpfactory-evidence')\n"


@pytest.mark.parametrize(
    "text", [LEAVES, GUESSES, UNREGISTERS], ids=["writes the report", "writes the record", "quits"]
)
def test_a_process_that_ends_before_pytest_does_shows_nothing(tmp_path, text):
    code, seen = look(tmp_path, {"test_it.py": text})
    assert (code, seen) == (0, None)
    judged = judge_tests(code, seen)
    assert judged.outcome == "failed"
    assert "no record of the tests" in judged.message


def test_tests_that_are_skipped_or_expected_to_fail_are_not_passed(tmp_path):
    text = "import pytest\n@pytest.mark.xfail\ndef test_it():\n    assert 1 == 2\n"
    code, seen = look(tmp_path, {"test_it.py": text})
    assert (code, seen.facts()["skipped"], seen.passed) == (0, 1, ())
    assert judge_tests(code, seen).message == "no test passed, 1 skipped"


def test_tests_are_looked_at_in_one_process(tmp_path):
    code, seen = look(tmp_path, {"test_a.py": HONEST}, ', "-n", "2"', plugins=True)
    assert (code, len(seen.passed)) == (0, 2)


def test_tests_that_are_gone_are_named_and_counted_for_each_candidate(tmp_path):
    assert missing_tests_by_candidate(["a", "b"], tmp_path, "first") == ({}, "")
    store_passed_tests(["t::a", "t::b"], tmp_path, "first")
    store_passed_tests(["t::a", "t::b", "t::c"], tmp_path, "second")
    lost, words = missing_tests_by_candidate(["t::a", "t::d"], tmp_path, "third")
    assert lost == {"first": 1, "second": 2}
    assert words == "2 tests that candidate second passed are gone: b, c"


def test_tests_that_are_deleted_without_another_candidate_are_gone_too(tmp_path):
    store_passed_tests(["t::a", "t::b"], tmp_path, "first")
    store_passed_tests(["t::a"], tmp_path, "first")
    assert missing_tests_by_candidate(["t::a"], tmp_path, "first") == (
        {"first": 1},
        "1 test that candidate first passed are gone: b",
    )
