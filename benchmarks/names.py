"""`python -m benchmarks names`: what the names of tools keep of what API documents say.

  python -m benchmarks names                       the whole list (benchmarks/apis/documents.tsv)
  python -m benchmarks names --set apart           the documents that nobody looks at while naming is changed
  python -m benchmarks names --only github,stripe  some of the list
  python -m benchmarks names --files a.json b.yaml documents from elsewhere
  python -m benchmarks names --against main        beside the names that a commit gives: before → after
  python -m benchmarks names --sample 200          names to read, the same ones each time
  python -m benchmarks names --json FILE           every name, for a program

A row per document with a finding, and the total:

- `hash`: names that end in a digest
- `lost`: names without a word of the operationId, although 64 characters have room for it; what repeats the path
  or its parameters, versions, articles and prepositions is not counted, and a usual short form is the word
- `verb`: names whose verb contradicts the summary's: `create_…` of "Get a list of …"
- `alike`: names that have the same words as another one of the document, in whatever order and number, digests aside
- `long`: characters of the longest name

Exit code 1: more than one in 1,000 ends in a digest. 3: a document cannot be had.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.apis import DocumentError
from benchmarks.apis.parts import METHODS
from benchmarks.house.measure import commit_tree
from benchmarks.staging.arrival import Source
from benchmarks.staging.sources import from_files, from_list
from mcpfactory_codegen.naming.tools import USUAL
from mcpfactory_codegen.text import VERSION, digest, singular, words

_LIMIT: Final = 64
_MOST_DIGESTS: Final = 1000  # one in so many
_LITTLE_WORDS: Final = """
    id ids by using controller api rest a an the of for in to from with on at and via get put post patch delete
"""
_LITTLE: Final = frozenset(_LITTLE_WORDS.split())
_READS: Final = re.compile(r"(gets?|lists?|retrieves?|returns?|fetch(es)?|shows?) (a|an|the|all|list)\b", re.I)
_CHANGES: Final = re.compile(r"(creates?|adds?|deletes?|removes?|updates?|edits?) (a|an|the|all|new)\b", re.I)
_READING_NAME: Final = re.compile(r"(get|list|check)_")
_CHANGING_NAME: Final = re.compile(r"(create|add|update|set|delete|replace)_")
# What the code of another commit is asked, too: nothing but these two names.
_NAMER: Final = """
import json, sys
from mcpfactory_codegen.ir import ApiOperation
from mcpfactory_codegen.naming import name_tools
for line in sys.stdin:
    rows = [ApiOperation(*row[:2], "", operation_id=row[2], summary=row[3]) for row in json.loads(line)]
    print(json.dumps(name_tools(rows, {})), flush=True)
