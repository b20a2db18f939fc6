"""How often search mode finds the right tool: `python -m benchmarks search [DOCUMENT…] [--misses]`.

Each row of questions.tsv has a question, its API document and every operation that answers the question. The parts:

- tuned: used to tune the words and weights of the search. `--misses` prints only misses of this part.
- apart: questions of the same kinds about the same APIs. Their misses are never printed, so they cannot affect the tuning.
- fresh: questions about documents that no other part has.
- everyday: questions without the document's words. Their synonyms were later added to the search.
- chosen: questions without the document's words. Their results decided which search algorithm to use.
- final: questions without the document's words, about other documents, written after all changes of the search.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.apis import DocumentError, path, select
from mcpfactory_codegen.servers.create import create_server
from mcpfactory_runtime import Server
from mcpfactory_runtime.testing import connect

QUESTIONS: Final = Path(__file__).with_name("questions.tsv")
PARTS: Final = ("tuned", "apart", "fresh", "everyday", "chosen", "final")
WITHIN: Final = (1, 3, 5, 10)
FIRST: Final = 5  # a tool after this rank counts as missed


async def ask(generated: Path, questions: Sequence[dict[str, str]]) -> list[int]:
    """Return the rank of the first tool that answers each question, or 0 if none of the first ten tools answers it."""
    tools = json.loads((generated / "manifest.json").read_bytes())["tools"]
    operations = {tool["name"]: tool["operation"] for tool in tools}
    server = Server("bench")
    server.mount_manifest(generated)
    server.offer("search")
    ranks = []
    async with connect(server) as client:
        for question in questions:
            result = await client.call_tool("search_tools", {"query": question["question"], "limit": WITHIN[-1]})
            lines = [line for line in result["content"][0]["text"].splitlines() if line.startswith("- ")]
            found = [operations[line[2:].partition("(")[0]] for line in lines]
            answers = question["answers"].split(" | ")
            ranks.append(next((rank for rank, one in enumerate(found, 1) if one in answers), 0))
    return ranks


def main(arguments: Sequence[str]) -> int:
    """Measure and print. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks search", description=__doc__)
    parser.add_argument("documents", nargs="*", metavar="DOCUMENT")
    parser.add_argument("--misses", action="store_true", help="print the missed questions of the part `tuned`")
    options = parser.parse_args(arguments)
    asked: dict[str, list[dict[str, str]]] = defaultdict(list)
    with QUESTIONS.open(encoding="utf-8") as file:
        for question in csv.DictReader(file, delimiter="\t"):
            asked[question["document"]].append(question)
    ranks: dict[str, list[int]] = {part: [] for part in PARTS}
    try:
        for document in select(options.documents or asked):
            with tempfile.TemporaryDirectory() as folder:
                made = create_server(Path(folder) / "servers", name="bench", source=path(document))
                questions = asked[document.name]
                found = asyncio.run(ask(made.path / "src/bench_mcp/_generated", questions))
            for question, rank in zip(questions, found, strict=True):
                ranks[question["part"]].append(rank)
                if options.misses and question["part"] == "tuned" and not 0 < rank <= FIRST:
                    print(f"{document.name}: {question['question']} ({rank or 'not found'})")
    except DocumentError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    print(f"{'part':10}{'questions':>10}" + "".join(f"{f'within {within}':>11}" for within in WITHIN))
    for part, each in ((part, each) for part, each in ranks.items() if each):
        shares = [sum(0 < rank <= within for rank in each) / len(each) for within in WITHIN]
        print(f"{part:10}{len(each):10}" + "".join(f"{share:11.0%}" for share in shares))
    return 0
