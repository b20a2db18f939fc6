"""What a server of each revision must and should do, as rows, and the marks that tie tests to them.

Rows stand in the modules beside this one. A test names those that it shows:

    @requirement("tools.unknown-tool", "message.error-id")
    def test_...

`test_table` fails for a row that has neither test nor reason, and for a test that names no row. A test of a row with a
gap must fail: when it passes, the gap is closed and its reason has to go (`plugin`). `make docs` makes
`docs/reference/compliance.md` of all this.
"""

from __future__ import annotations

from typing import Any

import pytest

__all__ = ["case", "requirement"]

requirement = pytest.mark.requirement


def case(name: str, *values: Any) -> Any:
    """One set of parameters that shows one requirement: `case("tools.unknown-tool", …)`."""
    return pytest.param(*values, id=name, marks=requirement(name))
