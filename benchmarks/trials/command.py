"""`mcpfactory …` as a process of a trial: `python -m benchmarks.trials.command WORDS…`, with the mutant that the environment names."""

from __future__ import annotations

from benchmarks.trials.mutants import apply_mutant
from mcpfactory.main import main as mcpfactory

if __name__ == "__main__":
    apply_mutant()
    mcpfactory()
