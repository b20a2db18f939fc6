"""How well search mode finds the tool that answers a plain question, and what it saves.

    python -m benchmarks search [--set questions|earlier|fresh] [--document NAME] [--misses] [--within 5]

The questions are in benchmarks/questions/, each with its document, its kind and every operation that answers it. `questions` has
two hundred for ten documents; a hash of each question puts it into the half that search was tuned with or into the half that was
kept apart, whose misses nobody looks at: only its figures are printed. All of `earlier` was used for tuning, nothing of `fresh`,
which is about documents that the others do not have.
A question counts as found within K when one of the operations that answer it is among the first K tools of one search; an answer
names 18. Printed by document and by kind: the shares of both halves; tokens of tools/list in mode full and in mode search, and of one answer;
milliseconds for the index (with the start of search mode) and for a question.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import hashlib
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.apis import DocumentError, path, select
from mcpfactory_codegen.describe.tools import describe_all
from mcpfactory_codegen.emit import Options, emit
from mcpfactory_codegen.naming import name_api
from mcpfactory_codegen.openapi import read_api
from mcpfactory_codegen.read.document import load
from mcpfactory_codegen.text import count_tokens
from mcpfactory_runtime import Server
from mcpfactory_runtime.testing import connect

QUESTIONS: Final = Path(__file__).parent / "questions"
WITHIN: Final = (1, 3, 5, 10, 18)  # 18 tools are named in one answer: eight with a line each, ten more by name
MOST: Final = 50  # tools that one search may name
HALVES: Final = ("tuned", "apart")
_WHOLE: Final = {"earlier": "tuned", "fresh": "apart"}  # sets that are of one half


class Asked(NamedTuple):
    document: str
    kind: str
    question: str
    answers: frozenset[str]
    half: str


class Answer(NamedTuple):
    asked: Asked
    rank: int  # of the first operation that answers; 0 when none of the first MOST does
    first: tuple[str, ...]
    seconds: float
    tokens: int  # of an answer with as many tools as a search names unless it is asked for more


class Outcome(NamedTuple):
    answers: list[Answer]
    tools: int
    full: int
    search: int
    start: float


def half(document: str, question: str) -> str:
    """The half that a question of `questions` is in, whatever is tuned."""
    return HALVES[hashlib.sha256(f"{document}: {question}".encode()).digest()[0] % 2]


def read(name: str) -> list[Asked]:
    """The questions of one set."""
    with (QUESTIONS / f"{name}.tsv").open(encoding="utf-8") as file:
        return [
            Asked(
                row["document"],
                row["kind"],
                row["question"],
                frozenset(row["answers"].split(" | ")),
                _WHOLE.get(name) or half(row["document"], row["question"]),
            )
            for row in csv.DictReader(file, delimiter="\t")
        ]


def manifest(document: Path, folder: Path) -> Path:
    """A `_generated` folder with the manifest alone: search needs no more."""
    api = read_api(load(document))
    names = name_api(api, server="bench")
    files = emit(api, names, describe_all(api, names).tools, Options("bench", "bench"))
    (folder / "manifest.json").write_text(files["src/bench/_generated/manifest.json"], "utf-8")
    return folder


async def ask(folder: Path, questions: Iterable[Asked]) -> Outcome:
    server = Server("bench")
    server.mount_manifest(folder)
    operations = {
        tool["name"]: tool["operation"] for tool in json.loads((folder / "manifest.json").read_bytes())["tools"]
    }
    async with connect(server) as client:
        full = count_tokens(await client.list_tools())
        started = time.perf_counter()
        server.offer("search")
        await client.call_tool("search_tools", {"query": "first"})
        start = time.perf_counter() - started
        answers = [await one(client, asked, operations) for asked in questions]
        search = count_tokens(await client.list_tools())
    return Outcome(answers, len(operations), full, search, start)


async def one(client: Any, asked: Asked, operations: dict[str, str]) -> Answer:
    started = time.perf_counter()
    result = await client.call_tool("search_tools", {"query": asked.question, "limit": MOST})
    seconds = time.perf_counter() - started
    lines = [line for line in result["content"][0]["text"].splitlines() if line.startswith("- ")]
    found = [line[2:].partition("(")[0] for line in lines]
    if unknown := asked.answers - set(operations.values()):
        raise SystemExit(f"{asked.question}: the document has no {', '.join(sorted(unknown))}")
    rank = next((place for place, name in enumerate(found, 1) if operations[name] in asked.answers), 0)
    usual = await client.call_tool("search_tools", {"query": asked.question})
    return Answer(asked, rank, tuple(found[:3]), seconds, count_tokens(usual["content"][0]["text"]))


def share(answers: Sequence[Answer], within: int) -> str:
    if not answers:
        return "–"
    return f"{100 * sum(0 < answer.rank <= within for answer in answers) / len(answers):.0f} %"


def row(title: str, answers: Sequence[Answer]) -> str:
    """One line: for each half how many were asked, and the share found within each K."""
    cells = []
    for name in HALVES:
        mine = [answer for answer in answers if answer.asked.half == name]
        cells.append(f"{len(mine):6}" + "".join(f"{share(mine, within):>7}" for within in WITHIN))
    return f"{title:24}" + "  |".join(cells)


def show(outcomes: dict[str, Outcome]) -> None:
    """Print all tables."""
    every = [answer for outcome in outcomes.values() for answer in outcome.answers]
    head = "".join(f"{f'in {within}':>7}" for within in WITHIN)
    print(f"{'':24}" + "  |".join(f"{name:>6}{head}" for name in HALVES))
    for document, outcome in outcomes.items():
        print(row(document, outcome.answers))
    kinds: dict[str, list[Answer]] = defaultdict(list)
    for answer in every:
        kinds[answer.asked.kind].append(answer)
    print()
    for kind, answers in kinds.items():
        print(row(kind, answers))
    print()
    print(row("all", every))
    print(f"\n{'':24}{'tools':>6}{'full':>9}{'search':>8}{'answer':>8}{'start ms':>10}{'query ms':>10}")
    for document, outcome in outcomes.items():
        count = len(outcome.answers)
        tokens = sum(answer.tokens for answer in outcome.answers) / count
        each = 1000 * sum(answer.seconds for answer in outcome.answers) / count
        print(f"{document:24}{outcome.tools:6}{outcome.full:9}{outcome.search:8}{tokens:8.0f}"
              f"{1000 * outcome.start:10.0f}{each:10.1f}")  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks search", description="Measure search mode.")
    parser.add_argument("--set", default="questions", choices=sorted(path.stem for path in QUESTIONS.glob("*.tsv")))
    parser.add_argument("--document", action="append", help="only questions about this document (repeatable)")
    parser.add_argument("--within", type=int, default=5, help="what counts as a miss")
    parser.add_argument("--misses", action="store_true", help="print what was missed of the tuned half")
    options = parser.parse_args(arguments)
    asked: dict[str, list[Asked]] = defaultdict(list)
    for question in read(options.set):
        if not options.document or question.document in options.document:
            asked[question.document].append(question)
    try:
        files = {document.name: path(document) for document in select(asked)}
    except DocumentError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    outcomes: dict[str, Outcome] = {}
    for document, questions in asked.items():
        with tempfile.TemporaryDirectory() as folder:
            outcomes[document] = asyncio.run(ask(manifest(files[document], Path(folder)), questions))
    show(outcomes)
    for outcome in outcomes.values() if options.misses else ():
        for answer in outcome.answers:
            if answer.asked.half == "tuned" and not 0 < answer.rank <= options.within:
                print(f"  {answer.rank or '-':>3}  {answer.asked.question}  ({', '.join(answer.first)} came first)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
