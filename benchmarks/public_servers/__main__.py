"""`python -m benchmarks.public_servers`: public MCP servers, unmodified, examined by `mcpfactory validate --command`.

  python -m benchmarks.public_servers                 all of the table (benchmarks/public_servers/table.py)
  python -m benchmarks.public_servers time memory     some of them
  python -m benchmarks.public_servers --continue      what was examined before with this code is not examined again
  python -m benchmarks.public_servers --load 4        each once more beside four busy processes, and what differs
  python -m benchmarks.public_servers --json FILE     everything found, for a program
  python -m benchmarks.public_servers --reports DIR   and the whole reports, one JSON file each
  python -m benchmarks.public_servers --page          and write docs/explanation/public-servers.md

They are installed from npm and the Python index at first use, into the cache folder of the benchmarks; none of their
installation scripts is run, keys are dummies, and their home is a folder of their own.

Exit code 1: an examination crashed or took too long; a finding of severity 3 and more of which
benchmarks/public_servers/verdicts.py says nothing, or a verdict there about a finding that is no more; under load another verdict
than without. 3: a server cannot be installed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

from benchmarks.public_servers import pages
from benchmarks.public_servers.examination import Examined, examine, keep, kept, loaded
from benchmarks.public_servers.installed import playground, start
from benchmarks.public_servers.table import SERVERS, Server
from benchmarks.public_servers.verdicts import VERDICTS, stale, undefended

PAGE = Path(__file__).resolve().parents[2] / "docs/explanation/public-servers.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Examine the servers, and print what was found; the exit code."""
    wish = _wishes(arguments)
    servers = [one for one in SERVERS if not wish.servers or one.name in wish.servers]
    try:
        quiet = _all(servers, wish, 0)
        busy = _all(servers, wish, wish.load) if wish.load else {}
    except subprocess.CalledProcessError as error:
        print(f"error: {' '.join(map(str, error.cmd[:6]))} … ended with {error.returncode}", file=sys.stderr)
        print("hint: the package registries must be reachable", file=sys.stderr)
        return 3
    wrong = [f"{name}: {one.crash}" for found in (quiet, busy) for name, one in found.items() if one.crash]
    wrong += [f"{name}: {rule} has no verdict" for name, rule in undefended(quiet)]
    if len(servers) == len(SERVERS):
        wrong += [f"{name}: no finding of {rule} any more: its verdict is stale" for name, rule in stale(quiet)]
    if busy:
        print("\n".join(["", *pages.compared(quiet, busy)]))
        wrong += [f"{name}: {what}" for name, what in pages.differences(quiet, busy)]
    if wish.json:
        record = {"quiet": _record(quiet), "loaded": _record(busy)}
        wish.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if wish.page:
        PAGE.write_text(pages.page(servers, quiet, VERDICTS), encoding="utf-8")
    print("\n".join(["", pages.total(servers, quiet), *wrong]))
    return int(bool(wrong))


def _wishes(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.public_servers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [one.name for one in SERVERS]
    parser.add_argument("servers", nargs="*", help=f"of {', '.join(names)}")
    parser.add_argument("--limit", type=float, default=180, metavar="SECONDS", help="for one server")
    parser.add_argument("--load", type=int, default=0, metavar="N", help="examine again beside N busy processes")
    parser.add_argument("--continue", dest="resume", action="store_true", help="keep results of this code")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything found")
    parser.add_argument("--reports", type=Path, metavar="DIR", help="a folder for the whole reports")
    parser.add_argument("--page", action="store_true", help="write the page of the documentation; only for all servers")
    wish = parser.parse_args(arguments)
    if unknown := sorted(set(wish.servers) - set(names)):
        parser.error(f"unknown server: {', '.join(unknown)}")
    if wish.page and wish.servers:
        parser.error("--page is for all servers: name none")
    return wish


def _all(servers: Sequence[Server], wish: argparse.Namespace, load: int) -> dict[str, Examined]:
    """What came of each server, printed as it comes."""
    found = {}
    print(f"beside {load} busy processes" if load else pages.HEAD, flush=True)
    for server in servers:
        examined = kept(server, load) if wish.resume else None
        if not examined:
            ready = start(server, playground())  # installed before anything is busy
            with loaded(load) if load else nullcontext():
                examined = examine(ready, wish.limit * (1 + load / 2))
            keep(server, load, examined)
        found[server.name] = examined
        print(pages.line(server, examined), flush=True)
        if wish.reports:
            wish.reports.mkdir(parents=True, exist_ok=True)
            text = json.dumps(examined.report, indent=2, ensure_ascii=False) + "\n"
            (wish.reports / f"{server.name}{'-loaded' if load else ''}.json").write_text(text, encoding="utf-8")
    return found


def _record(found: dict[str, Examined]) -> dict[str, object]:
    return {name: asdict(one) for name, one in found.items()}


if __name__ == "__main__":
    sys.exit(main())
