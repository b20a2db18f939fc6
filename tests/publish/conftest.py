from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.publish.package_index import TOKEN, Index, serving
from tests.publish.shelf import Shelf


@pytest.fixture(autouse=True)
def _named_actor(monkeypatch):
    monkeypatch.setenv("MCPFACTORY_ACTOR", "tester")
    monkeypatch.setenv("PYPI_TOKEN", TOKEN)


@pytest.fixture
def shelf(tmp_path) -> Shelf:
    """A workspace with a server, of which nothing is promoted."""
    return Shelf(tmp_path / "shelf")


@pytest.fixture
def index() -> Iterator[Index]:
    """A package index on loopback."""
    with serving() as made:
        yield made
