"""Fixtures of all runtime tests: gaps of the requirements table, fuzzing, counters, and a real Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.trials.redis_server import redis_server
from tests.runtime.requirements.plugin import pytest_collection_modifyitems
from tests.skip_conditions import skip_without

__all__ = ["pytest_collection_modifyitems"]


@pytest.fixture(scope="session")
def redis_address() -> Iterator[str]:
    skip_without("redis")
    with redis_server() as address:
        yield address
