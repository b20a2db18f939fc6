from __future__ import annotations

from pathlib import Path

from mcpfactory_pipeline.checks.reference import rules_reference

PAGE = Path(__file__).parents[3] / "docs/reference/rules.md"


def test_the_page_about_rules_is_what_the_table_says() -> None:
    told = "run: python -m mcpfactory_pipeline.checks.reference > docs/reference/rules.md"
    assert PAGE.read_text("utf-8") == rules_reference(), told
