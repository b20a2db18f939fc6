"""How the servers behind a gateway are: one page, for programs. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["ChildHealth", "health_json", "make_page"]


@dataclass(frozen=True, slots=True)
class ChildHealth:
    """One server: how it is and since when, and how many tools, starts, calls, calls in flight and errors it has.

    `left_out` says which of its texts were cleaned or left out: hidden characters.
    """

    server: str
    state: str
    since: str
    tools: int
    starts: int
    calls: int
    in_flight: int
    errors: int
    last_error: str
    left_out: str = ""


def health_json(rows: Sequence[ChildHealth]) -> dict[str, Any]:
    """Return the page as data. `status` is `degraded` while a server is broken."""
    return {
        "status": "degraded" if any(row.state == "broken" for row in rows) else "ok",
        "servers": [asdict(row) for row in rows],
    }


def make_page(read: Callable[[], Sequence[ChildHealth]]) -> Callable[[str, bool], tuple[str, str]]:
    """Return the page for HTTP; who may not call the gateway learns its status only."""

    def page(_accept: str, admitted: bool) -> tuple[str, str]:
        rows = read()
        if not admitted:
            return "application/json", json.dumps({"status": health_json(rows)["status"]}) + "\n"
        return "application/json", json.dumps(health_json(rows), indent=2) + "\n"

    return page
