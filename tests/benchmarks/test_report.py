"""The tables of the performance page, when only some of its parts were measured anew."""

from __future__ import annotations

from benchmarks.bench.report import merged

OLD = """| what | who | median |
|---|---|---|
| start | ours | 1 |
| start | theirs | 2 |
| calls | ours | 3 |

Machine: an old one."""
NEW = """| what | who | median |
|---|---|---|
| calls | ours | 30 |
| calls | theirs | 40 |

Machine: a new one."""


def test_rows_that_were_measured_are_replaced_and_the_others_stay() -> None:
    assert merged(OLD, NEW, 2).splitlines() == [
        "| what | who | median |",
        "|---|---|---|",
        "| start | ours | 1 |",
        "| start | theirs | 2 |",
        "| calls | ours | 30 |",
        "| calls | theirs | 40 |",
        "",
        "Machine: a new one.",
    ]


def test_a_whole_table_replaces_itself() -> None:
    assert merged(OLD, OLD, 2) == OLD
    assert merged("", NEW, 2) == NEW
