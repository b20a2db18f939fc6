"""A store of each kind; Redis is a real server, one for all tests of a worker."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcpfactory_runtime.storage import create_store
from mcpfactory_runtime.storage.base import SharedStore
from mcpfactory_runtime.storage.redis import RedisStore

KINDS = ("memory", "sqlite", "redis")


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SharedStore]:
    """Yield an empty store."""
    match request.param:
        case "memory":
            made = create_store("memory:")
        case "sqlite":
            made = create_store(f"sqlite:///{tmp_path / 'kept' / 'store.db'}")
        case _:
            made = RedisStore(request.getfixturevalue("redis_address"), prefix=f"{secrets.token_hex(4)}:")
    await made.open()
    yield made
    await made.aclose()
