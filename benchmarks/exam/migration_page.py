"""What came of migrated examples, as the tables of docs/reference/migration.md. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mcpfactory_codegen.text import markdown_text

__all__ = ["TABLES", "MigratedFile", "drawn", "summary"]

TABLES: Final = re.compile(
    r"(?<=<!-- drawn by: python -m benchmarks.exam migration --page -->\n).*?(?=<!-- end -->)", re.DOTALL
)
"""Where the tables stand in the page."""
_COMMONEST: Final = 20  # rows of what is left
_LONGEST: Final = 160  # characters of a reason
_HEAD: Final = (
    "| examples of | files | fully migrated | with a note | something left | compared | equal | differ | not started | calls |",
    "|---|---|---|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True, slots=True)
class MigratedFile:
    """What came of one example.

    Attributes:
        path: as seen from the root of its source distribution or checkout.
        left: what the codemod left to be done by hand, as it names it; () for one that is fully migrated.
        noted: how many places were left out on purpose.
        calls: how many calls were compared; 0 where none was.
        differs: what callers would notice.
        silent: why one of both could not be asked; "" where both were.
    """

    path: str
    left: tuple[str, ...] = ()
    noted: int = 0
    calls: int = 0
    differs: tuple[str, ...] = ()
    silent: str = ""

    @property
    def fully(self) -> bool:
        """Whether nothing is left to do by hand."""
        return not self.left

    @property
    def compared(self) -> bool:
        """Whether both versions were asked."""
        return self.fully and not self.silent

    @property
    def equal(self) -> bool:
        """Whether callers see the same."""
        return self.compared and not self.differs


def drawn(page: str, found: Mapping[str, Sequence[MigratedFile]], when: str, only: str = "") -> str:
    """The page with the tables of what was found; the keys are the packages with their versions, `only` is a part of the paths."""
    which = f", of paths with `{only}`" if only else ""
    whole = "\n".join(
        [
            f"On {when}{which}:",
            "",
            *_HEAD,
            *(_row(name, rows) for name, rows in found.items()),
            "",
            *_reasons(found),
            "",
        ]
    )
    return TABLES.sub(lambda _: whole, page, count=1)


def summary(rows: Sequence[MigratedFile]) -> str:
    """One line: files, fully migrated, compared, equal."""
    fully, compared = sum(one.fully for one in rows), sum(one.compared for one in rows)
    return f"{len(rows)} files, {fully} fully migrated, {compared} compared, {sum(one.equal for one in rows)} equal"


def _row(name: str, rows: Sequence[MigratedFile]) -> str:
    fully = [one for one in rows if one.fully]
    cells = (
        name, len(rows), len(fully), sum(bool(one.noted) for one in fully), len(rows) - len(fully), sum(one.compared for one in rows),
        sum(one.equal for one in rows), sum(bool(one.differs) for one in rows), sum(bool(one.silent) for one in rows), sum(one.calls for one in rows),
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def _reasons(found: Mapping[str, Sequence[MigratedFile]]) -> Iterator[str]:
    told = [(one.path, one.differs, one.silent) for rows in found.values() for one in rows if one.differs or one.silent]
    if told:
        yield from ("What differs, and what could not be started:", "", "| example | what |", "|---|---|")
        for path, differs, silent in told:
            yield f"| `{path}` | {markdown_text(_short('; '.join(differs) or silent))} |"
        yield ""
    counts = Counter(what for rows in found.values() for one in rows for what in dict.fromkeys(map(_kind, one.left)))
    if counts:
        yield from (f"What is left by hand, the commonest {_COMMONEST}:", "", "| what | files |", "|---|---|")
        yield from (f"| `{what}` | {count} |" for what, count in counts.most_common(_COMMONEST))


def _kind(what: str) -> str:
    """`mcp.add_transform` and `server.add_transform` are one thing: the name of a variable says nothing."""
    return re.sub(r"^(?!from |import )[a-z]\w*\.", "….", what)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
