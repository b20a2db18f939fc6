"""Real API documents as servers: what making each costs, and whether an MCP client that is not ours can use what it lists.

`python -m benchmarks.exam documents` prints a row for each document of `benchmarks/apis`: operations, tools, what was left out with a
reason, seconds by the clock and of the processor, the peak of memory, seconds and size of the tool list, and faults.
"""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.apis import Document, DocumentError, path, select
from benchmarks.exam.generation import MOST_MEGABYTES, MOST_SECONDS, Making, make
from benchmarks.exam.listing import faults, listed
from benchmarks.exam.results import Outcome, judged, unavailable

LEAST = 0.995  # share of operations that must become tools; one operation may always be left out for a reason


class Row(NamedTuple):
    """What came of one document."""

    making: Making
    tools: int = 0
    skipped: int = 0
    seconds: float = 0
    kilobytes: float = 0
    faults: tuple[str, ...] = ()


def documents(only: str) -> Outcome:
    """Print the table, for the documents that `only` names or for all."""
    try:
        wanted = [(one, path(one)) for one in select(only)]
    except DocumentError as error:
        return unavailable(str(error))
    print(
        f"{'document':16} {'operations':>10} {'tools':>6} {'left out':>8} {'seconds':>8} {'processor':>9} {'peak MB':>8} {'listed s':>8} {'kB':>8}",
        flush=True,
    )
    rows = [_examined(one, file) for one, file in wanted]
    good = sum(not row.faults for row in rows)
    tools, operations = sum(row.tools for row in rows), sum(one.operations for one, _ in wanted)
    worst = f"at most {max(one.making.seconds for one in rows):.1f} s and {max(one.making.megabytes for one in rows):.0f} MB"
    figure = f"{good} of {len(rows)} documents without fault, {tools} tools of {operations} operations, {worst}"
    return judged(figure, good=good == len(rows))


def _examined(one: Document, file: Path) -> Row:
    with TemporaryDirectory(prefix="mcpfactory-documents-") as folder:
        making = make(Path(folder), file)
        refused = not one.operations and "CreateError: " in making.errors  # there is nothing to call
        row = (
            Row(making, faults=() if refused else (making.errors,))
            if making.errors
            else _used(one, making, Path(folder) / "exam")
        )
    cells = f"{one.operations:10} {row.tools:6} {row.skipped:8} {making.seconds:8.1f} {making.processor:9.1f} {making.megabytes:8.0f}"
    print(
        f"{one.name:16} {cells} {row.seconds:8.1f} {row.kilobytes:8.0f}  {'; '.join(row.faults)}".rstrip(), flush=True
    )
    return row


def _used(one: Document, making: Making, server: Path) -> Row:
    skipped = len(json.loads((server / ".mcpfactory/report.json").read_bytes())["skipped"])
    began = time.perf_counter()
    try:
        tools: list[Any] = asyncio.run(listed(server))
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is what the table is for
        return Row(making, skipped=skipped, faults=(f"no tool list: {type(error).__name__}: {error}"[:300],))
    seconds = time.perf_counter() - began
    found = faults(tools)
    if len(tools) + skipped < one.operations:
        found.append(f"{one.operations - len(tools) - skipped} operations are neither tools nor left out")
    if len(tools) < min(LEAST * one.operations, one.operations - 1):
        found.append(f"only {len(tools)} of {one.operations} operations became tools")
    if not making.within:
        found.append(f"making took more than {MOST_SECONDS} s or {MOST_MEGABYTES} MB")
    return Row(making, len(tools), skipped, seconds, len(json.dumps(tools)) / 1000, tuple(found))
