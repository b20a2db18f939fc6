"""Plain English, as far as a program can tell: phrases that readers stumble over, and the length of lines that have one purpose."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from benchmarks.codebase.source import Source
from mcpfactory.main import COMMANDS
from tests.repository.markdown_pages import Page

# Each phrase, and what to write.
PHRASES = {
    r"\b(?:who|what)ever\b": "name the thing: any X, each X",
    r"\banew\b": "again, or new",
    r"(?<![Tt]here )\b(?:is|are) no(?:ne\b| (?!longer|more|such)\w+)": "X is missing, or: is not a X",
    r"\b(?:is|are|was|were|be|been) (?:told|said)\b": "report, show, print, notify",
    r"\bin words\b(?!\.)": "as text",
    r"\bof (?:its|their|one's|your|our) own\b": "own X, separate X",
    r"\bto be had\b": "available",
    r"\bfrom (?:then|now|there|which) on\b": "afterwards, since",
    r"\bas (?:it is|they are|it was)\b": "unchanged",
    r"\bgoes? on\b|\bwent on\b": "continues",
    r", too\b(?! )": "also",
}
OPENERS = re.compile(r"(?:What|Whether|Where|Who|Which|How|Whose)\b|Return (?:what|whether|where|how|who|which)\b")
WORD_LISTS = {"factory/runtime/src/mcpfactory_runtime/server/generated/search_words.py"}
HELP_WIDTH = 60
CHANGELOG_WIDTH = 120


def test_no_text_has_a_phrase_that_readers_stumble_over(modules, pages):
    texts = [
        *(text for module in modules if module.path not in WORD_LISTS for text in _texts(module)),
        *(text for page in pages for text in _prose(page)),
    ]
    assert len(texts) > 10_000
    anything = re.compile("|".join(PHRASES))
    found = [
        f"{place}: {match[0]!r}: write {instead}"
        for text, place in texts
        if anything.search(text)
        for pattern, instead in PHRASES.items()
        if (match := re.search(pattern, text))
    ]
    assert not found, "\n".join(found)


def _texts(module: Source) -> Iterator[tuple[str, str]]:
    """Yield each comment and text of several words, with its place."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield " ".join(node.value.split()), f"{module.path}:{node.lineno}"
    for number, line in enumerate(module.text.splitlines(), 1):
        if comment := line.partition("# ")[2]:
            yield comment, f"{module.path}:{number}"


def _prose(page: Page) -> Iterator[tuple[str, str]]:
    fenced = False
    for number, line in enumerate(page.text.splitlines(), 1):
        fenced ^= line.startswith("```")
        if not fenced:
            yield re.sub(r"`[^`]*`", "", line), f"{page.name}:{number}"


def test_a_docstring_opens_with_a_verb_or_a_noun(modules):
    found = [
        f"{module.path}:{getattr(node, 'lineno', 1)}: {text.splitlines()[0]}"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (text := ast.get_docstring(node))
        and OPENERS.match(text)
    ]
    assert not found, "\n".join(found)


def test_a_summary_of_a_command_fits_beside_its_name():
    assert [name for name, place in COMMANDS.items() if len(place.summary) > HELP_WIDTH] == []


def test_a_line_of_the_changelog_is_one_change(root):
    lines = (root / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > CHANGELOG_WIDTH] == []
