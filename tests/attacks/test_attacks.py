"""No document makes the factory, or a server that it makes, do anything but its work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.range import attempt
from tests.attacks.table import ATTACKS


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_comes_to_nothing(name: str, tmp_path: Path) -> None:
    assert attempt(ATTACKS[name], tmp_path).harm == []
