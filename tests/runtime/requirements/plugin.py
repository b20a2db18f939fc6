"""Tests of rows with a gap are expected to fail; one that passes fails the run, for the gap is closed (xfail, strict)."""

from __future__ import annotations

import pytest

from tests.runtime.requirements.table import TABLE


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect failure of every test that names a row with a gap."""
    for item in items:
        names = [name for mark in item.iter_markers("requirement") for name in mark.args]
        gaps = [name for name in names if name in TABLE and TABLE[name].gap]
        if gaps:
            item.add_marker(pytest.mark.xfail(reason=f"gap: {', '.join(gaps)}", strict=True))
