"""How the servers behind a gateway are: one page, for people and for programs. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Final

__all__ = ["ChildHealth", "health_json", "health_page", "make_page"]


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


_STYLE: Final = (
    "body{font:16px system-ui;margin:2rem;color-scheme:light dark}table{border-collapse:collapse}"
    "th,td{text-align:left;padding:.3rem .8rem;border-bottom:1px solid #8886}td:nth-child(n+4):nth-child(-n+8){text-align:right}"
    ".broken{color:#c22;font-weight:600}"
)


def health_page(rows: Sequence[ChildHealth]) -> str:
    """Return the page for people."""
    head = "".join(
        f"<th scope=col>{name}</th>"
        for name in (
            "server",
            "state",
            "since",
            "tools",
            "starts",
            "calls",
            "in flight",
            "errors",
            "last error",
            "left out",
        )
    )
    body = "".join(
        f"<tr><th scope=row>{escape(row.server)}</th><td class={row.state}>{row.state}</td>"
        + "".join(f"<td>{escape(str(value))}</td>" for value in list(asdict(row).values())[2:])
        + "</tr>"
        for row in rows
    )
    title = f"Gateway: {health_json(rows)['status']}"
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>"
        f"<h1>{title}</h1><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></html>\n"
    )


def make_page(read: Callable[[], Sequence[ChildHealth]]) -> Callable[[str, bool], tuple[str, str]]:
    """Return the page for HTTP: HTML for who asks for it, else JSON; who may not call the gateway learns its status only."""

    def page(accept: str, admitted: bool) -> tuple[str, str]:
        rows = read()
        if not admitted:
            return "application/json", json.dumps({"status": health_json(rows)["status"]}) + "\n"
        if "text/html" in accept:
            return "text/html; charset=utf-8", health_page(rows)
        return "application/json", json.dumps(health_json(rows), indent=2) + "\n"

    return page
