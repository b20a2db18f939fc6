"""Damaged offers and drift records are reported in words, not as Python errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from mcpfactory_codegen.servers.config import AdoptedSettings
from mcpfactory_pipeline.adoption.remote_offers import parse_offers
from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.build.programs import ToolRejectedInputError
from mcpfactory_pipeline.workspace.adopted import read_known_drift
from tests.subtest_table import parametrize_subtests

REFUSED = (PipelineError, ToolRejectedInputError)
PYTHON = re.compile(
    r"Error|object|indices|attribute|NoneType|codec|recursion|Expecting|set_int_max_str_digits|Errno", re.IGNORECASE
)


def drift(text: bytes, folder: Path) -> object:
    (folder / "drift.json").write_bytes(text)
    return read_known_drift(folder, AdoptedSettings(kind="url", url="https://far.test/mcp"))


READERS: dict[str, Callable[[bytes, Path], object]] = {
    "offers": lambda text, _: parse_offers(text),
    "drift": drift,
}
DAMAGED = (b"", b"<<<<<<< HEAD", b"\xff\xfe{", b"[]", b"{}", b"null", b"3", b"[" * 100_000, b'"text"', b"9" * 5_000)


@parametrize_subtests("reader, text", product(READERS, DAMAGED))
def test_a_damaged_file_is_reported_in_words(reader: str, text: bytes, tmp_path: Path) -> None:
    with pytest.raises(REFUSED) as caught:
        READERS[reader](text, tmp_path)
    assert not PYTHON.search(str(caught.value)), caught.value


@parametrize_subtests(
    "reader, text, words",
    [
        ("offers", b"[]", "offers.json cannot be read: a part of it has an unexpected format;"),
        ("offers", b'{"offers": 1}', "offers.json cannot be read: 'tools' is missing;"),
        ("offers", b"{", "offers.json cannot be read: it is not JSON: line 1;"),
        ("drift", b"{}", "drift.json cannot be read: 'of' is missing"),
    ],
)
def test_what_is_missing_or_of_another_form_is_said(reader: str, text: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(REFUSED, match=re.escape(words)):
        READERS[reader](text, tmp_path)
