"""An executor that runs jobs in this process: for tests of what follows from an outcome, not of how a process came to it."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mcpfactory_pipeline.build import distributions
from mcpfactory_pipeline.plan.stage import StageOutputs
from mcpfactory_pipeline.run.job import run_job
from mcpfactory_pipeline.run.run import EXECUTORS

_build = functools.cache(distributions.build_files)


def _built_once() -> contextlib.AbstractContextManager[object]:
    """Build wheels of our own sources once in this process, and not for each workspace."""
    return patch.object(distributions, "build_files", _build)


class InProcessExecutor:
    """One job at a time, as plain data in and out, with what it prints in its log; no process is started and no limit kept."""

    slots = 1

    def run(self, job: Mapping[str, Any], *, log: Path) -> StageOutputs:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as stream, contextlib.redirect_stdout(stream), _built_once():
            return StageOutputs.from_json(run_job(json.loads(json.dumps(job))))

    def cancel(self) -> None:
        """Nothing runs beside the caller."""

    def close(self) -> None:
        """Nothing is held."""


@contextlib.contextmanager
def run_jobs_in_process() -> Iterator[None]:
    """Let runs of this process run their jobs in it: a process for each job would import the factory again."""
    with _built_once(), patch.dict(EXECUTORS, local=lambda _address, _jobs: InProcessExecutor()):
        yield
