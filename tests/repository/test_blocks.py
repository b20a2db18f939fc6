"""Blocks of code in the documentation: each can be read in its language, and imports names that there are."""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest
import yaml

READERS: dict[str, Callable[[str], Any]] = {
    "python": ast.parse,
    "toml": tomllib.loads,
    "yaml": lambda text: list(yaml.safe_load_all(text)),
    "json": json.loads,
}


@pytest.mark.parametrize("language", READERS)
def test_every_block_can_be_read(pages, language):
    wrong, seen = [], 0
    for page in pages:
        for text, line in page.blocks(language):
            seen += 1
            try:
                READERS[language](text)
            except (ValueError, SyntaxError, yaml.YAMLError) as error:
                wrong.append(f"{page.name}:{line}: {error}")
    assert seen > 2
    assert wrong == []


def test_every_name_that_a_block_imports_from_here_exists(pages):
    found = [
        (node.module or "", name.name, f"{page.name}:{line}")
        for page in pages
        for text, line in page.blocks("python")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mcpfactory")
        for name in node.names
    ]
    assert len(found) > 8
    lost = [
        f"{place}: {module}.{name}"
        for module, name, place in found
        if not (find_spec(module) and (hasattr(import_module(module), name) or find_spec(f"{module}.{name}")))
    ]
    assert lost == []
