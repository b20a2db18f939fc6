"""Dates by the machine's clock, for commands that use this clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final


def _in(days: int) -> str:
    return (datetime.now(UTC) + timedelta(days)).date().isoformat()


TODAY: Final = _in(0)
NEXT_MONTH: Final = _in(30)
