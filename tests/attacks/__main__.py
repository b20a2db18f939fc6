"""`python -m tests.attacks [WORDS…]`: every attack (whose name has the words), and what happened."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.attacks.attempts import ATTEMPTS
from tests.attacks.place import HarmError
from tests.attacks.range import attempt
from tests.attacks.table import ATTACKS

harmful = 0
for name, attack in ATTACKS.items():
    if all(word in name for word in sys.argv[1:]):
        with TemporaryDirectory(prefix="mcpfactory-attack-") as folder:
            outcome = attempt(attack, Path(folder))
        harmful += bool(outcome.harm)
        print(f"{name}\n  {outcome.seconds:5.1f} s  {outcome}", flush=True)
for name, one in ATTEMPTS.items():
    if all(word in name for word in sys.argv[1:]):
        with TemporaryDirectory(prefix="mcpfactory-attack-") as folder:
            try:
                said = one.carry_out(Path(folder))
            except HarmError as harm:
                said, harmful = f"HARM: {harm}", harmful + 1
        print(f"{name}\n  expected: {one.expected}; {said}", flush=True)
sys.exit(1 if harmful else 0)
