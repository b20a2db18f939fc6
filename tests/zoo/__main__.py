"""`python -m tests.zoo` prints which rule caught which animal; `python -m tests.zoo NAME HANDSHAKES MODERNS` is one animal on stdio.

Revisions are separated by commas. The table ends with exit code 1 when a sick animal was not caught by the rule that it
names, or by another one that it does not name, or a healthy one got a finding.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout


def table() -> int:
    from tests.zoo.visit import ANIMALS, visit

    wrong, caught = 0, set()
    for name, kind in ANIMALS.items():
        with redirect_stdout(sys.stderr):  # what building a package prints
            report = visit(name).judged()
        found = sorted({finding.rule for finding in report.findings})
        good = found == sorted({kind.rule, *kind.companions} - {""})
        wrong += not good
        caught |= set(found)
        told = "" if good else f"  WRONG: {kind.rule or 'none'} expected"
        print(f"{name:20} {', '.join(found) or 'none'}{told}", flush=True)
    sick = sum(bool(kind.rule) for kind in ANIMALS.values())
    print(
        f"{sick} sick animals, {len(ANIMALS) - sick} healthy ones, {len(caught)} rules that caught one, {wrong} wrong"
    )
    return wrong > 0


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(table())
    from tests.zoo.animals import animals

    name, handshakes, moderns = sys.argv[1:4]
    animals()[name](handshakes.split(","), moderns.split(",")).run()
