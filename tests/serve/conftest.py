from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _named_actor(monkeypatch):
    """Who sits at the machine does not depend on the machine."""
    monkeypatch.setenv("MCPFACTORY_ACTOR", "Ada")
