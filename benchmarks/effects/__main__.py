"""`python -m benchmarks effects`: precision and recall of read-only and of destructive, by set and by document.

  python -m benchmarks effects                         all sets
  python -m benchmarks effects --set tuned             one
  python -m benchmarks effects --only ec2,plaid        some documents
  python -m benchmarks effects --misses                and every operation that is called another thing than its label
  python -m benchmarks effects --json FILE             everything found, for a program

Exit code 1: an operation that changes something is called read-only. 3: a document cannot be had, or lacks an operation.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.apis import DocumentError, path
from mcpfactory_codegen.effects import EffectKind, effect_of
from mcpfactory_codegen.openapi import read_api
from mcpfactory_codegen.read.document import load

OPERATIONS = Path(__file__).with_name("operations.tsv")


@dataclass(frozen=True)
class Judged:
    """An operation, what it does by its label, and what the rule says."""

    set: str
    document: str
    operation: str
    operation_id: str
    label: EffectKind
    found: EffectKind


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the operations and print the table; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks effects", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", choices=["tuned", "apart", "fresh", "later", "unseen"], help="one set alone")
    parser.add_argument("--only", default="", help="documents, separated by commas")
    parser.add_argument("--misses", action="store_true", help="list what is called another thing than its label")
    parser.add_argument("--json", type=Path, help="write everything found")
    wish = parser.parse_args(arguments)
    rows = _rows(wish.set, {name for name in wish.only.split(",") if name})
    try:
        judged = [one for name, own in rows.items() for one in _judge(name, own)]
    except DocumentError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    print("\n".join(table(judged)))
    if wish.misses:
        print("\n".join(["", *misses(judged)]))
    if wish.json:
        wish.json.write_text(json.dumps([asdict(one) for one in judged], indent=1) + "\n", encoding="utf-8")
    return int(any(one.found == "reads" != one.label for one in judged))


def _rows(chosen: str | None, documents: set[str]) -> dict[str, list[dict[str, str]]]:
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    with OPERATIONS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if chosen in {None, row["set"]} and (not documents or row["document"] in documents):
                rows[row["document"]].append(row)
    return rows


def _judge(name: str, rows: Iterable[dict[str, str]]) -> list[Judged]:
    operations = read_api(load(path(name))).by_key()
    judged = []
    for row in rows:
        if row["operation"] not in operations:
            raise DocumentError(f"{name} has no operation {row['operation']}\nhint: correct {OPERATIONS.name}")
        found = effect_of(operations[row["operation"]]).kind
        judged.append(Judged(row["set"], name, row["operation"], row["operation_id"], row["effect"], found))  # type: ignore[arg-type]
    return judged


def table(judged: Sequence[Judged]) -> list[str]:
    """Return a line for each set and each document: how much of what is called so is so, and how much of what is so is called so."""
    head = f"{'set':7}{'document':18}{'operations':>11}{'read-only: precision':>22}{'recall':>9}{'destructive: precision':>24}{'recall':>9}"
    groups: dict[tuple[str, str], list[Judged]] = defaultdict(list)
    for one in judged:
        groups[one.set, ""].append(one)
        groups[one.set, one.document].append(one)
    return [head, *(_line(*key, own) for key, own in sorted(groups.items()))]


def _line(name: str, document: str, judged: Sequence[Judged]) -> str:
    reads, destroys = (figures(judged, kind) for kind in ("reads", "destroys"))
    return f"{name:7}{document or 'all':18}{len(judged):11}{reads[0]:>22}{reads[1]:>9}{destroys[0]:>24}{destroys[1]:>9}"


def figures(judged: Sequence[Judged], kind: str) -> tuple[str, str]:
    """Return precision and recall of one kind, “–” where nothing is of it."""
    right = sum(one.label == one.found == kind for one in judged)
    called = sum(one.found == kind for one in judged)
    are = sum(one.label == kind for one in judged)
    return (f"{right / called:.3f}" if called else "–"), (f"{right / are:.3f}" if are else "–")


def misses(judged: Sequence[Judged]) -> list[str]:
    """Return what is called another thing than its label, wrong read-only first."""
    wrong = sorted((one for one in judged if one.label != one.found), key=lambda one: one.found != "reads")
    return [f"{one.label} is called {one.found}: {one.document} {one.operation} {one.operation_id}" for one in wrong]


if __name__ == "__main__":
    sys.exit(main())
