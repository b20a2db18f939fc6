"""The tests that a generated server brings along: every tool called once against a stub of its API."""

from __future__ import annotations

__all__ = ["TEST_INIT", "test_module"]

TEST_INIT = '"""Tests that mcpfactory made from the API document; rewritten whole."""\n'

_TEST = '''"""Every tool, called once with sample values: the request that the API sees, and the answer that comes back.

Made by mcpfactory and rewritten whole. The cases in cases.json were derived from the API document alone, not from the
code that is tested here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcpfactory_runtime.testing import connect
from mcpfactory_runtime.upstream.stub import StubUpstream

from PACKAGE.server import server

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))["cases"]


@pytest.fixture(scope="module")
def stub() -> Iterator[StubUpstream]:
    with StubUpstream(CASES) as running:
        yield running
'''


def test_module(package: str) -> str:
    """tests/_generated/test_tools.py of the server with this import package."""
    return _TEST.replace("PACKAGE", package)
