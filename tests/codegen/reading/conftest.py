from __future__ import annotations

from pathlib import Path

import pytest

from tests.codegen.reading.support import Reader


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)
