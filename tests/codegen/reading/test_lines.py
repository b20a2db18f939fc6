"""Pointers lead to the line at which a person finds the place, whatever stands around it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpfactory_codegen.ir import ProblemCollector
from mcpfactory_codegen.read.document import DocumentFile
from mcpfactory_codegen.read.line_numbers import find_line_numbers
from mcpfactory_codegen.read.parse import parse

NAMES = st.text(st.sampled_from('ab/~"\\{}[],: é\n'), max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def dumped(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)


def places(value: Any, pointer: str, line: int) -> Iterator[tuple[str, int]]:
    """Every pointer below a value that stands at a line, and its own line in what `dumped` gives."""
    named = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, below in named:
        line += 1
        here = f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}"
        yield here, line
        yield from places(below, here, line)
        line += dumped(below).count("\n")


def part(text: str) -> DocumentFile:
    return DocumentFile(data=None, raw=text.encode())


@given(st.lists(VALUES, min_size=1, max_size=4) | st.dictionaries(NAMES, VALUES, min_size=1, max_size=4), st.data())
@settings(max_examples=150, deadline=None)
def test_every_pointer_has_the_line_of_its_key_or_item(value: Any, data: st.DataObject) -> None:
    expected = dict(places(value, "", 1))
    asked = data.draw(st.lists(st.sampled_from(sorted(expected)), min_size=1, unique=True))
    text = dumped(value)
    assert find_line_numbers(part(text), asked) == {pointer: expected[pointer] for pointer in asked}


@pytest.mark.parametrize(
    "text",
    [
        '{ // a\n"a": [\n1, /* b\n*/],\n"b": 2}',
        '{\n"a": [\n1,\n],\n"b": 2}',
        '{\n"a": [\n01],\n\n"b": 2}',
        '{\n"a": [\nNever],\n\n"b": 2}',
    ],
)
def test_a_text_that_was_mended_when_it_was_read_has_lines_too(text: str) -> None:
    data, form = parse(text.encode(), ProblemCollector())
    repaired = DocumentFile(data, text.encode(), form)
    assert find_line_numbers(repaired, ["/a", "/a/0", "/b"]) == {"/a": 2, "/a/0": 3, "/b": 5}
