"""Do the tests that a generated server brings along notice what is wrong with it?

  python -m benchmarks.mutations github stripe train-travel
  python -m benchmarks.mutations stripe --number 60 --seed 3

For each name: the server is made of the document that `benchmarks/apis` lists by it, and its tests are run; then it is broken in
`--number` ways, one after the other, and the tests of the affected tool are run. The kinds of mutation take turns; where in
the server one is done is drawn by `--seed`, so that the same seed breaks the same places. Exit code 1: tests failed without
a mutation, or a mutation was not noticed; 3: a document cannot be had.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.apis import DocumentError, path, select
from benchmarks.mutations.kinds import KINDS, Kind
from benchmarks.mutations.source import Mutant, Server
from mcpfactory_codegen.cases.cases import count
from mcpfactory_codegen.servers.create import create_server

_TRIES = 200  # tools that are looked at for a place where a kind can be done
_FAILED = re.compile(r"^FAILED \S+?::(.+?)(?: - .*)?$", re.MULTILINE)


def main() -> None:
    """Breaks every server that was asked for, and says what was noticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", help="of documents: python -m benchmarks.apis lists them")
    parser.add_argument("--number", type=int, default=20, help="mutations of each server (20)")
    parser.add_argument("--seed", type=int, default=0, help="draws the places (0)")
    wish = parser.parse_args()
    try:
        sources = {one.name: path(one) for one in select(wish.names)}
    except DocumentError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(3)
    good = True
    for name, source in sources.items():
        with tempfile.TemporaryDirectory() as folder:
            good &= examine(name, source, Path(folder), wish.number, wish.seed)
    sys.exit(0 if good else 1)


def examine(name: str, source: Path, folder: Path, number: int, seed: int) -> bool:
    """Make one server, test it, break it; whether everything was noticed, and nothing that was right called wrong."""
    began = time.perf_counter()
    made = create_server(folder, name="api", source=source)
    server = Server(made.path, "api_mcp")
    tests = count(server.data["cases"]) + 1
    print(
        f"{name}: {tests} tests of {len(server.data['cases'])} tools made in {time.perf_counter() - began:.1f} s"
        f" ({len(server.data['untested'])} tools cannot be tested)",
        flush=True,
    )
    began = time.perf_counter()
    code, output = _pytest(made.path, "")
    print(f"{name}: {output.splitlines()[-1]}; {time.perf_counter() - began:.1f} s with its start", flush=True)
    if code:
        print(output[-3000:], flush=True)
        return False
    caught = done = 0
    for kind, mutant in _choose(server, number, random.Random(seed)):
        noticed = _try(server, mutant)
        done += 1
        caught += bool(noticed)
        title = kind.__name__.replace("_", " ")
        print(f"  {title:22} {mutant.tool or 'the API'}: {mutant.what}\n{'':25}{noticed or 'NOT NOTICED'}", flush=True)
    print(f"{name}: {caught} of {done} mutations noticed", flush=True)
    return caught == done


def _choose(server: Server, number: int, draw: random.Random) -> Iterator[tuple[Kind, Mutant]]:
    """Mutants, the kinds in turn; a kind that this server gives no place for is left out."""
    seen: set[tuple[str, str]] = set()
    kinds = list(KINDS)
    while kinds and len(seen) < number:
        for kind in list(kinds):
            mutant = _place(server, kind, draw, seen)
            if mutant is None:
                kinds.remove(kind)
            elif len(seen) < number:
                seen.add((mutant.tool, mutant.what))
                yield kind, mutant


def _place(server: Server, kind: Kind, draw: random.Random, seen: set[tuple[str, str]]) -> Mutant | None:
    tools = draw.sample(server.tools, min(len(server.tools), _TRIES))
    for tool in [*tools, *server.tools]:
        places = [one for one in kind(server, tool) if (one.tool, one.what) not in seen]
        if places:
            return draw.choice(places)
    return None


def _try(server: Server, mutant: Mutant) -> str:
    """Apply the mutant, run the tests of its tool, undo it: the first test that failed, or ""."""
    before = {path: path.read_bytes() for path in mutant.files}
    try:
        for path, text in mutant.files.items():
            path.write_text(text, "utf-8")
        _, output = _pytest(server.folder, f"[{mutant.tool}-" if mutant.tool else "address")
    finally:
        for path, data in before.items():
            path.write_bytes(data)
    failed = _FAILED.search(output)
    return failed[1] if failed else "" if " passed" in output else output.splitlines()[-1]


def _pytest(folder: Path, select: str) -> tuple[int, str]:
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/_generated"]
    command += ["-k", select] if select else []
    environ = {**os.environ, "PYTHONPATH": str(folder / "src"), "COLUMNS": "300"}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=600)
    return done.returncode, done.stdout


if __name__ == "__main__":
    main()
