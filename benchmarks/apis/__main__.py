"""The API documents of the benchmarks: what there is, and where it is.

  python -m benchmarks.apis                 the list
  python -m benchmarks.apis --fetch         fetches what is not here yet, and prints the files
  python -m benchmarks.apis --fetch github stripe

Exit code 3: a document cannot be had.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.apis.documents import DocumentError, path, select


def main() -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.apis", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--fetch", action="store_true")
    options = parser.parse_args()
    try:
        for one in select(options.names):
            where = path(one) if options.fetch else f"{one.registry} {one.package} {one.version} {one.path}"
            print(f"{one.name:16} {one.openapi:6} {one.operations:6}  {where}", flush=True)
    except DocumentError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
