"""The second tier of the tests: what `make test` leaves out is there, and has a reason."""

from __future__ import annotations

import re

from tests.tiers import FILES, FIXTURES


def test_what_the_fast_tier_leaves_out_exists_and_has_a_reason(root):
    for place, reason in FILES.items():
        path, _, test = place.partition("::")
        assert (root / path).exists(), f"tests/tiers.py names {path}, which is not there"
        assert not test or re.search(rf"def {test}\b", (root / path).read_text("utf-8")), f"{path} has no {test}"
        assert reason


def test_every_fixture_of_the_second_tier_exists(root):
    texts = "".join(file.read_text("utf-8") for file in root.glob("tests/**/*.py"))
    assert [name for name in FIXTURES if f"def {name}(" not in texts] == []
