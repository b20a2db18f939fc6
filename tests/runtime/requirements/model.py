"""What a row of the requirements table is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from mcpfactory_runtime.revisions import LATEST, R2024_11_05, REVISIONS, Revision

EXTENSION = "extension"
"""`on` of rows that hold only where the extension is declared on both sides."""


@dataclass(frozen=True)
class Row:
    """One thing that a server must or should do.

    Attributes:
        id: `<area>.<what>`; tests name it.
        text: the requirement in our own words, with the server as subject.
        section: page and heading of the specification, of the newest revision that has it.
        level: MUST or SHOULD (their negations included).
        since: the first revision that says so.
        until: the last one.
        on: transports that it is limited to; empty for all.
        gap: why it is not met yet; "" when it is, and then a test shows it.
        author: why the runtime cannot do it for the author of a server; such a row has no test.
        note: what readers should know besides.
    """

    id: str
    text: str
    section: str
    level: str
    since: Revision = R2024_11_05
    until: Revision = LATEST
    on: tuple[str, ...] = ()
    gap: str = ""
    author: str = ""
    note: str = ""

    @property
    def revisions(self) -> list[Revision]:
        """The revisions that have the requirement, oldest first."""
        names = list(REVISIONS)
        return list(REVISIONS.values())[names.index(self.since.name) : names.index(self.until.name) + 1]


def must(name: str, text: str, section: str, **more: Any) -> Row:
    """A row of level MUST; `name` is completed by `area`."""
    return Row(name, text, section, "MUST", **more)


def should(name: str, text: str, section: str, **more: Any) -> Row:
    """A row of level SHOULD."""
    return Row(name, text, section, "SHOULD", **more)


def area(prefix: str, page: str, rows: Iterable[Row], **shared: Any) -> tuple[Row, ...]:
    """Rows with the prefix before their names and the page before their headings; `shared` where a row says nothing."""
    plain = Row("", "", "", "")
    made = []
    for row in rows:
        own = {key: value for key, value in shared.items() if getattr(row, key) == getattr(plain, key)}
        made.append(
            replace(row, id=f"{prefix}.{row.id}", section=f"{page}, {row.section}" if row.section else page, **own)
        )
    return tuple(made)
