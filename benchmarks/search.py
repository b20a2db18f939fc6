"""How well search mode finds the tool that answers a plain question, and what it saves.

    python -m benchmarks search [--set questions|earlier|fresh|unseen|selection|final] [--document NAME] [--within 5] [--misses] [--model FOLDER]

The questions are in benchmarks/questions/, each with its document, its kind and every operation that answers it. `questions` has
two hundred for ten documents; a hash of each question puts it into the half that search was tuned with (`tuned`) or into the half that was
kept apart (`apart`), whose misses nobody looks at: only its figures are printed. All of `earlier` was used for tuning, nothing of `fresh`,
which is about documents that the others do not have. `unseen` is the hardest: no question of it is in the document's words; its kinds are a
task, a noun, a symptom and other words. It was unseen until the table of words was extended by who had read it, so its figure flatters now.
`selection`, of the same kinds and about six more documents, chose among ways to search, by its figure alone; `final`, about six others,
was written when the table of words was closed, and asked once.
A question counts as found within K when one of the operations that answer it is among the first K tools of one search; an answer
names 18. Printed by document and by kind, all parts side by side: the shares within `--within`; for all questions the shares within each K; by document
tokens of tools/list in mode full and in mode search, of one answer, and of the longest description of what came first; milliseconds of processor time for the
index (with the start of search mode) and for a question. With `--model`, the folder of a sentence model, search has its
help, and the seconds for the vectors of all tools are printed; they are kept for the next time.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import hashlib
import json
import os
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
PARTS: Final = ("tuned", "earlier", "apart", "fresh", "unseen", "selection", "final")
_READ: Final = frozenset({"tuned", "earlier", "unseen"})  # parts whose misses may be looked at


class Asked(NamedTuple):
    document: str
    kind: str
    question: str
    answers: frozenset[str]
    part: str


class Answer(NamedTuple):
    asked: Asked
    rank: int  # of the first operation that answers; 0 when none of the first MOST does
    first: tuple[str, ...]
    seconds: float
    tokens: int  # of an answer with as many tools as a search names unless it is asked for more
    described: int  # tokens of the description of the first tool; 0 when nothing was found


class Outcome(NamedTuple):
    answers: list[Answer]
    tools: int
    full: int
    search: int
    start: float
    vectors: float  # seconds; 0 without a model


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
                half(row["document"], row["question"]) if name == "questions" else name,
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


def prepared(folder: Path, model: Path) -> float:
    """Compute the vectors of all tools, or find them in the cache; how many seconds it took."""
    from mcpfactory_runtime.server.generated.search_index import IndexedTool  # noqa: PLC0415 - with a model only
    from mcpfactory_runtime.server.generated.search_vectors import ToolVectors, cache_folder  # noqa: PLC0415 - as above

    tools = json.loads((folder / "manifest.json").read_bytes())["tools"]
    started = time.perf_counter()
    ToolVectors(model, [IndexedTool.from_wire(tool, tool["operation"]) for tool in tools], cache_folder())
    return time.perf_counter() - started


async def ask(folder: Path, questions: Iterable[Asked], model: Path | None) -> Outcome:
    vectors = 0.0 if model is None else prepared(folder, model)
    server = Server("bench")
    server.mount_manifest(folder)
    operations = {
        tool["name"]: tool["operation"] for tool in json.loads((folder / "manifest.json").read_bytes())["tools"]
    }
    async with connect(server) as client:
        full = count_tokens(await client.list_tools())
        started = time.process_time()
        server.offer("search")
        await client.call_tool("search_tools", {"query": "first"})
        start = time.process_time() - started
        answers = [await one(client, asked, operations) for asked in questions]
        search = count_tokens(await client.list_tools())
    return Outcome(answers, len(operations), full, search, start, vectors)


async def one(client: Any, asked: Asked, operations: dict[str, str]) -> Answer:
    started = time.process_time()
    result = await client.call_tool("search_tools", {"query": asked.question, "limit": MOST})
    seconds = time.process_time() - started
    lines = [line for line in result["content"][0]["text"].splitlines() if line.startswith("- ")]
    found = [line[2:].partition("(")[0] for line in lines]
    if unknown := asked.answers - set(operations.values()):
        raise SystemExit(f"{asked.question}: the document has no {', '.join(sorted(unknown))}")
    rank = next((place for place, name in enumerate(found, 1) if operations[name] in asked.answers), 0)
    usual = await client.call_tool("search_tools", {"query": asked.question})
    described = await client.call_tool("describe_tools", {"names": found[:1]}) if found else None
    return Answer(
        asked,
        rank,
        tuple(found[:3]),
        seconds,
        count_tokens(usual["content"][0]["text"]),
        count_tokens(described["content"][0]["text"]) if described else 0,
    )


def share(answers: Sequence[Answer], within: int) -> str:
    if not answers:
        return "–"
    return f"{100 * sum(0 < answer.rank <= within for answer in answers) / len(answers):.0f} %"


def row(title: str, answers: Sequence[Answer], parts: Sequence[str], within: int) -> str:
    """One line: for each part how many were asked, and the share found."""
    cells = []
    for name in parts:
        mine = [answer for answer in answers if answer.asked.part == name]
        cells.append(f"{len(mine) or '–':>5}{share(mine, within):>7}")
    return f"{title:24}" + "  |".join(cells)


def show(outcomes: dict[str, Outcome], within: int) -> None:
    """Print all tables."""
    every = [answer for outcome in outcomes.values() for answer in outcome.answers]
    parts = [name for name in PARTS if any(answer.asked.part == name for answer in every)]
    print(f"{f'within {within}':24}" + "  |".join(f"{name:>12}" for name in parts))
    for document, outcome in outcomes.items():
        print(row(document, outcome.answers, parts, within))
    kinds: dict[str, list[Answer]] = defaultdict(list)
    for answer in every:
        kinds[answer.asked.kind].append(answer)
    print()
    for kind, answers in kinds.items():
        print(row(kind, answers, parts, within))
    print(f"\n{'all, within':24}" + "  |".join(f"{name:>12}" for name in parts))
    for each in WITHIN:
        print(row(str(each), every, parts, each))
    show_costs(outcomes)


def show_costs(outcomes: dict[str, Outcome]) -> None:
    """Print by document what search costs: tokens and time."""
    heads = ("tools", "full", "search", "answer", "longest", "start ms", "query ms", "vectors s")
    print(f"\n{'tokens and time':24}" + "".join(f"{head:>10}" for head in heads))
    for document, outcome in outcomes.items():
        count = len(outcome.answers)
        cells = (
            outcome.tools,
            outcome.full,
            outcome.search,
            round(sum(answer.tokens for answer in outcome.answers) / count),
            max(answer.described for answer in outcome.answers),
            round(1000 * outcome.start),
            round(1000 * sum(answer.seconds for answer in outcome.answers) / count, 1),
            round(outcome.vectors, 1) or "–",
        )
        print(f"{document:24}" + "".join(f"{cell:>10}" for cell in cells))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks search", description="Measure search mode.")
    sets = sorted(path.stem for path in QUESTIONS.glob("*.tsv"))
    parser.add_argument("--set", action="append", choices=sets, help="only questions of this set (repeatable)")
    parser.add_argument("--document", action="append", help="only questions about this document (repeatable)")
    parser.add_argument("--within", type=int, default=5, help="first tools that count")
    parser.add_argument("--misses", action="store_true", help="print what was missed of what search was tuned with")
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="of a sentence model that helps to find")
    options = parser.parse_args(arguments)
    if options.model:
        os.environ["MCPFACTORY_SEARCH_MODEL"] = str(options.model)
    asked: dict[str, list[Asked]] = defaultdict(list)
    for question in [question for name in options.set or sets for question in read(name)]:
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
            outcomes[document] = asyncio.run(ask(manifest(files[document], Path(folder)), questions, options.model))
    show(outcomes, options.within)
    for outcome in outcomes.values() if options.misses else ():
        for answer in outcome.answers:
            if answer.asked.part in _READ and not 0 < answer.rank <= options.within:
                print(f"  {answer.rank or '-':>3}  {answer.asked.question}  ({', '.join(answer.first)} came first)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
