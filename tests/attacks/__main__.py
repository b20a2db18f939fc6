"""`python -m tests.attacks [WORDS…]`: print a table of the attempts whose names contain the words."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.attacks.attack_list import ATTEMPTS, Attempt
from tests.attacks.document_runner import attempt
from tests.attacks.hostile_documents import ATTACKS, Attack
from tests.attacks.http_target import HarmError


def _document(attack: Attack) -> Attempt:
    def carry_out(folder: Path) -> str:
        outcome = attempt(attack, folder)
        if outcome.harm:
            raise HarmError("; ".join(outcome.harm))
        return str(outcome)

    return Attempt("documents", "refused" if attack.refused else "harmless", carry_out)


def _try(one: Attempt) -> tuple[str, bool]:
    """Carry out an attempt; return its result, and True if it did harm."""
    with TemporaryDirectory(prefix="mcpfactory-attack-") as folder:
        try:
            return one.carry_out(Path(folder)), False
        except HarmError as harm:
            return f"HARM: {harm}", True


def _attempts(words: list[str]) -> int:
    rows = {**{f"documents: {name}": _document(one) for name, one in ATTACKS.items()}, **ATTEMPTS}
    tried, harmful, began = Counter[str](), 0, time.perf_counter()
    print("surface\tattempt\texpectation\tresult")
    for name, one in rows.items():
        if not all(word in name for word in words):
            continue
        said, harm = _try(one)
        harmful += harm
        tried[one.surface] += 1
        print(one.surface, name.removeprefix(f"{one.surface}: "), one.expected, ascii(said)[1:-1], sep="\t", flush=True)
    print()
    for surface, count in tried.items():
        print(f"{count:5}  {surface}")
    print(f"{tried.total():5}  attempts, {harmful} did harm, {time.perf_counter() - began:.0f} s")
    return harmful


sys.exit(1 if _attempts(sys.argv[1:]) else 0)
