"""Agents ask the factory which tools models take for one another."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest

from mcpfactory_pipeline.checks.evaluation.evaluation_reports import write_model_report
from mcpfactory_pipeline.checks.evaluation.judgment import Attempt, ModelRunSetting, ToolChoice
from mcpfactory_pipeline.checks.evaluation.model_report import ModelReport
from mcpfactory_pipeline.serve.factory_server import make_factory_server
from mcpfactory_runtime.testing import connect

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).resolve().parents[2]


async def test_tools_that_models_confuse_come_with_both_texts_the_questions_and_what_to_write(tmp_path):
    (tmp_path / "mcpfactory.toml").write_text('[workspace]\nname = "space"\n')
    folder = tmp_path / "servers/bookshop"
    shutil.copytree(ROOT / "servers/bookshop", folder, ignore=shutil.ignore_patterns("evals", "upstream.py"))
    choice = ToolChoice("list_books", "list_reviews")
    attempt = Attempt("tea", ModelRunSetting(), 1, "wrong-tool", choices=(choice,))
    report = ModelReport(
        "bookshop", "openai:x", "", date(2026, 11, 1), "t", "c", 1, {"tea": "What do people read most?"}, {ModelRunSetting(): (11, 9)}, [attempt]
    )  # fmt: skip
    write_model_report(folder, report)
    async with connect(make_factory_server(tmp_path)) as client:
        found = (await client.call_tool("confused_tools", {"server": "bookshop"}))["structuredContent"]
    assert (found["server"], found["reports"]) == ("bookshop", ["openai:x"])
    first = found["pairs"][0]
    assert (first["expected"], first["chosen"], first["times"]) == ("list_books", "list_reviews", 1)
    assert first["questions"] == {"What do people read most?": 1}
    assert "Read the reviews of a book." in first["texts"]["list_reviews"]
    assert "say in list_reviews when to take list_books" in first["advice"]
    assert all(pair["times"] == 0 for pair in found["pairs"][1:])
