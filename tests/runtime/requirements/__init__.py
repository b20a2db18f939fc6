"""Requirements for servers of each revision, as rows, and the marks that connect tests to the rows.

The modules of this package have the rows. A test names the rows that it checks:

    @requirement("tools.unknown-tool", "message.error-id")
    def test_...

`test_table` fails for a row that has neither test nor reason, and for a test that names no row. A test of a row with a
gap must fail: if it passes, the gap is closed and its reason must be removed (`plugin`). `make docs` generates
`docs/reference/compliance.md` from the rows.
"""

from __future__ import annotations

from typing import Any

import pytest

__all__ = ["case", "requirement"]

requirement = pytest.mark.requirement


def case(name: str, *values: Any) -> Any:
    """Return a set of parameters that checks one requirement: `case("tools.unknown-tool", …)`."""
    return pytest.param(*values, id=name, marks=requirement(name))
