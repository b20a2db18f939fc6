"""The size of a search is told to whoever runs it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(("factor", "examples"), [("", 100), ("2", 200)])
def test_the_number_of_examples_is_printed(root, factor, examples):
    name = "tests/runtime/client/test_sse.py::test_it_does_not_matter_how_the_bytes_are_cut"
    command = [sys.executable, "-m", "pytest", "-q", "-m", "hypothesis", "-p", "no:xdist", name]
    environment = {**os.environ, "MCPFACTORY_FUZZ": factor}
    out = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True).stdout
    kind = "new" if factor else "the same in every run"
    assert f"properties tried: 1, with {examples} examples ({kind})" in out
    assert (f"{examples:7} {name}" in out) == bool(factor)
