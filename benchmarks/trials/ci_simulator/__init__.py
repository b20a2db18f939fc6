"""The jobs of a CI provider, executed by hand: each `run:` and `script:` as it is written, in an empty home, from a fresh clone.

`uses:` and the provider's own keys are replaced by what they do. Nothing of this machine is in a job but its programs, and
how packages are got here.
"""

from __future__ import annotations

from benchmarks.trials.ci_simulator.github import run_workflow
from benchmarks.trials.ci_simulator.gitlab import run_pipeline
from benchmarks.trials.ci_simulator.runner import JobResult, Runner

__all__ = ["JobResult", "Runner", "run_pipeline", "run_workflow"]
