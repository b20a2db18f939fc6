"""Days by the machine's clock, for commands that know no other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final


def _in(days: int) -> str:
    return (datetime.now(UTC) + timedelta(days)).date().isoformat()


TODAY: Final = _in(0)
NEXT_MONTH: Final = _in(30)
