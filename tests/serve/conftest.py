from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _named_actor(monkeypatch):
    """Set the actor independently of the machine."""
    monkeypatch.setenv("MCPFACTORY_ACTOR", "Ada")
