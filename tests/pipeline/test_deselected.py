"""Tests that a server's own settings leave out are told."""

from __future__ import annotations

import pytest

from mcpfactory_pipeline.stages.test import deselecting_options


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ('addopts = ["--import-mode=importlib", "--deselect=tests/t.py::test_a"]', ["--deselect=tests/t.py::test_a"]),
        ("addopts = \"--import-mode=importlib -k 'not slow' -mfast\"", ["-k", "-mfast"]),
        ('addopts = ["--import-mode=importlib", "-q"]', []),
        ("addopts = 3", []),
        ("", []),
    ],
)
def test_options_that_leave_tests_out_are_found(tmp_path, settings, told):
    file = tmp_path / "pyproject.toml"
    file.write_text(f"[tool.pytest.ini_options]\n{settings}\n")
    assert deselecting_options(file) == told
    assert deselecting_options(tmp_path / "nowhere.toml") == []
