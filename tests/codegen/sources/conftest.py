from __future__ import annotations

from pathlib import Path

import pytest

from tests.codegen.sources.support import SourceReader


@pytest.fixture
def reader(tmp_path: Path) -> SourceReader:
    return SourceReader(tmp_path)
