"""The traces of docs/architecture.md against the code."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from benchmarks.codebase.call_trace import CallTrace, trace

PACKAGES = {"call": "mcpfactory_runtime", "operation": "mcpfactory_codegen"}


@pytest.fixture(scope="module")
def text(root) -> str:
    return (root / "docs/architecture.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def ways() -> dict[str, CallTrace]:
    return {subject: trace(subject) for subject in PACKAGES}


@pytest.fixture(scope="module")
def traces(text) -> dict[str, list[tuple[str, str]]]:
    """Subject → the (file, function) of each step."""
    found = re.findall(r"^\*\*One .*?\*\*.*?in `(\w+)`.*?\n\n((?:\|.*\n)+)", text, re.MULTILINE)
    steps = {
        package: re.findall(r"^\| `([\w/]+\.py)` \| `([\w.]+)` \|", table, re.MULTILINE) for package, table in found
    }
    return {subject: steps[package] for subject, package in PACKAGES.items()}


@pytest.mark.parametrize("subject", PACKAGES)
def test_every_step_of_a_trace_exists(traces, subject):
    assert len(traces[subject]) > 5
    for file, function in traces[subject]:
        name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        found = module = import_module(f"{PACKAGES[subject]}.{name}")
        for name in function.split("."):
            assert hasattr(found, name), f"{file} has no {function}: write what the code has into docs/architecture.md"
            found = getattr(found, name)
        assert found.__module__ == module.__name__, f"{function} stands in {found.__module__}"


@pytest.mark.parametrize("subject", PACKAGES)
def test_the_steps_of_a_trace_are_entered_in_this_order(traces, ways, subject):
    entered = ways[subject].files
    steps = [f"{PACKAGES[subject]}/{file}" for file, _ in traces[subject] if not file.startswith("servers/")]
    assert set(steps) <= set(entered), "python benchmarks/codebase/call_trace.py prints the files"
    assert steps == sorted(steps, key=entered.index), (
        "python benchmarks/codebase/call_trace.py prints the files in their order"
    )
