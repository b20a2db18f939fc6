"""The list of problem codes, the page that explains them, and the code that reports them say the same."""

from __future__ import annotations

import re
from pathlib import Path

import mcpfactory_codegen
from mcpfactory_codegen.ir import PROBLEM_CODES

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "problems.md"
SOURCES = sorted(Path(mcpfactory_codegen.__file__).parent.rglob("*.py"))


def sections() -> dict[str, str]:
    """Code → what the page says about it."""
    parts = re.split(r"^### (.+)$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def reported() -> dict[str, str]:
    """Code → level of everything that is reported anywhere in code generation, also without the collector."""
    found = re.compile(r"""\bProblem\(\s*"(error|warning)",\s*"([a-z-]+)\"""")
    return PROBLEM_CODES | {
        code: level for source in SOURCES for level, code in found.findall(source.read_text("utf-8"))
    }


def test_every_code_is_explained_and_nothing_else_is() -> None:
    assert set(sections()) == set(reported())
    assert len(set(reported()) - set(PROBLEM_CODES)) >= 2, "the codes of other modules were not found"


def test_every_code_is_reported_somewhere() -> None:
    mentioned = "\n".join(source.read_text("utf-8") for source in SOURCES)
    assert [code for code in PROBLEM_CODES if f'"{code}"' not in mentioned] == []