"""

Row = tuple[str, str, str, str]


@dataclass(frozen=True)
class Figures:
    """What was found in the names of one document, or of all."""

    tools: int = 0
    hash: int = 0
    lost: int = 0
    verb: int = 0
    alike: int = 0
    long: int = 0

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.tools + other.tools,
            self.hash + other.hash,
            self.lost + other.lost,
            self.verb + other.verb,
            self.alike + other.alike,
            max(self.long, other.long),
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Name the operations of the documents, and print what was found; the exit code."""
    wish = _parser().parse_args(arguments)
    try:
        sources = list(from_files(wish.files)) if wish.files else list(from_list(wish.only, wish.set))
    except (DocumentError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    read = [(source.name, rows) for source in sources if (rows := _operations(source))]
    after = _named([rows for _, rows in read], Path(__file__).parents[1])
    before: list[dict[str, str]] = []
    if wish.against:
        with commit_tree(wish.against) as root:
            before = _named([rows for _, rows in read], root)
    total, old = Figures(), Figures()
    print(f"{'document':28} {'tools':>7}  {'hash':>13} {'lost':>13} {'verb':>13} {'alike':>13} {'long':>9}")
    for index, (name, rows) in enumerate(read):
        found = figures(rows, after[index])
        then = figures(rows, before[index]) if before else None
        total, old = total + found, old + (then or Figures())
        if any((found.hash, found.lost, found.verb)) or (then and any((then.hash, then.lost, then.verb))):
            print(_line(name, found, then))
    print(_line(f"{len(read)} documents", total, old if before else None))
    _sample(wish.sample, read, after)
    if wish.json:
        record = {name: after[index] for index, (name, _) in enumerate(read)}
        wish.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return int(total.hash * _MOST_DIGESTS > total.tools)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks names", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="NAMES")
    parser.add_argument("--set", default="all", choices=("all", "tuning", "apart"))
    parser.add_argument("--files", nargs="+", type=Path, default=[], metavar="FILE")
    parser.add_argument("--against", default="", metavar="COMMIT")
    parser.add_argument("--sample", type=int, default=0, metavar="NUMBER")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser


def _operations(source: Source) -> list[Row]:
    """Method, path, operationId and summary of each operation; [] of what is no OpenAPI document in one file."""
    content = source.file.read_bytes()
    try:
        json_text = content.lstrip().startswith(b"{")
        data: Any = (
            json.loads(content) if json_text else yaml.load(content, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        )
        return list(_rows(data.get("paths") or {}))
    except (ValueError, AttributeError, yaml.YAMLError):
        return []


def _rows(paths: dict[str, Any]) -> Iterator[Row]:
    for path, item in paths.items():
        for method, one in item.items() if isinstance(item, dict) else ():
            if method in METHODS and isinstance(one, dict):
                yield method.upper(), str(path), str(one.get("operationId") or ""), str(one.get("summary") or "")


def _named(documents: list[list[Row]], root: Path) -> list[dict[str, str]]:
    """Return the names that the code below a folder gives, by operation, for each document."""
    sources = os.pathsep.join(str(root / part) for part in ("factory/codegen/src", "factory/runtime/src"))
    done = subprocess.run(
        [sys.executable, "-c", _NAMER],
        input="".join(json.dumps(rows) + "\n" for rows in documents),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": sources},
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def figures(rows: Sequence[Row], names: dict[str, str]) -> Figures:
    """What is found in the names of one document."""
    by_key = {f"{row[0]} {row[1]}": row for row in rows}
    ends = {key: name.rpartition("_")[0] for key, name in _tails(names)}  # a digest tells a reader nothing
    kinds = Counter(frozenset(map(singular, words(ends.get(key, name)))) for key, name in names.items())
    return Figures(
        tools=len(names),
        hash=sum(name.endswith(digest(key)[: len(name.rpartition("_")[2])]) for key, name in _tails(names)),
        lost=sum(bool(lost(by_key[key], name)) for key, name in names.items()),
        verb=sum(_contradicts(by_key[key][3], name) for key, name in names.items()),
        alike=sum(number for number in kinds.values() if number > 1),
        long=max(map(len, names.values()), default=0),
    )


def _tails(names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The names that end in eight or more hexadecimal digits, where a digest stands."""
    return ((key, name) for key, name in names.items() if re.search(r"(\A|_)[0-9a-f]{8,64}\Z", name))


def lost(row: Row, name: str) -> list[str]:
    """The words of the operationId that the name lacks although it has room for them."""
    method, path, operation_id, _ = row
    has = {form for word in words(name) for form in _forms(word)}
    parameters = "".join("".join(words(one)) for one in re.findall(r"\{([^{}]*)\}", path))
    missing = []
    said = _without_path(words(operation_id), path, method.lower())
    has_joined = _joined_in(said, has)
    for word in dict.fromkeys(said):
        restated = word.removeprefix("by") in parameters or word in _LITTLE or VERSION.match(word)
        machine = re.fullmatch(r"[0-9a-f]{16,}", word)
        if (
            not (_forms(word) & has or word in has_joined or restated or machine)
            and len(name) + 1 + len(word) <= _LIMIT
        ):
            missing.append(word)
    return missing


def _joined_in(said: Sequence[str], has: set[str]) -> set[str]:
    """The words that are a name's word only together: `IPs` is i and ps in the operationId, and `ips` in the name."""
    runs = [said[start : start + length] for length in (2, 3) for start in range(len(said) - length + 1)]
    return {word for run in runs if _forms("".join(run)) & has for word in run}


def _forms(word: str) -> set[str]:
    one = singular(word)
    return {one, USUAL.get(one, one)}


def _without_path(parts: tuple[str, ...], path: str, method: str) -> tuple[str, ...]:
    """Words of an operationId without method and path, where a framework put all of both into it."""
    for run in ((*words(path), method), (method, *words(path))):
        for index in range(len(parts) - len(run) + 1):
            if len(run) > 2 and parts[index : index + len(run)] == run:  # two words may be a person's: `colors.get`
                return parts[:index] + parts[index + len(run) :]
    return parts


def _contradicts(summary: str, name: str) -> bool:
    reads, changes = _READS.match(summary), _CHANGES.match(summary)
    return bool((reads and _CHANGING_NAME.match(name)) or (changes and _READING_NAME.match(name)))


def _line(name: str, found: Figures, then: Figures | None) -> str:
    cells = []
    for field, width in (("hash", 13), ("lost", 13), ("verb", 13), ("alike", 13), ("long", 9)):
        now = str(getattr(found, field))
        cells.append(f"{getattr(then, field)} → {now}".rjust(width) if then else now.rjust(width))
    return f"{name[:28]:28} {found.tools:7}  {' '.join(cells)}"


def _sample(number: int, read: list[tuple[str, list[Row]]], names: list[dict[str, str]]) -> None:
    every = [(names[index][f"{row[0]} {row[1]}"], row, name) for index, (name, rows) in enumerate(read) for row in rows]
    for name, row, document in random.Random(1).sample(every, min(number, len(every))):
        print(f"{name:64} {row[0]} {row[1][:80]} | {row[2][:80]} | {row[3][:80]} | {document}")


if __name__ == "__main__":
    sys.exit(main())
