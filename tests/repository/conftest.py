from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.codebase.modules import WHEELS
from benchmarks.codebase.source import Source, read_sources
from tests.repository.markdown_pages import Page, read_pages

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _without_collections() -> Iterator[None]:
    """Pause the garbage collector, because walking millions of syntax tree nodes takes longer than all rules."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def modules() -> list[Source]:
    """Return every hand-written module of the four wheels."""
    return _read(*WHEELS)


@pytest.fixture(scope="session")
def tests() -> list[Source]:
    return _read("tests")


@pytest.fixture(scope="session")
def helpers() -> list[Source]:
    """Return the Python files that are neither product nor tests."""
    return _read("benchmarks", "docs/examples")


def _read(*folders: str) -> list[Source]:
    found = read_sources(ROOT, *folders)
    assert len(found) > 50, "without files, every rule about them would pass"
    return found


@pytest.fixture(scope="session")
def pages() -> list[Page]:
    """Return every hand-written page of the documentation."""
    found = read_pages(ROOT)
    assert len(found) > 45
    return found
