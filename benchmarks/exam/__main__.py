"""`make exam`: the examinations from outside, run against this checkout.

  python -m benchmarks.exam                    all that can be run here
  python -m benchmarks.exam conformance        some of: conformance, client, typescript, python1, python2, documents,
                                               templates, features
  python -m benchmarks.exam documents --only github,stripe
  python -m benchmarks.exam templates --only minimal

The conformance suite, the official TypeScript and Python clients, the API documents (`python -m benchmarks.apis` lists
them) and the peers of docs/reference/features.md come from registries (npm, a Python index) at first use, and are cached.
The last lines are a table: what each examination found. Exit code 1: an examination found a fault; 3: one could not be run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from benchmarks.exam.clients import python1, python2, typescript
from benchmarks.exam.documents import documents
from benchmarks.exam.features import features
from benchmarks.exam.results import Outcome, exit_code, table
from benchmarks.exam.suite import client, conformance
from benchmarks.exam.templates import templates

PARTS: dict[str, Callable[[argparse.Namespace], Outcome]] = {
    "conformance": lambda _options: conformance(),
    "client": lambda _options: client(),
    "typescript": lambda _options: typescript(),
    "python1": lambda _options: python1(),
    "python2": lambda _options: python2(),
    "documents": lambda options: documents(options.only),
    "templates": lambda options: templates(options.only),
    "features": lambda _options: features(),
}


def main() -> None:
    """Runs the examinations, prints the table and ends with the worst of their verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--only", default="", help="documents or templates, separated by commas")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown examination: {', '.join(unknown)}")
    outcomes = {}
    for part in options.parts or PARTS:
        print(f"== {part}", flush=True)
        outcomes[part] = PARTS[part](options)
    print(f"== in all\n{table(outcomes)}", flush=True)
    sys.exit(exit_code(outcomes))


if __name__ == "__main__":
    main()
