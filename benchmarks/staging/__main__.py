"""`python -m benchmarks staging`: which API documents become servers in channel staging without a person touching anything.

Each document goes through `mcpfactory new` and `mcpfactory pipeline run`, as real processes in a workspace of its own.

  python -m benchmarks staging                        the tuning set of the list (benchmarks/apis/documents.tsv)
  python -m benchmarks staging --set apart            the documents that nobody looks at while mending; --set all
  python -m benchmarks staging --only github,stripe   some of the list
  python -m benchmarks staging --files a.yaml b.json  documents from elsewhere; --folder DIR for all in a folder
  python -m benchmarks staging --continue             what was sent before with this code is not sent again
  python -m benchmarks staging --findings             and what validate found in the servers that arrive
  python -m benchmarks staging --json FILE            everything found, for a program

Exit code 1: a document that has operations does not arrive. 3: a document cannot be had.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path

from benchmarks.apis import DocumentError
from benchmarks.staging import table
from benchmarks.staging.arrival import Arrival, Source
from benchmarks.staging.results import code_digest, keep, kept
from benchmarks.staging.road import empty_workspace, end_all, travel
from benchmarks.staging.sources import from_files, from_folder, from_list


def main(arguments: Sequence[str] | None = None) -> int:
    """Send the documents, and print what became of them; the exit code."""
    wish = _parser().parse_args(arguments)
    try:
        sources = _sources(wish)
    except (DocumentError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    if not sources:
        print("error: there is no document to send\nhint: --only, --files or --folder name others", file=sys.stderr)
        return 3
    print(table.HEAD)
    arrivals = {source.name: old for source in sources if wish.resume and (old := kept(source))}
    for old in arrivals.values():
        print(table.line(old), flush=True)
    if wish.keep:
        wish.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mcpfactory-staging-") as folder:
        _send([one for one in sources if one.name not in arrivals], wish, Path(folder), arrivals)
    told = [arrivals[source.name] for source in sources]
    print("\n".join(["", *table.explained(told), "", table.total(told)]))
    if wish.findings:
        print("\n".join(["", *table.findings(told)]))
    if wish.json:
        record = {"code": code_digest(), "documents": [one.as_json() for one in told]}
        wish.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return int(not all(one.expected for one in told))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks staging", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="NAMES", help="documents of the list, separated by commas")
    parser.add_argument("--set", default="tuning", choices=("tuning", "apart", "all"), help="a part of the list")
    parser.add_argument("--files", nargs="+", type=Path, default=[], metavar="FILE", help="documents from elsewhere")
    parser.add_argument("--folder", type=Path, help="the documents of a folder, and below")
    parser.add_argument("--largest", type=int, default=0, metavar="N", help="only documents of at most N operations")
    parser.add_argument("--jobs", type=int, default=2, help="documents at a time")
    parser.add_argument("--limit", type=float, default=1800, metavar="SECONDS", help="for one document")
    parser.add_argument("--continue", dest="resume", action="store_true", help="keep results of this code")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="leave the workspaces of those that do not arrive here"
    )
    parser.add_argument(
        "--findings", action="store_true", help="tell findings of severity 2 and more, of all documents"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything found")
    return parser


def _sources(wish: argparse.Namespace) -> list[Source]:
    if wish.files or wish.folder:
        found = [*from_files(wish.files), *(from_folder(wish.folder) if wish.folder else ())]
    else:
        found = list(from_list(wish.only, wish.set))
    return [one for one in found if not wish.largest or one.operations <= wish.largest]


def _send(sources: Sequence[Source], wish: argparse.Namespace, folder: Path, arrivals: dict[str, Arrival]) -> None:
    """Send the documents, the largest first, and put into `arrivals` what became of each."""
    template = empty_workspace(folder)
    pool = ThreadPoolExecutor(max(1, wish.jobs))
    try:
        sent: dict[Future[Arrival], Source] = {
            pool.submit(travel, source, template, folder / f"of-{source.name}", wish.limit): source
            for source in sorted(sources, key=lambda one: -one.operations)
        }
        for done in as_completed(sent):
            source, arrival = sent[done], done.result()
            arrivals[source.name] = arrival
            keep(source, arrival)
            print(table.line(arrival), flush=True)
            workspace = folder / f"of-{source.name}"
            if wish.keep and not arrival.arrived:
                shutil.rmtree(wish.keep / source.name, ignore_errors=True)
                shutil.move(workspace, wish.keep / source.name)
            shutil.rmtree(workspace, ignore_errors=True)
    finally:  # nothing is left of a run that is broken off
        pool.shutdown(wait=False, cancel_futures=True)
        end_all()


if __name__ == "__main__":
    sys.exit(main())
