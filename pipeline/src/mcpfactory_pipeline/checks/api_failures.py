"""Simulate each kind of API failure, and observe how one reading tool and one writing tool react."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import struct
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from http.client import responses
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.checks.call_plan import PlannedCall, api_variables
from mcpfactory_pipeline.checks.evidence import ApiFailure, Evidence, FailureOutcome, Session, answer_text
from mcpfactory_pipeline.checks.exchange import (
    LATEST_MODERN,
    ValidationTarget,
    WireExchange,
    initialize_params,
    per_request_meta,
)
from mcpfactory_pipeline.checks.transport.stdio import StdioConversation, peak_memory
from mcpfactory_runtime.types import Json
from mcpfactory_runtime.upstream.stub import case_response_body

_BLOCK: Final = 1 << 20
_BLOCKS: Final = 1024  # number of blocks that together are one gibibyte
_CRC_OF_ZEROS: Final = 0x5B64C2B0  # Use a case with these methods only if no case has a method of the two sets above.
_DRIP: Final = 0.05  # seconds between two bytes of a slow response
_NO_JSON: Final = b'{"name": '
_PAGE: Final = b"<html><head><title>Please log in</title></head><body></body></html>"


class FailingApi:
    """Simulated API that fails as `failure` specifies; without a failure, the API returns `response`.

    Attributes:
        requests: the methods of the requests since the last `begin`.
        elsewhere: the number of requests to a second host, which only redirects name.
    """

    def __init__(self, response: Mapping[str, Any]) -> None:
        self.response = response
        self.failure: ApiFailure | None = None
        self.requests: list[str] = []
        self.elsewhere = 0
        self.port = self.other_port = 0
        self._server: asyncio.Server | None = None
        self._other: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        """Return the URL of the server."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> FailingApi:
        self._other = await asyncio.start_server(self._serve_elsewhere, "127.0.0.1", 0)
        self.other_port = self._other.sockets[0].getsockname()[1]
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()
        assert self._other is not None
        self._other.close()

    async def begin(self, failure: ApiFailure | None) -> None:
        """Make all later requests fail as `failure` specifies; None ends the failure."""
        self.failure, self.requests, self.elsewhere = failure, [], 0
        if failure is not None and failure.answer is None:
            await self._close()
        elif self._server is None:
            await self._listen()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, reuse_address=True)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
                await self._one(reader, writer)
            writer.close()
        except asyncio.CancelledError:
            writer.transport.abort()
        # Wait for the connection to end: asyncio logs an error if nobody awaits a reset.
        with suppress(ConnectionError, asyncio.CancelledError):
            await writer.wait_closed()
        self._tasks.discard(task)

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one request per connection, so that a failure cannot affect another request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.requests.append(head.partition(" ")[0])
        fields = (line.partition(":") for line in head.split("\r\n")[1:])
        length = next((int(value) for name, _, value in fields if name.lower() == "content-length"), 0)
        await reader.readexactly(min(length, 1 << 24))
        if self.failure is None or self.failure.answer is None:
            await _documented(self, writer)
        else:
            await self.failure.answer(self, writer)

    async def _serve_elsewhere(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.elsewhere += 1
        with suppress(ConnectionError):
            await _send(writer, 200, b"{}")
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


Answer = Callable[[FailingApi, asyncio.StreamWriter], Awaitable[None]]


def _head(status: int, kind: str, *more: str) -> bytes:
    lines = [f"HTTP/1.1 {status} {responses.get(status, 'OK')}", f"Content-Type: {kind}", "Connection: close", *more]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _send(
    writer: asyncio.StreamWriter, status: int, body: bytes, kind: str = "application/json", *more: str
) -> None:
    writer.write(_head(status, kind, f"Content-Length: {len(body)}", *more) + body)
    await writer.drain()


async def _documented(hostile: FailingApi, writer: asyncio.StreamWriter) -> None:
    response = hostile.response
    kind, body = response.get("content_type") or "", response.get("body")
    content = case_response_body(kind, body)
    status = int(response.get("status", 200))
    if status in (204, 205, 304):
        writer.write(f"HTTP/1.1 {status} OK\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
    else:
        await _send(writer, status, content, kind or "text/plain")


# --- kinds of API failures ---


def _unfinished(hostile: FailingApi, body: bytes) -> bytes:
    """Return a response that ends too early: in its body, or in its head if `body` is empty (RFC 9110 §9.3.2)."""
    head = _head(200, "application/json", "Content-Length: 100000")
    return head[:-2] + b"X-More: " if hostile.requests[-1] == "HEAD" else head + body


async def _drip(hostile: FailingApi, writer: asyncio.StreamWriter) -> None:
    writer.write(_unfinished(hostile, b'["'))
    while True:
        writer.write(b"a")
        await writer.drain()
        await asyncio.sleep(_DRIP)


async def _reset(hostile: FailingApi, writer: asyncio.StreamWriter) -> None:
    writer.write(_unfinished(hostile, _NO_JSON))
    await writer.drain()
    plug = writer.get_extra_info("socket")
    # With linger time 0, closing the connection sends a reset.
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _status(status: int, *headers: str) -> Answer:
    body = json.dumps({"title": responses[status], "status": status, "detail": "made to fail"}).encode()

    async def answer(hostile: FailingApi, writer: asyncio.StreamWriter) -> None:
        await _send(writer, status, body, "application/problem+json", *headers)

    return answer


def _fixed(body: bytes, kind: str) -> Answer:
    async def answer(hostile: FailingApi, writer: asyncio.StreamWriter) -> None:
        await _send(writer, 200, body, kind)

    return answer


async def _wrong_shape(hostile: FailingApi, writer: asyncio.StreamWriter) -> None:
    """Send JSON of an undocumented shape: a list instead of an object, or an object instead of a list."""
    odd = {"unexpected": [1, {"deeper": None}]}
    await _send(writer, 200, json.dumps([odd] if isinstance(hostile.response.get("body"), dict) else odd).encode())


async def _gigabyte(hostile: FailingApi, writer: asyncio.StreamWriter) -> None:
    writer.write(_head(200, "application/json", f"Content-Length: {_BLOCK * _BLOCKS}") + b'["')
    block = b"a" * _BLOCK
    for _ in range(_BLOCKS):
        writer.write(block)
        await writer.drain()


async def _redirect(hostile: FailingApi, writer: asyncio.StreamWriter) -> None:
    await _send(writer, 302, b"", "text/plain", f"Location: http://localhost:{hostile.other_port}/elsewhere")


def _bomb(encoding: str) -> Answer:
    async def answer(hostile: FailingApi, writer: asyncio.StreamWriter) -> None:
        lead, block, end = _packed(encoding)
        writer.write(_head(200, "application/json", f"Content-Encoding: {encoding}") + lead)
        for _ in range(_BLOCKS):
            writer.write(block)
            await writer.drain()
        writer.write(end)
        await writer.drain()

    return answer


@cache
def _packed(encoding: str) -> tuple[bytes, bytes, bytes]:
    """Return the head, a repeatable block and the tail of a gigabyte of zeros, compressed (RFC 1950 to 1952).

    The block, sent a thousand times, gives the gigabyte. A full flush ends the block, so that each copy can be
    decompressed without the copies before it.
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = packer.compress(bytes(_BLOCK)) + packer.flush(zlib.Z_FULL_FLUSH)
    last = b"\x03\x00"  # an empty deflate block with the mark of the last block
    size = _BLOCK * _BLOCKS
    if encoding == "deflate":
        return b"\x78\x9c", block, last + struct.pack(">I", (size % 65521) << 16 | 1)  # Adler-32 of zeros
    return b"\x1f\x8b\x08" + bytes(6) + b"\xff", block, last + struct.pack("<II", _CRC_OF_ZEROS, size & 0xFFFFFFFF)


FAILURES: Final[tuple[ApiFailure, ...]] = (
    ApiFailure("refused", "refuses the connection", None, waits=True),
    ApiFailure("silence", "accepts the request and never answers", lambda _, writer: writer.wait_closed(), waits=True),
    ApiFailure("drip", "sends one byte at a time, endlessly", _drip, waits=True),
    ApiFailure("reset", "resets the connection midway", _reset, waits=True),
    ApiFailure("401", "answers 401", _status(401, 'WWW-Authenticate: Bearer realm="api"'), status=401),
    ApiFailure("403", "answers 403", _status(403), status=403),
    ApiFailure("404", "answers 404", _status(404), status=404),
    ApiFailure("409", "answers 409", _status(409), status=409),
    ApiFailure("429", "answers 429 with Retry-After: 1", _status(429, "Retry-After: 1"), status=429, waits=True),
    ApiFailure("500", "answers 500", _status(500), status=500),
    ApiFailure("503", "answers 503", _status(503), status=503, waits=True),
    ApiFailure("wrong-type", "answers 200 with an HTML page", _fixed(_PAGE, "text/html"), error=False),
    ApiFailure("no-json", "answers 200 with JSON that breaks off", _fixed(_NO_JSON, "application/json"), error=False),
    ApiFailure("wrong-shape", "answers 200 with JSON of another shape", _wrong_shape, error=False),
    ApiFailure("gigabyte", "answers with a gigabyte", _gigabyte, error=False, heavy=True),
    ApiFailure("redirect", "redirects to another host", _redirect, status=302),
    ApiFailure("gzip-bomb", "answers with a gzip that unpacks to a gigabyte", _bomb("gzip"), error=False, heavy=True),
    ApiFailure(
        "deflate-bomb", "answers with a deflate that unpacks to a gigabyte", _bomb("deflate"), error=False, heavy=True
    ),
)


_GRACE: Final = 4.0  # seconds added to the timeout of a call
_START: Final = 20.0  # seconds; timeout of the first answer of a process
_TRIES: Final = 4  # maximum number of calls to wait for a success
_WAITING: Final = 3  # processes for the failures that wait; a start takes as long as a short wait
_READING: Final = frozenset({"GET", "HEAD"})
_ONCE: Final = frozenset({"POST", "PATCH"})
# Use a case with one of these methods only if no case has a method of the two sets above.
_AGAIN: Final = frozenset({"PUT", "DELETE", "OPTIONS", "TRACE", "QUERY"})


async def observe_failures(
    evidence: Evidence,
    target: ValidationTarget,
    plan: Sequence[PlannedCall],
    environ: Mapping[str, str],
    *,
    seconds: float,
) -> None:
    """Make the API fail in every way, and add the outcomes, or the reason for their absence, to the evidence.

    Args:
        evidence: the observations so far.
        target: a server started by command, with cases.
        plan: the calls of the cases; only one read call and one write call of them are made.
        environ: the server's environment variables; the base URL in them is replaced.
        seconds: time limit for all failures together.
    """
    subjects = choose_calls_to_fail(plan)
    rows = evidence.failures
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(
                *(
                    _ToolUnderFailures(evidence, target, subject, environ, failures).run()
                    for subject in subjects
                    for failures in _failures_by_process()
                )
            )
    except TimeoutError:
        evidence.missing["failures"] = "the time limit of the validation was reached"
        return
    rows.sort(key=lambda row: (FAILURES.index(row.failure), row.method in _ONCE))
    if not rows:
        works = "no tool works even with a healthy API"
        evidence.missing["failures"] = works if subjects else "no case uses a standard HTTP method"


def _failures_by_process() -> list[tuple[ApiFailure, ...]]:
    quick, waiting = (tuple(one for one in FAILURES if one.waits is waits) for waits in (False, True))
    return [quick, *(waiting[start::_WAITING] for start in range(_WAITING))]


def choose_calls_to_fail(plan: Sequence[PlannedCall]) -> list[PlannedCall]:
    """Return a read call and a non-repeatable call; if both are missing, return a call with another method."""
    found = [one for methods in (_READING, _ONCE) if (one := _first(plan, methods)) is not None]
    return found or [one for one in (_first(plan, _AGAIN),) if one is not None]


def _first(plan: Sequence[PlannedCall], methods: frozenset[str]) -> PlannedCall | None:
    found = [one for one in plan if one.case is not None and one.case["request"]["method"] in methods]
    return next((one for one in found if _body(one)), found[0] if found else None)


def _body(planned: PlannedCall) -> Any:
    response = (planned.case or {}).get("response", {})
    return response.get("body") if isinstance(response, Mapping) else None


class _ToolUnderFailures:
    """Call one tool in one server process, once for each failure of the API."""

    def __init__(
        self,
        evidence: Evidence,
        target: ValidationTarget,
        planned: PlannedCall,
        environ: Mapping[str, str],
        failures: Sequence[ApiFailure],
    ) -> None:
        self._evidence = evidence
        self._target = target
        self._planned = planned
        self._failures = failures
        self._modern = "legacy" not in evidence.lifecycles  # servers without a handshake use the per-request lifecycle
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
                if (await self._call_until_success()).failed:  # the first call also loads what the server loads lazily
                    return  # the rule tool-calls.cases reports tools that fail although the API is healthy
                for failure in self._failures:
                    self._evidence.failures.append(await self._fail(api, failure))
            finally:
                await self._end()

    async def _fail(self, api: FailingApi, failure: ApiFailure) -> FailureOutcome:
        case = self._planned.case or {}
        await api.begin(failure)
        before = self._memory() if failure.heavy else None
        exchange = await self._call()
        if failure.status and exchange.failed and str(failure.status) not in answer_text(exchange):
            await api.begin(failure)  # retry once, because the machine may have been busy
            exchange = await self._call()
        after = self._memory() if failure.heavy else None
        requests, elsewhere = tuple(api.requests), api.elsewhere
        await api.begin(None)
        again = await self._call_until_success()
        return FailureOutcome(
            failure=failure,
            tool=self._planned.tool,
            method=str(case["request"]["method"]),
            exchange=exchange,
            requests=requests,
            elsewhere=elsewhere,
            grown=None if before is None or after is None else max(after - before, 0),
            again=again,
        )

    async def _call_until_success(self) -> WireExchange:
        """Repeat the call while the API is healthy; return the first successful call, or the last call."""
        exchange = await self._call()
        for _ in range(_TRIES - 1):
            if not exchange.failed:
                break
            exchange = await self._call()
        return exchange

    async def _call(self) -> WireExchange:
        if self._process is None and (problem := await self._start()):
            return WireExchange({}, problem=problem)
        assert self._process is not None
        params = {"name": self._planned.tool, "arguments": dict(self._planned.arguments)}
        exchange = await self._process.ask(self._message("tools/call", params), self._patience)
        if exchange.received is None:  # the process ended or is still busy, so the next call starts a new process
            await self._end()
        # Mask the ports, which differ in each run: equal servers must give equal reports.
        text = json.dumps(exchange.received)
        for port in self._ports:
            text = text.replace(port, "")
        return replace(exchange, received=json.loads(text))

    async def _start(self) -> str:
        started = await StdioConversation.start(
            self._target.command or (), self._target.cwd, self._environ, f"failures, {self._planned.tool}"
        )
        if isinstance(started, Session):
            return started.problem
        self._process = started
        if not self._modern:
            hello = await started.ask(self._message("initialize", initialize_params()), _START)
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
        meta = {"_meta": per_request_meta(LATEST_MODERN)} if self._modern else {}
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": {**params, **meta}}

    def _memory(self) -> int | None:
        """Return the peak memory of the process and its children in megabytes, or None if it is unknown."""
        if self._process is None:
            return None
        peaks = [peak // 1024 for pid in _process_group(self._process.pid) if (peak := peak_memory(pid)) is not None]
        return max(peaks, default=None)


def _process_group(leader: int) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(folder.name)) == leader:
                yield int(folder.name)
        except (ProcessLookupError, PermissionError):
            continue
