"""The requirements of every revision, as rows."""

from __future__ import annotations

from tests.runtime.requirements import base, client_requests, features, security, tasks, transports
from tests.runtime.requirements.model import Row

ROWS: tuple[Row, ...] = (
    *base.ROWS,
    *transports.ROWS,
    *features.ROWS,
    *client_requests.ROWS,
    *security.ROWS,
    *tasks.ROWS,
)
TABLE: dict[str, Row] = {row.id: row for row in ROWS}
