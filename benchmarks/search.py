"""How well search mode finds the tool that answers a plain question, and what it saves.

    python -m benchmarks.search [--set exam|tuning|fresh] [--misses] [--no-alike]

The questions are in benchmarks/questions/: `exam` was written before there was a search, and its misses were not looked at,
but who wrote the index's table of words knew the questions; `tuning` is what the index was tuned with; `fresh` was written
when that was done, for documents of neither, and asked once. A question counts as found within K when one of the operations
that answer it is among the first K tools.
Printed per document: the share found, tokens of tools/list in mode full and in mode search, milliseconds for the index
(with the start of search mode) and for a question.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.apis import DocumentError, path, select
from mcpfactory_codegen.describe.tools import describe_all
from mcpfactory_codegen.emit import Options, emit
from mcpfactory_codegen.naming import name_api
from mcpfactory_codegen.openapi import read_api
from mcpfactory_codegen.read.document import load
from mcpfactory_codegen.text import count_tokens
from mcpfactory_runtime import Server
from mcpfactory_runtime.server.generated import search_index
from mcpfactory_runtime.testing import connect

QUESTIONS = Path(__file__).parent / "questions"
WITHIN = (1, 3, 5, 10)
MOST = 50  # tools that one search may name


class Answer(NamedTuple):
    question: str
    rank: int  # of the first operation that answers; 0 when none of the first MOST does
    first: tuple[str, ...]
    seconds: float


class Outcome(NamedTuple):
    answers: list[Answer]
    tools: int
    full: int
    search: int
    start: float


def manifest(document: Path, folder: Path) -> Path:
    """A `_generated` folder with the manifest alone: search needs no more."""
    api = read_api(load(document))
    names = name_api(api, server="bench")
    files = emit(api, names, describe_all(api, names).tools, Options("bench", "bench"))
    (folder / "manifest.json").write_text(files["src/bench/_generated/manifest.json"], "utf-8")
    return folder


async def ask(folder: Path, questions: list[dict[str, str]]) -> Outcome:
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
        answers = [await one(client, row, operations) for row in questions]
        search = count_tokens(await client.list_tools())
    return Outcome(answers, len(operations), full, search, start)


async def one(client: Any, row: dict[str, str], operations: dict[str, str]) -> Answer:
    started = time.perf_counter()
    result = await client.call_tool("search_tools", {"query": row["question"], "limit": MOST})
    seconds = time.perf_counter() - started
    lines = [line for line in result["content"][0]["text"].splitlines() if line.startswith("- ")]
    found = [line[2:].partition("(")[0] for line in lines]
    wanted = set(row["answers"].split(" | "))
    if unknown := wanted - set(operations.values()):
        raise SystemExit(f"{row['question']}: the document has no {', '.join(sorted(unknown))}")
    rank = next((place for place, name in enumerate(found, 1) if operations[name] in wanted), 0)
    return Answer(row["question"], rank, tuple(found[:3]), seconds)


def shares(answers: list[Answer]) -> list[str]:
    return [f"{100 * sum(0 < answer.rank <= k for answer in answers) / len(answers):.0f} %" for k in WITHIN]


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure search mode.")
    parser.add_argument("--set", default="exam", choices=sorted(path.stem for path in QUESTIONS.glob("*.tsv")))
    parser.add_argument("--misses", action="store_true", help="print what was not among the first five")
    parser.add_argument("--no-alike", action="store_true", help="without words that mean alike")
    options = parser.parse_args()
    if options.no_alike:
        vars(search_index)["alike"] = lambda word: frozenset()
    asked: dict[str, list[dict[str, str]]] = defaultdict(list)
    with (QUESTIONS / f"{options.set}.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            asked[row["document"]].append(row)
    try:
        files = {one.name: path(one) for one in select(asked)}
    except DocumentError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    print(f"{'document':16}{'tools':>6}{'asked':>6}" + "".join(f"{f'in {k}':>7}" for k in WITHIN)
          + f"{'full':>9}{'search':>7}{'start ms':>9}{'query ms':>9}")  # fmt: skip
    every: list[Answer] = []
    for name, questions in asked.items():
        with tempfile.TemporaryDirectory() as folder:
            outcome = asyncio.run(ask(manifest(files[name], Path(folder)), questions))
        every += outcome.answers
        each = 1000 * sum(answer.seconds for answer in outcome.answers) / len(outcome.answers)
        print(f"{name:16}{outcome.tools:6}{len(questions):6}" + "".join(f"{share:>7}" for share in shares(outcome.answers))
              + f"{outcome.full:9}{outcome.search:7}{1000 * outcome.start:9.0f}{each:9.1f}")  # fmt: skip
    print(f"{'all':16}{'':6}{len(every):6}" + "".join(f"{share:>7}" for share in shares(every)))
    for answer in every if options.misses else ():
        if not 0 < answer.rank <= 5:
            print(f"  {answer.rank or '-':>3}  {answer.question}  ({', '.join(answer.first)} came first)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
