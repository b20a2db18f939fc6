"""`python -m benchmarks codebase`: what the source tree is like, in figures, and what it was like at a commit.

python -m benchmarks codebase   modules, lines, circles, repeated names, files of recipes and ways
python -m benchmarks codebase --against mcpfactory-v0.1.0   the same beside those of a commit
python -m benchmarks codebase --names   and which names, modules and circles they are
python -m benchmarks codebase --json   everything, for a program
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from benchmarks.codebase import table
from benchmarks.codebase.measure import ROOT, commit_tree, measure


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks codebase", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", metavar="COMMIT", help="measure this commit as well")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--names", action="store_true", help="list the names behind the figures")
    form.add_argument("--json", action="store_true", help="print everything as JSON")
    options = parser.parse_args(arguments)
    trees = []
    if options.against:
        with commit_tree(options.against) as root:
            trees.append(measure(root, options.against))
    trees.append(measure(ROOT, "here"))
    if options.json:
        print(json.dumps(table.as_json(trees), indent=1))
    else:
        print(table.as_text(trees))
    if options.names:
        print(table.as_names(trees[-1]))


if __name__ == "__main__":
    main(sys.argv[1:])
