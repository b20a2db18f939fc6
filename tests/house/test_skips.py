"""Nothing is left out in silence: a skip without a documented reason fails the run."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

SKIPPING = {"skip", "skipif", "importorskip", "skipTest", "SkipTest"}
MACHINE = "tests/machine.py"


def test_only_one_module_knows_what_a_machine_may_lack(tests):
    found = [
        f"{module.path}:{node.lineno}"
        for module in tests
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and node.attr in SKIPPING and module.path != MACHINE
    ]
    assert found == [], f"hint: use needs() or skip_without() of {MACHINE}, or parametrise over what applies"


@pytest.fixture
def run(root, tmp_path):
    """Runs pytest on modules with these texts, as the suite is run; its exit code and what it printed."""

    def pytest_on(*bodies, workers="0"):
        for number, body in enumerate(bodies):
            text = f"import pytest\nfrom tests.machine import LACKING, needs\n\n{body}\n"
            (tmp_path / f"test_{number}.py").write_text(text)
        command = [sys.executable, "-m", "pytest", "-q", "-c", "pyproject.toml", "-p", "tests.conftest", "-n", workers]
        done = subprocess.run([*command, str(tmp_path)], cwd=root, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    return pytest_on


def test_what_the_machine_lacks_may_be_skipped(run):
    lacking = "@pytest.mark.skipif(True, reason=LACKING + 'a sea')\ndef test_it(): pass"
    code, told = run("@needs('linux')\ndef test_it(): pass", lacking)
    assert (code, "error:" in told) == (0, False), told
    assert "not on this machine: a sea" in told


def test_every_other_skip_is_named_and_fails_the_run(run):
    always = "@pytest.mark.skip\ndef test_it(): pass"
    code, told = run(always, "def test_it(): pytest.skip('not today')", "def test_it(): pass")
    assert code == 1, told
    for line in ("test_0.py::test_it: unconditional skip", "test_1.py::test_it: not today", "hint: parametrise"):
        assert line in told


def test_a_module_that_is_skipped_whole_fails_the_run_of_workers(run):
    code, told = run("pytest.skip('not today', allow_module_level=True)", workers="1")
    assert (code, "test_0.py: not today" in told) == (1, True), told
