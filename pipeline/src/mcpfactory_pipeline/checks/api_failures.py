"""Observation of a server while its API fails: every failure of `hostile`, for a tool that reads and one that writes.

Each of the two tools has a separate process and a separate failing API, so that they are tested in parallel. After
every failure the API recovers, and the same call must work. This module evaluates nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.checks import lifecycle
from mcpfactory_pipeline.checks.call_plan import PlannedCall, api_variables
from mcpfactory_pipeline.checks.evidence import Evidence, FailureOutcome, ServerProcess, answer_text
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.failing_api import FAILURES, ApiFailure, FailingApi
from mcpfactory_pipeline.checks.target import ValidationTarget
from mcpfactory_pipeline.checks.transport.stdio import StdioConversation, peak_memory
from mcpfactory_runtime.types import Json

_GRACE: Final = 4.0  # extra seconds, for servers with their own timeout
_START: Final = 20.0  # seconds that a process may take to answer
_TRIES: Final = 4  # calls until one works again; a busy machine needs more than one
_READING: Final = frozenset({"GET", "HEAD"})
_ONCE: Final = frozenset({"POST", "PATCH"})
_AGAIN: Final = frozenset({"PUT", "DELETE", "OPTIONS", "TRACE", "QUERY"})  # where there is neither of the others
_WIDEST: Final = 90  # characters of a cell


async def observe_failures(
    evidence: Evidence,
    target: ValidationTarget,
    plan: Sequence[PlannedCall],
    environ: Mapping[str, str],
    *,
    seconds: float,
) -> None:
    """Let the API fail in every way, and add what happened to the evidence, or why it is missing.

    Args:
        evidence: what is known of the server.
        target: started by command, with cases.
        plan: the calls of the cases, of which a reading and a writing one are taken.
        environ: of the server; its base URL is replaced.
        seconds: for all of it.
    """
    subjects = choose_subjects(plan)
    modern = "legacy" not in evidence.eras  # the per-request lifecycle, for servers that know no handshake
    rows = evidence.failures
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(_ExaminedTool(target, one, environ, rows, modern=modern).run() for one in subjects))
    except TimeoutError:
        evidence.missing["failures"] = "the time for the examination was over"
        return
    order = [failure.id for failure in FAILURES]
    rows.sort(key=lambda row: (order.index(row.failure), row.method in _ONCE))
    if not rows:
        works = "no tool works even while its API is well"
        evidence.missing["failures"] = works if subjects else "there is no case of a method that HTTP describes"


def choose_subjects(plan: Sequence[PlannedCall]) -> list[PlannedCall]:
    """Return a call that reads and one that must not be repeated; where there is neither, one of another method."""
    found = [one for methods in (_READING, _ONCE) if (one := _first(plan, methods)) is not None]
    return found or [one for one in (_first(plan, _AGAIN),) if one is not None]


def _first(plan: Sequence[PlannedCall], methods: frozenset[str]) -> PlannedCall | None:
    """Return the first call with such a method, rather one whose answer has content: more can go wrong with it."""
    found = [one for one in plan if one.case is not None and one.case["request"]["method"] in methods]
    return next((one for one in found if _body(one)), found[0] if found else None)


def _body(planned: PlannedCall) -> Any:
    response = (planned.case or {}).get("response", {})
    return response.get("body") if isinstance(response, Mapping) else None


class _ExaminedTool:
    """One tool, its process and its hostile API."""

    def __init__(
        self,
        target: ValidationTarget,
        planned: PlannedCall,
        environ: Mapping[str, str],
        rows: list[FailureOutcome],
        *,
        modern: bool,
    ) -> None:
        self._target = target
        self._planned = planned
        self._rows = rows
        self._modern = modern
        self._api = api_variables(target.cases.parent if target.cases is not None else None)
        self._environ = self._api.with_settings(environ, TIMEOUT=f"{target.api_timeout:g}")
        self._ids = itertools.count(1)
        self._patience = 2 * target.api_timeout + _GRACE
        self._ports: tuple[str, ...] = ()
        self._process: StdioConversation | None = None

    async def run(self) -> None:
        case = self._planned.case or {}
        response = case.get("response", {})
        async with FailingApi(response[0] if isinstance(response, list) else response) as api:
            self._environ = self._api.with_api(self._environ, api.base_url)
            self._ports = (f":{api.port}", f":{api.other_port}")
            try:
                if (await self._call_until_success()).failed:  # also triggers lazy loading at the first call
                    return  # fails with a healthy API, which behavior.cases reports
                for failure in FAILURES:
                    self._rows.append(await self._fail(api, failure))
            finally:
                await self._end()

    async def _fail(self, api: FailingApi, failure: ApiFailure) -> FailureOutcome:
        case = self._planned.case or {}
        await api.begin(failure)
        before = self._memory() if failure.heavy else None
        exchange = await self._call()
        if failure.status and exchange.failed and str(failure.status) not in answer_text(exchange):
            await api.begin(failure)  # it may have been the machine that was too slow: asked again before it is judged
            exchange = await self._call()
        after = self._memory() if failure.heavy else None
        requests, elsewhere = tuple(api.requests), api.elsewhere
        await api.begin(None)
        again = await self._call_until_success()
        return FailureOutcome(
            failure=failure.id,
            does=failure.does,
            error=failure.error,
            status=failure.status,
            tool=self._planned.tool,
            method=str(case["request"]["method"]),
            exchange=exchange,
            requests=requests,
            elsewhere=elsewhere,
            grown=None if before is None or after is None else max(after - before, 0),
            again=again,
        )

    async def _call_until_success(self) -> WireExchange:
        """Return the call while the API is well: the first that works, or the last that was tried."""
        exchange = await self._call()
        for _ in range(_TRIES - 1):
            if not exchange.failed:
                break
            exchange = await self._call()
        return exchange

    async def _call(self) -> WireExchange:
        """Return the call; a process that is not there is started first."""
        if self._process is None and (problem := await self._start()):
            return WireExchange({}, problem=problem)
        assert self._process is not None
        params = {"name": self._planned.tool, "arguments": dict(self._planned.arguments)}
        exchange = await self._process.ask(self._message("tools/call", params), self._patience)
        if exchange.received is None:  # ended or still busy: the next call gets a new process
            await self._end()
        # Equal servers give equal reports: the ports are others each time.
        text = json.dumps(exchange.received)
        for port in self._ports:
            text = text.replace(port, "")
        return replace(exchange, received=json.loads(text))

    async def _start(self) -> str:
        """Start the process and greet it; why that failed, or ""."""
        started = await StdioConversation.start(
            self._target.command or (), self._target.cwd, self._environ, f"failures, {self._planned.tool}"
        )
        if isinstance(started, ServerProcess):
            return started.problem
        self._process = started
        if not self._modern:
            hello = await started.ask(self._message("initialize", lifecycle.initialize_params()), _START)
            await started.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
            if hello.result is None:
                await self._end()
                return hello.problem or "the server did not answer initialize"
        return ""

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.close()

    def _message(self, method: str, params: Json) -> Json:
        meta = {"_meta": lifecycle.modern_meta(lifecycle.LATEST_MODERN)} if self._modern else {}
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": {**params, **meta}}

    def _memory(self) -> int | None:
        """Megabytes at the highest so far, of the process and those that it started; None where the system does not say."""
        if self._process is None:
            return None
        peaks = [peak // 1024 for pid in _process_group(self._process.pid) if (peak := peak_memory(pid)) is not None]
        return max(peaks, default=None)


def _process_group(leader: int) -> Iterator[int]:
    """Yield the processes of a group, by Linux's /proc."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(folder.name)) == leader:
                yield int(folder.name)
        except (ProcessLookupError, PermissionError):
            continue


def matrix_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the matrix as a table for people; `rows` are `FailureOutcome.to_json`'s."""
    table = [("the API", "tool", "requests", "answer", "next call")]
    table += [(row["does"], f"{row['method']} {row['tool']}", row["sent"], row["answer"], row["then"]) for row in rows]
    widths = [max(len(line[at][:_WIDEST]) for line in table) for at in range(len(table[0]))]
    cells = ([f"{cell[:_WIDEST]:{width}}" for cell, width in zip(line, widths, strict=True)] for line in table)
    return "".join("  ".join(line).rstrip() + "\n" for line in cells)
