"""`make exam`: the examinations from outside, run against this checkout.

  python -m benchmarks.exam                    all that can be run here
  python -m benchmarks.exam conformance fuzz   some of: conformance, client, typescript, python1, python2, inspector,
                                               fuzz, documents, packages, dialects, twins,
                                               scanners, templates, features, evaluation
  python -m benchmarks.exam documents --only github,stripe
  python -m benchmarks.exam fuzz --runs 1000000 --only framing,schema
  python -m benchmarks.exam templates --page   and write the table of docs/reference/templates.md
Each needs a registry (npm or a Python index) at first use, and keeps what it got in a cache folder: the conformance suite, the official
TypeScript and Python clients and the MCP Inspector's command-line mode, each unmodified; atheris, which searches for inputs that
break what reads them; real API documents (`python -m benchmarks.apis` lists them); and animals of the zoo on the official
TypeScript SDK, which `validate` must judge as it judges those of tests/zoo; and open scanners of MCP servers, with the same samples as
`validate`; and a server of every template, sent through the pipeline; and FastMCP and the Python SDK, in which the table of
features (docs/reference/features.md) is looked up; and servers of this repository, whose questions a scripted model on loopback answers.
The last lines are a table: what each examination found. What cannot be run is said, and the exit code is then 3; 1 when an
examination found a fault.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from benchmarks.exam.clients import inspector, python1, python2, typescript
from benchmarks.exam.dialects import dialects
from benchmarks.exam.documents import documents
from benchmarks.exam.evaluation import evaluation
from benchmarks.exam.features import features
from benchmarks.exam.fuzz import RUNS, fuzz
from benchmarks.exam.outcome import Outcome, exit_code, table
from benchmarks.exam.packages import packages
from benchmarks.exam.scanners import scanners
from benchmarks.exam.suite import client, conformance
from benchmarks.exam.templates import templates
from benchmarks.exam.twins import twins

PARTS: dict[str, Callable[[argparse.Namespace], Outcome]] = {
    "conformance": lambda _wish: conformance(),
    "client": lambda _wish: client(),
    "typescript": lambda _wish: typescript(),
    "python1": lambda _wish: python1(),
    "python2": lambda _wish: python2(),
    "inspector": lambda _wish: inspector(),
    "fuzz": lambda wish: fuzz(wish.runs, wish.only),
    "documents": lambda wish: documents(wish.only),
    "packages": lambda wish: packages(wish.only),
    "dialects": lambda wish: dialects(wish.only),
    "twins": lambda _wish: twins(),
    "scanners": lambda _wish: scanners(),
    "templates": lambda wish: templates(wish.only, page=wish.page),
    "evaluation": lambda wish: evaluation(wish.only),
    "features": lambda _wish: features(),
}


def main() -> None:
    """Runs the examinations, prints the table and ends with the worst of their verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}")
    parser.add_argument(
        "--only",
        default="",
        help="documents, templates, servers of evaluation or targets of fuzz, separated by commas",
    )
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of each target of fuzz ({RUNS})")
    parser.add_argument("--page", action="store_true", help="templates: write the table of docs/reference/templates.md")
    wish = parser.parse_args()
    if unknown := set(wish.parts) - set(PARTS):
        parser.error(f"unknown examination: {', '.join(unknown)}")
    outcomes = {}
    for part in wish.parts or PARTS:
        print(f"== {part}", flush=True)
        outcomes[part] = PARTS[part](wish)
    print(f"== in all\n{table(outcomes)}", flush=True)
    sys.exit(exit_code(outcomes))


if __name__ == "__main__":
    main()
