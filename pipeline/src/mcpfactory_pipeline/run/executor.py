"""Executors of jobs: they take a job as plain data and return the stage's result. They never write state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.plan.stage import StageOutputs
from mcpfactory_pipeline.run.local import LocalExecutor
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace

__all__ = ["EXECUTORS", "Executor", "LocalExecutor", "make_executor"]


class Executor(Protocol):
    """Runs jobs; called from several threads at once. `slots` is how many it can run at a time."""

    slots: int

    def run(self, job: Mapping[str, Any], *, log: Path) -> StageOutputs:
        """Run a job to its end, within its limits, and write its output to `log`."""

    def cancel(self) -> None:
        """End all jobs, and let no new one start; their outcome is `interrupted`."""

    def close(self) -> None:
        """Release what the executor holds; the run is over."""


def make_executor(workspace: Workspace, wanted: str | None = None, jobs: int | None = None) -> Executor:
    """Return the executor that is wanted, else that of `[pipeline] executor`, else `local`.

    `wanted` is a name of `EXECUTORS`, or the address of a dask scheduler (`tcp://host:8786`); `jobs` bounds how much runs at
    a time.

    Raises:
        ConfigError: for anything else, and for an extra that is not installed.
    """
    name: Any = wanted or workspace.settings.get("executor", "local")
    if isinstance(name, str) and name in EXECUTORS:
        return EXECUTORS[name]("", jobs)
    if isinstance(name, str) and "://" in name:
        return EXECUTORS["dask"](name, jobs)
    where = "--executor" if wanted else f"{workspace.root / CONFIG}: pipeline.executor"
    raise ConfigError(
        f"{where} is {name!r}", hint=f"one of {', '.join(EXECUTORS)}, or tcp://host:port of a dask scheduler"
    )


def _local(_address: str, jobs: int | None) -> Executor:
    return LocalExecutor(jobs)


def _dask(address: str, jobs: int | None) -> Executor:
    try:
        from mcpfactory_pipeline.run.dask import DaskExecutor  # noqa: PLC0415 - an optional extra, and a second to load
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the executor dask needs {error.name}, which is not installed",
            hint="pip install 'mcpfactory[dask]'",
        ) from error
    return DaskExecutor(address, jobs)


EXECUTORS: Final[dict[str, Callable[[str, int | None], Executor]]] = {"local": _local, "dask": _dask}
