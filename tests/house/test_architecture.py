"""docs/architecture.md against the code: traces, words, length."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from benchmarks.house.folders import folders_page
from benchmarks.house.pictures import FOLDER, PICTURES, ways_picture
from benchmarks.house.way import Way, trace
from tests.house.pages import read_pages

PACKAGES = {"call": "mcpfactory_runtime", "operation": "mcpfactory_codegen"}


@pytest.fixture(scope="module")
def text(root) -> str:
    return (root / "docs/architecture.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def ways() -> dict[str, Way]:
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
    assert set(steps) <= set(entered), "python benchmarks/house/way.py prints the files"
    assert steps == sorted(steps, key=entered.index), "python benchmarks/house/way.py prints the files in their order"


def test_every_word_of_the_glossary_is_used(root, text, modules):
    rows = re.findall(r"^\| ([^|]+) \|", text.partition("## Glossary")[2].partition("\n## ")[0], re.MULTILINE)
    words = [word for row in rows[1:] for word in row.split(", ")]
    pages = [page.text.lower() for page in read_pages(root) if not page.name.endswith("architecture.md")]
    code = [module.text.lower() for module in modules]
    assert len(words) > 40
    for word in words:
        for where, texts in (("docs", pages), ("code", code)):
            used = sum(bool(re.search(rf"\b{word.lower()}s?\b", each)) for each in texts)
            assert used > 1, f"“{word}” is in the glossary of docs/architecture.md, and {where} do not use it"


def test_the_pictures_are_drawn_from_this_code(ways):
    drawn = {**PICTURES, "way.svg": lambda: ways_picture(ways.__getitem__)}
    stale = [name for name, draw in drawn.items() if (FOLDER / name).read_text(encoding="utf-8") != draw()]
    assert not stale, "run: make diagrams"


def test_the_list_of_folders_is_what_their_docstrings_say(root):
    page = (root / "docs/reference/folders.md").read_text(encoding="utf-8")
    assert page == folders_page(root), "run: python -m benchmarks.house.folders > docs/reference/folders.md"


def test_the_page_is_two_pages(text):
    assert text.count("\n") <= 130, "details belong to docstrings and docs/reference"
