from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.events import Reporter, RunEvent, RunFinished, RunStarted, ServerUnusable
from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.base.locks import register_run
from mcpfactory_pipeline.channels.candidate import prune_by_policy
from mcpfactory_pipeline.decisions.integrity import name_clashes
from mcpfactory_pipeline.plan.plan import PlanStep, broken_step
from mcpfactory_pipeline.plan.stage import Stage, local_isolation_level
from mcpfactory_pipeline.reporting import NotifyingReporter, make_notifier
from mcpfactory_pipeline.run.executor import Executor, LocalExecutor
from mcpfactory_pipeline.run.runner import ServerRunner, ServerRunResult, plan_server_stages
from mcpfactory_pipeline.stages import stages_from, stages_until, workspace_stages
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.state import extend
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import (
    CONFIG,
    BrokenServer,
    Workspace,
    WorkspaceServer,
    broken_server_of_error,
    isolate_server_errors,
)
from mcpfactory_runtime.errors import Exit


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Result of a run: the worst outcome of each server, and the number of stages that ran.

    `recorded` are the events of the run by server. `isolation` is the isolation level of server code on this machine;
    "" if no server code ran.
    """

    servers: dict[str, str]
    ran: int
    recorded: Mapping[str, Sequence[Event]] = field(default_factory=dict)
    isolation: str = ""

    @property
    def interrupted(self) -> bool:
        """Return True if the run ended before completion."""
        return "interrupted" in self.servers.values()

    @property
    def errored(self) -> bool:
        """Return True if a stage of any server ended as `errored`."""
        return "errored" in self.servers.values()

    @property
    def failed(self) -> bool:
        """Return True if a server did not pass, in this run or in an earlier run with the same inputs."""
        return any(outcome in {"failed", "inconclusive", "blocked"} for outcome in self.servers.values())

    @property
    def exit_code(self) -> Exit:
        """Return the exit code of a command that ran the stages."""
        if self.interrupted:
            return Exit.INTERRUPTED
        if self.errored:
            return Exit.SYSTEM_ERROR
        return Exit.NEGATIVE if self.failed else Exit.OK


def plan_servers(
    workspace: Workspace,
    names: Sequence[str] | None = None,
    *,
    until: str | None = None,
    again: str | None = None,
    force: bool = False,
    stages: Sequence[Stage] | None = None,
) -> list[PlanStep]:
    """Return the steps of a run without running them: one step for each stage of each server.

    Without `names`, all servers are planned. `force` also plans stages that are up to date. `again` names one stage,
    and also plans this stage and its dependents. `stages` replaces the stages of the workspace; the stages must be
    sorted by their needs. A server with unreadable files has one step, which contains the error.

    Raises:
        NotFoundError: the server or stage is unknown.
        ConfigError: the workspace cannot be read.
    """
    stages = stages_until(stages or workspace_stages(workspace), until)
    store, forced = Store(workspace), _forced(stages, again, force)
    servers, broken = _survey(workspace, names)
    steps = [broken_step(one.name, one.message, one.hint) for one in broken]
    for server in servers:
        found = isolate_server_errors(server.name, partial(_plan_one, workspace, store, server, stages, forced))
        steps += [broken_step(found.name, found.message, found.hint)] if isinstance(found, BrokenServer) else found
    return steps


def _forced(stages: Sequence[Stage], again: str | None, force: bool) -> tuple[str, ...]:
    """Return the stages to run even if they are up to date: all stages, or `again` and its dependents."""
    if force:
        return tuple(stage.name for stage in stages)
    return stages_from(stages, again) if again else ()


def _survey(workspace: Workspace, names: Sequence[str] | None) -> tuple[list[WorkspaceServer], list[BrokenServer]]:
    servers, broken = workspace.load_servers(names)
    refused = name_clashes(workspace, [server.name for server in servers])
    return [server for server in servers if server.name not in refused], [*broken, *refused.values()]


def _plan_one(
    workspace: Workspace, store: Store, server: WorkspaceServer, stages: Sequence[Stage], forced: Sequence[str]
) -> tuple[PlanStep, ...]:
    state = extend(store.state(server.name), store.crashed_stages(server.name))
    return plan_server_stages(workspace, server, stages, state, forced)


def run_pipeline(
    workspace: Workspace,
    names: Sequence[str] | None = None,
    *,
    until: str | None = None,
    again: str | None = None,
    force: bool = False,
    jobs: int | None = None,
    reporter: Reporter | None = None,
    executor: Executor | str | None = None,
    stages: Sequence[Stage] | None = None,
    run_id: str = "",
    stop: threading.Event | None = None,
) -> RunOutcome:
    """Run the planned stages of several servers in parallel, and record every result.

    `jobs` is the number of parallel servers; the default is the executor's capacity. `force` also runs stages that are
    up to date. `again` names one stage, and also runs this stage and its dependents. SIGINT, SIGTERM or the event
    `stop` ends the run: running stages are recorded as interrupted, and finished results are kept. `stages` replaces
    the workspace's stages. `executor` is an executor, or a value for `make_executor`. At the end, the files of the
    servers that ran are pruned by the limits in `[artifacts]`. `run_id` is from `new_id`, for callers that follow the
    run. Errors of stages and of single servers are outcomes, not exceptions.

    Raises:
        NotFoundError: the server or stage is unknown.
        ConfigError: the workspace cannot be read.
        StageError: isolation is required, and no level is available on this machine.
    """
    stages = stages_until(stages or workspace_stages(workspace), until)
    forced = _forced(stages, again, force)
    servers, broken = _survey(workspace, names)
    reporter, guard = reporter or Reporter(), threading.Lock()
    if others := make_notifier(workspace):
        reporter = NotifyingReporter(reporter, others)
    if executor is None or isinstance(executor, str):
        executor = make_executor(workspace, executor, jobs)
    level = local_isolation_level(workspace, stages) if isinstance(executor, LocalExecutor) else ""

    def emit(event: RunEvent) -> None:
        with guard:
            reporter.emit(event)

    slots = max(1, jobs or executor.slots)
    runner = ServerRunner(
        workspace=workspace,
        stages=tuple(stages),
        store=Store(workspace),
        executor=executor,
        emit=emit,
        run_id=run_id or new_id(),
        attempts=workspace.settings.pipeline.attempts,
        backoff=workspace.settings.pipeline.backoff,
        slots=threading.Semaphore(slots),
        width=slots,
    )
    started = time.monotonic()
    emit(RunStarted(tuple(server.name for server in servers), tuple(stage.name for stage in stages), level))
    try:
        with _interrupt_on_signals(), register_run(runner.store.locks, runner.run_id):
            results = _run_all(runner, servers, forced, slots, stop or threading.Event())
            results += [_report_broken(runner, one) for one in broken]
        outcomes, ran = {one.server: one.outcome for one in results}, sum(len(one.ran) for one in results)
        outcome = RunOutcome(outcomes, ran, runner.store.recorded, level)
        pruned = prune_by_policy(workspace, [result.server for result in results if result.ran])
        failed = {one.server: one.failed for one in results if one.failed}
        emit(RunFinished(outcome.servers, outcome.ran, round(time.monotonic() - started, 3), pruned, failed))
    finally:
        executor.close()
        reporter.close()
    return outcome


def _run_all(
    runner: ServerRunner, servers: Sequence[WorkspaceServer], forced: Sequence[str], jobs: int, stop: threading.Event
) -> list[ServerRunResult]:
    with ThreadPoolExecutor(max(1, min(jobs, len(servers) or 1)), thread_name_prefix="server") as pool:
        # the context contains the actor, and each thread needs its own copy
        futures = {pool.submit(copy_context().run, runner.run, server, forced): server for server in servers}
        try:
            _wait_for(futures, stop)
        except KeyboardInterrupt:
            runner.stopped.set()
            for future in futures:
                future.cancel()
            runner.executor.cancel()
    return [_result(runner, future, server) for future, server in futures.items()]


def _wait_for(futures: Iterable[Future[ServerRunResult]], stop: threading.Event) -> None:
    """Wait for all futures in short intervals, because some systems delay signals during a long wait."""
    for future in futures:
        while not future.done():
            if stop.is_set():
                raise KeyboardInterrupt
            wait((future,), timeout=0.5)


def _report_broken(runner: ServerRunner, one: BrokenServer) -> ServerRunResult:
    runner.emit(ServerUnusable(one.name, one.message, one.hint))
    return ServerRunResult(one.name, "errored")


def _result(runner: ServerRunner, future: Future[ServerRunResult], server: WorkspaceServer) -> ServerRunResult:
    if future.cancelled():
        return ServerRunResult(server.name, "interrupted")
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, Exception):
        return _report_broken(runner, broken_server_of_error(server.name, error))
    raise error


@contextmanager
def _interrupt_on_signals() -> Iterator[None]:
    """Let SIGTERM end a run like Ctrl-C. Do nothing outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def make_executor(workspace: Workspace, wanted: str | None = None, jobs: int | None = None) -> Executor:
    """Return the executor `wanted`; the default is the setting `[pipeline] executor`.

    `wanted` is a key of `EXECUTORS`, or the address of a dask scheduler (`tcp://host:8786`). `jobs` limits the number
    of parallel jobs.
    """
    name = wanted or workspace.settings.pipeline.executor
    if name in EXECUTORS:
        return EXECUTORS[name]("", jobs)
    if "://" in name:
        return EXECUTORS["dask"](name, jobs)
    where = "--executor" if wanted else f"{workspace.root / CONFIG}: pipeline.executor"
    raise ConfigError(
        f"{where}: {name!r} is not a valid executor",
        hint=f"use one of {', '.join(EXECUTORS)}, or tcp://host:port of a dask scheduler",
    )


def _dask(address: str, jobs: int | None) -> Executor:
    try:
        from mcpfactory_pipeline.run.dask import DaskExecutor  # noqa: PLC0415 - optional extra, and a second to load
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the executor dask cannot be used: {error.name} is not installed", hint="pip install 'mcpfactory[dask]'"
        ) from error
    return DaskExecutor(address, jobs)


EXECUTORS: Final[dict[str, Callable[[str, int | None], Executor]]] = {
    "local": lambda _address, jobs: LocalExecutor(jobs),
    "dask": _dask,
}
