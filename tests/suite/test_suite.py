"""How the test suite itself runs: skips that fail it, and the size of a search. Each test starts pytest in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_pytest(*arguments: str, **variables: str) -> tuple[int, str]:
    """Return the exit code of a run, and what it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-c", "pyproject.toml", *arguments]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_only_a_skip_for_what_the_machine_lacks_leaves_the_run_green(tmp_path):
    bodies = {
        "lacking": "@pytest.mark.skipif(True, reason=LACKING + 'a sea')\ndef test_it(): pass",
        "marked": "@pytest.mark.skip\ndef test_it(): pass",
        "called": "def test_it(): pytest.skip('not today')",
        "whole": "pytest.skip('not today', allow_module_level=True)",
    }
    for name, body in bodies.items():
        (tmp_path / f"test_{name}.py").write_text(
            f"import pytest\nfrom tests.skip_conditions import LACKING\n\n{body}\n"
        )
    code, told = run_pytest("-p", "tests.conftest", "-n", "1", str(tmp_path))
    assert code == 1, told
    named = told.partition("error: ")[2].partition("hint: ")[0]
    for line in ("test_marked.py::test_it: unconditional", "test_called.py::test_it: not today", "test_whole.py: not"):
        assert line in named
    assert "test_lacking" not in named
    assert run_pytest("-p", "tests.conftest", "-n", "0", str(tmp_path / "test_lacking.py"))[0] == 0


def test_a_search_tries_as_many_examples_as_it_is_told():
    name = "tests/runtime/client/test_sse.py::test_it_does_not_matter_how_the_bytes_are_cut"
    code, told = run_pytest("-p", "no:xdist", name, MCPFACTORY_FUZZ="2")
    assert code == 0, told
    assert "properties tried: 1, with 200 examples (new)" in told
    assert f"    200 {name}" in told
