"""`python -m benchmarks.trials.gate [--origin FOLDER] [WORDS…]`: the attempts whose names have all the words.

The origin is made when the folder is not there, and kept: making it takes longer than an attempt.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.exam.outcome import exit_code, table
from benchmarks.trials.gate import ATTEMPTS, attack_all
from benchmarks.trials.gate.field import make_origin

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("words", nargs="*")
parser.add_argument("--origin", type=Path)
parser.add_argument("--cheap", action="store_true", help="only those for which no stage runs")
wish = parser.parse_args()
with tempfile.TemporaryDirectory(prefix="gate-") as name:
    folder = Path(name)
    origin = (wish.origin or folder / "origin").resolve()
    chosen = [one for one in ATTEMPTS if all(word in one.name for word in wish.words) and not (wish.cheap and one.slow)]
    outcome = attack_all(chosen, origin if origin.exists() else make_origin(origin), folder)
print(f"== in all\n{table({'gate': outcome})}", flush=True)
sys.exit(exit_code({"gate": outcome}))
