"""Jobs on a dask cluster. The cluster exists already, or starts and ends with the run.

Workers must have this package, and must see the workspace under the same path. A worker runs each job in a separate
process, like the executor `local`. If a worker dies, its job is `interrupted`, and the run retries the job. The
scheduler must not retry jobs, because a stage needs an empty work folder.
"""

from __future__ import annotations

import shutil
import threading
import time
import uuid
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import dask.config
import distributed
from distributed.scheduler import KilledWorker

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.plan.stage import RUN_ENDED, StageOutputs
from mcpfactory_pipeline.run.executor import LocalExecutor, available_slots

_dask: Any = distributed  # dask has no type annotations
_POLL: Final = 0.5  # seconds between two checks of a job
_PATIENCE: Final = 60.0  # seconds; a job fails if the cluster has no worker for this time
_CONNECT: Final = 10.0  # seconds; timeout of the connection to a scheduler


class DaskExecutor:
    """Executor on the dask cluster of the scheduler at `address`.

    If `address` is "", a new cluster of `jobs` local processes is started.
    """

    def __init__(self, address: str, jobs: int | None = None) -> None:
        self._guard = threading.Lock()
        self._cancelled = threading.Event()
        self._cluster: Any = None  # dask has no type annotations
        self._client: Any = None
        self._workers = jobs or available_slots()
        if address:
            self._client = _connect(address)
        self.slots = jobs or (sum(self._threads()) if address else self._workers)

    def run(self, job: Mapping[str, Any], *, log: Path) -> StageOutputs:
        """Run a job on a worker, and wait for it."""
        client = self._connected_client()
        if client is None:
            return StageOutputs("interrupted", f"{RUN_ENDED} before this stage began")
        key = f"{job['inputs']['server']}-{job['stage']}-{uuid.uuid4().hex}"
        future = client.submit(run_job_on_worker, dict(job), str(log), key=key, pure=False)
        alone = time.monotonic()
        try:
            while True:
                try:
                    return StageOutputs.from_json(future.result(timeout=_POLL))
                except TimeoutError:
                    if self._cancelled.is_set():
                        return StageOutputs("interrupted", RUN_ENDED)
                if self._threads():
                    alone = time.monotonic()
                elif time.monotonic() - alone > _PATIENCE:
                    return StageOutputs("errored", f"the dask cluster had no worker for {_PATIENCE:g} seconds")
        except KilledWorker:
            return StageOutputs("interrupted", "the dask worker that ran the stage died")
        except Exception as error:  # noqa: BLE001 - any failure on the way to the worker is an error of the pipeline
            if self._cancelled.is_set():
                return StageOutputs("interrupted", RUN_ENDED)
            return StageOutputs("errored", f"dask: {type(error).__name__}: {error}")
        finally:
            future.release()

    def cancel(self) -> None:
        """End all jobs. A worker ends a job when the job's work folder is deleted."""
        self._cancelled.set()

    def close(self) -> None:
        """Disconnect from the cluster; end a cluster that was started for the run."""
        self._cancelled.set()
        with self._guard:
            client, cluster, self._client, self._cluster = self._client, self._cluster, None, None
        if client is not None:
            client.close(timeout=5)
        if cluster is not None:
            cluster.close(timeout=10)

    def _connected_client(self) -> Any:
        """Return a client, and start the cluster if necessary; return None if the run has ended."""
        with self._guard:
            if self._cancelled.is_set():
                return None
            if self._client is None:
                with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
                    self._cluster = _dask.LocalCluster(
                        n_workers=self._workers,
                        threads_per_worker=1,
                        processes=True,
                        host="127.0.0.1",
                        dashboard_address="127.0.0.1:0",
                        memory_limit=None,
                        silence_logs=60,
                        security=True
                        if find_spec("cryptography")
                        else None,  # without TLS, any user of this machine could submit jobs
                    )
                self._client = _dask.Client(self._cluster)
            return self._client

    def _threads(self) -> list[int]:
        assert self._client is not None
        return [int(worker["nthreads"]) for worker in self._client.scheduler_info(n_workers=-1)["workers"].values()]


def run_job_on_worker(job: dict[str, Any], log: str) -> dict[str, Any]:
    """Run a job on a worker in a new work folder. To cancel the job, delete that folder."""
    work = Path(job["inputs"]["work"])
    if not work.is_dir():
        return StageOutputs(
            "interrupted", "the worker cannot read the work folder: check that the workspace is shared"
        ).to_json()
    shutil.rmtree(work)
    work.mkdir()
    return LocalExecutor(1, abandoned=lambda: not work.is_dir()).run(job, log=Path(log)).to_json()


def _connect(address: str) -> Any:
    try:
        client: Any = _dask.Client(address, timeout=_CONNECT)
        client.wait_for_workers(1, timeout=_CONNECT)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConfigError(
            f"the dask cluster at {address} cannot be used: {error}",
            hint=(
                "start a cluster with 'dask scheduler' and 'dask worker ADDRESS', or use --executor dask to start a "
                "cluster for the run"
            ),
        ) from error
    return client
