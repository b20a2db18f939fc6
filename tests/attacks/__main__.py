"""`python -m tests.attacks [WORDS…]`: every attempt (whose line has the words) as surface, attempt, expectation, result."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.attacks.attempts import ATTEMPTS, Attempt
from tests.attacks.place import HarmError
from tests.attacks.range import attempt
from tests.attacks.table import ATTACKS, Attack


def _document(attack: Attack) -> Attempt:
    def carry_out(folder: Path) -> str:
        outcome = attempt(attack, folder)
        if outcome.harm:
            raise HarmError("; ".join(outcome.harm))
        return str(outcome)

    return Attempt("documents", "refused" if attack.refused else "harmless", carry_out)


rows = {**{f"documents: {name}": _document(one) for name, one in ATTACKS.items()}, **ATTEMPTS}
tried, harmful, began = Counter[str](), 0, time.perf_counter()
print("surface\tattempt\texpectation\tresult")
for name, one in rows.items():
    if not all(word in name for word in sys.argv[1:]):
        continue
    with TemporaryDirectory(prefix="mcpfactory-attack-") as folder:
        try:
            said = one.carry_out(Path(folder))
        except HarmError as harm:
            said, harmful = f"HARM: {harm}", harmful + 1
    tried[one.surface] += 1
    print(one.surface, name.removeprefix(f"{one.surface}: "), one.expected, ascii(said)[1:-1], sep="\t", flush=True)
print()
for surface, count in tried.items():
    print(f"{count:5}  {surface}")
print(f"{tried.total():5}  attempts, {harmful} did harm, {time.perf_counter() - began:.0f} s")
sys.exit(1 if harmful else 0)
