"""One stage of one server in a separate process: `python -m mcpfactory_pipeline.run.job job.json`.

The stage and its tools write to stdout, which is the log of the job. A worker process runs the code of the stage. The
parent of the worker process is the supervisor. The supervisor ends all processes of the job when the worker ends or
stdin closes. To end the job, the executor closes stdin. If the run is killed, the system closes stdin.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from mcpfactory_pipeline.base.errors import ConfigError, PipelineError
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.isolation.processes import adopt_orphans, die_with_parent, end_descendants, hide_process
from mcpfactory_pipeline.plan.stage import Stage, StageInputs, StageOutputs

SCHEMA: Final = 1


def make_job(stage: Stage, inputs: StageInputs, *, adopted: bool = False) -> dict[str, Any]:
    """Return the job as plain data. For an `adopted` server, the job runs the stage's function `adopted`."""
    limits = {"timeout": stage.timeout, "memory": stage.memory}
    return {
        "job": SCHEMA,
        "stage": stage.name,
        "run": stage.adopted if adopted and stage.adopted else stage.run,
        "limits": limits,
        "environ": "caller" if stage.caller_environ else "reduced",
        "inputs": inputs.to_json(),
    }


def run_job(job: Mapping[str, Any]) -> dict[str, Any]:
    """Run a job in this process and return its outputs as plain data. An error becomes an outcome."""
    try:
        inputs = StageInputs.from_json(job["inputs"])
        outputs = _find(str(job["run"]))(inputs)
    except PipelineError as error:
        print(f"error: {error}\nhint: {error.hint}", flush=True)  # noqa: T201 - a job's stdout is the log of its stage
        # A retry does not correct a file.
        outcome = "failed" if isinstance(error, ConfigError) else "errored"
        outputs = StageOutputs(outcome, str(error) + (f"; hint: {error.hint}" if error.hint else ""))
    except Exception as error:  # noqa: BLE001 - a stage may run any code, whose errors are outcomes
        traceback.print_exc(file=sys.stdout)
        outputs = StageOutputs("errored", _describe(error))
    return outputs.to_json()


def _describe(error: Exception) -> str:
    hint = getattr(error, "hint", "")
    return f"{type(error).__name__}: {error}" + (f"; hint: {hint}" if hint else "")


def _find(reference: str) -> Callable[[StageInputs], StageOutputs]:
    module, _, name = reference.partition(":")
    found: Callable[[StageInputs], StageOutputs] = getattr(importlib.import_module(module), name)
    return found


def _run_to_file(job_file: Path, result_file: Path) -> NoReturn:
    """Run the job, end all its processes, and write the outputs."""
    adopt_orphans()
    outputs = run_job(json.loads(job_file.read_text(encoding="utf-8")))
    if left := end_descendants():  # a remaining process could change the outputs
        print(f"ended {pluralize(left, 'orphan')} that the stage left behind")  # noqa: T201 - the log of the stage
    sys.stdout.flush()
    temporary = result_file.with_suffix(".tmp")
    temporary.write_text(json.dumps(outputs), encoding="utf-8")
    temporary.replace(result_file)
    os._exit(0)  # a normal exit would wait for the thread that reads stdin


def _kill_at_eof(pid: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        while sys.stdin.buffer.read(1):
            pass
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def main() -> None:
    """Read the job from the first file, and write the outputs to the second file."""
    hide_process()
    files = Path(sys.argv[1]), Path(sys.argv[2])
    adopt_orphans()
    worker = os.fork() if hasattr(os, "fork") else os.getpid()
    if worker == 0:
        die_with_parent()
        _run_to_file(*files)
    threading.Thread(target=_kill_at_eof, args=(worker,), daemon=True).start()
    if worker == os.getpid():  # systems without fork run the job in this process, without a supervisor
        _run_to_file(*files)
    code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    end_descendants()
    if code < 0:  # if descendants cannot be listed, only the process group can be ended
        end = os.killpg if os.getpgrp() == os.getpid() else os.kill
        end(os.getpid(), -code)
    os._exit(abs(code))


if __name__ == "__main__":
    main()
