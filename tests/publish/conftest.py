from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.publish.mcp_registry import GITHUB_TOKEN, Registry
from tests.publish.mcp_registry import serving as serving_registry
from tests.publish.package_index import TOKEN, Index, serving
from tests.publish.promoted_workspace import PromotedWorkspace


@pytest.fixture(autouse=True)
def _named_actor(monkeypatch):
    monkeypatch.setenv("MCPFACTORY_ACTOR", "tester")
    monkeypatch.setenv("PYPI_TOKEN", TOKEN)
    monkeypatch.setenv("MCP_REGISTRY_TOKEN", GITHUB_TOKEN)


@pytest.fixture
def promoted(tmp_path) -> PromotedWorkspace:
    """Return a workspace with a server without promoted candidates."""
    return PromotedWorkspace(tmp_path / "shelf")


@pytest.fixture
def index() -> Iterator[Index]:
    """Yield a package index on loopback."""
    with serving() as made:
        yield made


@pytest.fixture
def registry(index) -> Iterator[Registry]:
    """Yield an MCP registry on loopback, which reads the descriptions in the package index."""

    def description(project: str) -> str | None:
        return next((form["description"] for form in index.forms if form["name"] == project), None)

    with serving_registry(Registry(description)) as made:
        yield made
