"""For all tests of the runtime: gaps of the requirements table, the size of fuzzing, and what was counted."""

from __future__ import annotations

from tests.runtime.requirements.plugin import pytest_collection_modifyitems

__all__ = ["pytest_collection_modifyitems"]
