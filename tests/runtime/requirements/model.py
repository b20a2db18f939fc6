"""Row of the requirements table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from mcpfactory_runtime.revisions import LATEST, R2024_11_05, REVISIONS, Revision

EXTENSION = "extension"
"""`on` of rows that apply only if both sides declare the extension."""


@dataclass(frozen=True)
class Row:
    """One requirement for servers.

    Attributes:
        id: `<area>.<what>`; tests name it.
        text: the requirement in our own words, with the server as subject.
        section: page and heading of the specification, of the newest revision that has it.
        level: MUST or SHOULD (their negations included).
        since: the first revision with the requirement.
        until: the last revision with the requirement.
        on: transports to which the requirement is limited; empty for all.
        gap: reason why the requirement is not met; "" if it is met, and then a test checks it.
        author: reason why the runtime cannot meet it for the author of a server; such a row has no test.
        note: further information for readers.
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
        """Return the revisions with the requirement, oldest first."""
        names = list(REVISIONS)
        return list(REVISIONS.values())[names.index(self.since.name) : names.index(self.until.name) + 1]


def must(name: str, text: str, section: str, **more: Any) -> Row:
    """Return a row of level MUST; `area` completes `name`."""
    return Row(name, text, section, "MUST", **more)


def should(name: str, text: str, section: str, **more: Any) -> Row:
    """Return a row of level SHOULD."""
    return Row(name, text, section, "SHOULD", **more)


def area(prefix: str, page: str, rows: Iterable[Row], **shared: Any) -> tuple[Row, ...]:
    """Return rows with prefixed names and headings; `shared` has the defaults of their fields."""
    plain = Row("", "", "", "")
    made = []
    for row in rows:
        own = {key: value for key, value in shared.items() if getattr(row, key) == getattr(plain, key)}
        made.append(
            replace(row, id=f"{prefix}.{row.id}", section=f"{page}, {row.section}" if row.section else page, **own)
        )
    return tuple(made)
