"""Front matter is read as every YAML reader would, or refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml  # the oracle; not a dependency of the runtime

from mcpfactory_runtime.server.skills import FrontmatterError, read_frontmatter
from tests.subtest_table import parametrize_subtests

READ = {
    "plain": "name: brew-tea\ndescription: Brew tea, well (or not)!",
    "quoted": "a: 'it''s'\nb: \"one\\ntwo \\\"three\\\"\"\nc: \"yes\"\nd: '# no comment'\ne: ''",
    "numbers": "a: 1\nb: -5\nc: 0\nd: 1.5\ne: -0.25",
    "words": "a: true\nb: false\nc: null\nd: ~\ne:",
    "comments": "# first\na: 1 # one\n\nb: text # two\nc: a#b",
    "literal": "a: |\n  one\n   two\n\n  three\nb: |-\n  end",
    "folded": "a: >\n  one\n  two\n\n  three\n\n\n  four\nb: >-\n  end\n  here",
    "nested": 'metadata:\n  version: "1.0"\n  author: me\nlicense: MIT',
    "nested, deeper": "metadata:\n    a: |\n      text\n    b: 2\nz: last",
    "urls": "a: https://example.com/x?y=1\nb: 10 apples\nc: v1.2.3",
    "keys": "allowed-tools: Read Write\na_b.c: x\nX9: z",
    "umlauts": "a: grüner Tee – 煎茶",
    "blanks after values": "a: x \nb: z  ",
}

REFUSED = {
    "yes": "a: yes",
    "y": "a: y",
    "octal": "a: 012",
    "hexadecimal": "a: 0x1F",
    "underscores": "a: 1_000",
    "date": "a: 2024-01-01",
    "time": "a: 2024-01-01 10:00:00",
    "minutes": "a: 1:30",
    "exponent": "a: 1e5",
    "positive": "a: +1",
    "infinity": "a: .inf",
    "capital": "a: True",
    "list": "a: [1, 2]",
    "map": "a: {b: 1}",
    "items": "a:\n  - 1",
    "anchor": "a: &x 1",
    "alias": "a: *x",
    "tag": "a: !x 1",
    "backtick": "a: `x`",
    "colon inside": "a: b: c",
    "colon at the end": "a: b:",
    "open quote": 'a: "x',
    "text after a quote": "a: 'x' y",
    "odd escape": 'a: "\\x41"',
    "no pair": "just text",
    "twice": "a: 1\na: 2",
    "continued": "a: one\n  two",
    "two levels": "a:\n  b:\n    c: 1",
    "kept breaks": "a: |+\n  x\n\n",
    "indicator": "a: |2\n  x",
    "indented in folded": "a: >\n  x\n    y\n  z",
    "percent": "a: %x",
    "question": "a: ? x",
    "tab": "\ta: 1",
    "tab after a value": "a: 1\t",
}


@parametrize_subtests("text", READ.values())
def test_what_is_read_is_what_a_yaml_reader_finds(text: str) -> None:
    expected: dict[str, Any] = yaml.safe_load(text)
    assert read_frontmatter(f"---\n{text}\n---\nBody\n") == expected


@parametrize_subtests("text", REFUSED.values())
def test_what_may_be_misread_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(FrontmatterError, match=r"line \d+: (.|\n)*hint:"):
        read_frontmatter(f"---\n{text}\n---\n")
