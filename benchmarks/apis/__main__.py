"""The API documents of the benchmarks: what there is, and where it is.

  python -m benchmarks.apis                 the list
  python -m benchmarks.apis --fetch         fetches what is not here yet, and prints the files
  python -m benchmarks.apis --fetch github stripe
  python -m benchmarks.apis --row NAME npm PACKAGE VERSION PATH      prints a row for documents.tsv (npm or pypi)
  python -m benchmarks.apis --row NAME npm PACKAGE VERSION PATH --in FOLDER      of a document in several files

Exit code 3: a document cannot be had.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.apis.documents import DocumentError, path, row, select
from benchmarks.apis.table import Document


def main() -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.apis", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--fetch", action="store_true")
    parser.add_argument("--row", nargs=5, metavar=("NAME", "REGISTRY", "PACKAGE", "VERSION", "PATH"))
    parser.add_argument("--in", dest="folder", default="", metavar="FOLDER", help="with --row: where its files are")
    wish = parser.parse_args()
    try:
        if wish.row:
            name, registry, package, version, place = wish.row
            print(row(Document(name, registry, package, version, place, "", "", 0, folder=wish.folder)).row)
            return 0
        for one in select(wish.names):
            where = path(one) if wish.fetch else f"{one.registry} {one.package} {one.version} {one.path}"
            print(f"{one.name:16} {one.openapi:6} {one.operations:6}  {where}", flush=True)
    except DocumentError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
