"""No document makes the factory, or a server that it makes, do anything but its work; nor does anything else from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.attempts import ATTEMPTS
from tests.attacks.range import attempt
from tests.attacks.table import ATTACKS


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_comes_to_nothing(name: str, tmp_path: Path) -> None:
    assert attempt(ATTACKS[name], tmp_path).harm == []


@pytest.mark.parametrize("name", ATTEMPTS)
def test_an_attempt_from_outside_is_refused(name: str, tmp_path: Path) -> None:
    ATTEMPTS[name].carry_out(tmp_path)
