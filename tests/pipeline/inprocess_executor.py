"""Executor that runs jobs in this process, for tests of outcomes and not of processes."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mcpfactory_pipeline.build import factory_distributions
from mcpfactory_pipeline.plan.stage import StageOutputs
from mcpfactory_pipeline.run.job import run_job
from mcpfactory_pipeline.run.run import EXECUTORS

_build = functools.cache(factory_distributions.build_wheel_contents)


def _built_once() -> contextlib.AbstractContextManager[object]:
    """Build wheels of mcpfactory once in this process, not for each workspace."""
    return patch.object(factory_distributions, "build_wheel_contents", _build)


class InProcessExecutor:
    """Executor for one job at a time, with its output as log, without processes and limits."""

    slots = 1

    def run(self, job: Mapping[str, Any], *, log: Path) -> StageOutputs:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as stream, contextlib.redirect_stdout(stream), _built_once():
            return StageOutputs.from_json(run_job(json.loads(json.dumps(job))))

    def cancel(self) -> None:
        """Do nothing, because no jobs run in parallel."""

    def close(self) -> None:
        """Do nothing, because no resources are open."""


@contextlib.contextmanager
def run_jobs_in_process() -> Iterator[None]:
    """Run the jobs of this process's runs in it, because each new process would import the factory again."""
    with _built_once(), patch.dict(EXECUTORS, local=lambda _address, _jobs: InProcessExecutor()):
        yield
