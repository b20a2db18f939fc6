"""Tool lists of API documents beside FastMCP: `python -m benchmarks lists [DOCUMENT…] [--rounds N]`.

Both servers deliver their default list over stdio. The command prints the tools and tokens of each list, and the median
seconds from the start of the process to the last page. This time does not include the generation of our server.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.apis import DocumentError, path, select
from benchmarks.bench.messages import Pipe
from benchmarks.bench.peers import PYTHON_PEERS
from benchmarks.bench.peers.installations import environment
from mcpfactory_codegen.servers.create import create_server
from mcpfactory_codegen.text import estimate_tokens

DOCUMENTS: Final = ("asana", "bitbucket", "box", "github", "slack")
FASTMCP: Final = Path(__file__).resolve().parent / "peers/servers/fastmcp_openapi.py"


def first_list(command: Sequence[str]) -> tuple[float, list[Any]]:
    """Return the seconds from the start of the process to the whole tool list, and the list."""
    begin = time.perf_counter()
    pipe = Pipe(command)
    try:
        pipe.handshake()
        tools: list[Any] = []
        cursor: dict[str, str] = {}
        while True:
            pipe.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": cursor})
            page = pipe.answer(1)["result"]
            tools += page["tools"]
            if not page.get("nextCursor"):
                return time.perf_counter() - begin, tools
            cursor = {"cursor": page["nextCursor"]}
    finally:
        pipe.close()


def main(arguments: Sequence[str]) -> int:
    """Measure and print. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks lists", description=__doc__)
    parser.add_argument("documents", nargs="*", metavar="DOCUMENT", default=DOCUMENTS)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    peers = environment("fastmcp", [one for one in PYTHON_PEERS if one.startswith("fastmcp")])
    try:
        files = {one.name: path(one) for one in select(options.documents)}
    except DocumentError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    print(
        f"{'':12}{'tools':>13}{'tokens':>19}{'ratio':>7}{'seconds':>14}{'ratio':>7}   (ours, FastMCP, ours / FastMCP)"
    )
    for name, file in files.items():
        with tempfile.TemporaryDirectory() as folder:
            made = create_server(Path(folder) / "servers", name="bench", source=file)
            ours = ["env", f"PYTHONPATH={made.path / 'src'}", sys.executable, "-m", "bench_mcp"]
            commands = (ours, [peers, "-W", "ignore", str(FASTMCP), str(file)])
            rounds = [[first_list(command) for command in commands] for _ in range(options.rounds + 1)][1:]
        seconds = [statistics.median(one[0] for one in runs) for runs in zip(*rounds, strict=True)]
        lists = [tools for _, tools in rounds[0]]
        tokens = [sum(map(estimate_tokens, tools)) for tools in lists]
        print(
            f"{name:12}{len(lists[0]):6,} {len(lists[1]):6,}{tokens[0]:9,} {tokens[1]:9,}{tokens[0] / tokens[1]:7.2f}"
            f"{seconds[0]:7.2f}{seconds[1]:7.2f}{seconds[0] / seconds[1]:7.2f}",
            flush=True,
        )
    return 0
