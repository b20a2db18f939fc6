"""The table of features: every row of ours is in the documentation as it says, and has a test that uses it like this."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.features import probe
from benchmarks.features.table import FEATURES
from tests.features.docs_examples import ROOT, section
from tests.repository.markdown_pages import Page
from tests.subtest_table import parametrize_subtests

OURS = [row for row in FEATURES if row.ours.level != "no"]
HERE = "tests/features/test_documented.py"


@cache
def page(file: Path) -> Page:
    return Page(file, file.name)


@cache
def named_tests(file: str) -> dict[str, str]:
    """Name of each test in a file, or of a class of them → its text."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {
        node.name: ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, kinds) and node.name.startswith("test")
    }


@parametrize_subtests("row", OURS)
def test_what_we_have_is_documented_and_tested_as_documented(row):
    text = section(row.ours.docs)
    assert text, f"{row.key}: there is no docs/{row.ours.docs}"
    assert row.ours.shown in text, f"{row.key}: docs/{row.ours.docs} does not have {row.ours.shown!r}"
    file, _, test = row.ours.test.partition("::")
    assert (ROOT / file).is_file(), f"{row.key}: there is no {file}"
    assert test in named_tests(file), f"{row.key}: {file} has no test {test}"
    if file == HERE:
        assert repr(row.ours.docs) in named_tests(file)[test], f"{row.key}: {test} does not run docs/{row.ours.docs}"
    else:
        assert row.ours.used in (ROOT / file).read_text("utf-8"), f"{row.key}: {file} does not use {row.ours.used!r}"


def test_every_test_of_the_documentation_has_a_row():
    named = {row.ours.test.partition("::")[2] for row in OURS if row.ours.test.startswith(HERE)}
    assert set(named_tests(HERE)) == named


@parametrize_subtests(
    "asked, holds",
    [
        ("tests.repository.markdown_pages:Page.anchors", True),
        ("tests.repository.markdown_pages:Page.wings", False),
        ("tests.repository.wings", False),
        ("tests.repository.markdown_pages:read_pages(root)", True),
        ("tests.repository.markdown_pages:read_pages(wings)", False),
        ("~^no_such_name$", True),
        ("~^read_pages$", False),
        ("=^read_pages$ tests.repository.markdown_pages:Page", True),
        ("=^read_pages$ tests.repository.markdown_pages:Wings", False),
        ("%pytest", True),
        ("%no-such-distribution", False),
    ],
)
def test_a_probe_sees_what_is_there_and_what_is_not(asked, holds):
    assert probe.holds("tests.repository.markdown_pages", asked) is holds


def test_pages_of_the_site_lead_to_the_table():
    for name in ("docs/reference/index.md", "docs/how-to/write-a-server.md"):
        links = {urlsplit(target).path.rpartition("/")[2] for target, _ in page(ROOT / name).links()}
        assert "features.md" in links, name
