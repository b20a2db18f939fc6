"""Clients of the trial, old and new: each call ends with its answer or with a report, or it is lost. Each on a connection of its own."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

import httpx

from benchmarks.trials.two_processes.fleet import Fleet
from mcpfactory_runtime.protocol.connection import META_CAPABILITIES, META_VERSION
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, R2025_06_18, TASKS
from mcpfactory_runtime.types import Json

_STEPS: Final = 12
_PATIENCE: Final = 40.0  # seconds in which a call ends somehow: several leases, and the starts of processes
_ASK_AGAIN: Final = 0.2  # seconds
_ACCEPT: Final = {"accept": "application/json, text/event-stream", "connection": "close"}
_TRY_AGAIN: Final = 503


@dataclass
class Tally:
    """What the clients met.

    Attributes:
        running: whether new calls begin.
        counts: what happened, and how often.
        faults: what must not happen.
    """

    fleet: Fleet
    http: httpx.AsyncClient
    running: bool = True
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def ledger(self) -> list[list[str]]:
        """Return what handlers wrote: word, key, process."""
        return [line.split() for line in self.fleet.ledger.read_text("utf-8").splitlines()]


class _Session:
    """A session of the handshake, wherever its requests arrive."""

    def __init__(self, tally: Tally, revision: str) -> None:
        self._tally = tally
        self._revision = revision
        self._number = 0
        self.headers: dict[str, str] = {}

    async def begin(self) -> None:
        info = {"protocolVersion": self._revision, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
        while not self.headers and self._tally.running:
            try:
                answer = await self._tally.http.post(
                    self._tally.fleet.url, json=_message("initialize", info, 0), headers=_ACCEPT
                )
            except httpx.HTTPError:  # of a process that was killed meanwhile; nothing had begun
                continue
            names = {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": self._revision}
            self.headers = {**_ACCEPT, **names}
            await self.tell("notifications/initialized", {})

    async def tell(self, method: str, params: Json) -> bool:
        """Whether a notification arrived."""
        try:
            answer = await self._tally.http.post(
                self._tally.fleet.url,
                json={"jsonrpc": "2.0", "method": method, "params": params},
                headers=self.headers,
            )
        except httpx.HTTPError:
            return False
        return answer.status_code == httpx.codes.ACCEPTED

    async def call(self, tool: str, arguments: Json) -> Json | None:
        """Return the answer to a call; None where only the connection said that there will be none.

        Raises:
            LookupError: something was lost, or came twice.
        """
        self._number += 1
        number, position, doing = (
            self._number,
            "",
            _message("tools/call", {"name": tool, "arguments": arguments}, self._number),
        )
        steps: list[str] = []
        while True:
            resumed = {"last-event-id": position} if position else {}
            try:
                async with self._tally.http.stream(
                    "GET" if position else "POST",
                    self._tally.fleet.url,
                    headers={**self.headers, **resumed},
                    json=None if position else doing,
                ) as answer:
                    if answer.status_code == _TRY_AGAIN and not position:
                        return None
                    if answer.status_code not in (httpx.codes.OK, _TRY_AGAIN):
                        raise LookupError(f"{answer.status_code}: {(await answer.aread()).decode()[:200]}")
                    async for name, message in _events(answer):
                        position = _after(position, name)
                        if message.get("id") == number:
                            _whole(steps, message)
                            return message
                        steps += [message["params"]["data"]] if message else []
            except httpx.HTTPError:
                if not position:
                    return None
            self._tally.counts["streams resumed"] += 1
            await asyncio.sleep(_ASK_AGAIN)

    @property
    def number(self) -> int:
        """Return the id of the latest request."""
        return self._number


def _whole(steps: list[str], answer: Json) -> None:
    expected = [str(number) for number in range(len(steps))]
    if [step.split()[1] for step in steps] != expected or ("result" in answer and len(steps) != _STEPS):
        raise LookupError(f"steps lost or doubled: {steps}")


def _after(position: str, name: str) -> str:
    """Return the place in a stream behind an event, which must be the next one."""
    if position and name:
        (stream, before), (same, now) = (one.rpartition("-")[::2] for one in (position, name))
        if (same, int(now)) != (stream, int(before) + 1):
            raise LookupError(f"event {name} came after {position}")
    return name or position


async def _events(answer: httpx.Response) -> AsyncIterator[tuple[str, Json]]:
    if not answer.headers["content-type"].startswith("text/event-stream"):
        data = await answer.aread()
        if answer.status_code == httpx.codes.OK:
            yield "", json.loads(data)
        return
    event: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        else:
            if "id" in event or event.get("data"):
                yield event.get("id", ""), json.loads(event.get("data") or "{}")
            event = {}


def _message(method: str, params: Json, number: int) -> Json:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _judge(tally: Tally, kind: str, key: str, answer: Json | None) -> None:
    """Count how a call ended."""
    if answer is None or "error" in answer:
        tally.counts[f"{kind} reported"] += 1
    elif answer["result"]["content"][0]["text"] == key:
        tally.counts[f"{kind} answered"] += 1
    else:
        tally.faults.append(f"{key} was answered with {answer}")


async def call_in_a_session(tally: Tally, name: str) -> None:
    """Call a tool that tells of its steps, again and again in one session; streams that break off are resumed."""
    session = _Session(tally, (LATEST_LEGACY if int(name) % 2 else R2025_06_18).name)
    await session.begin()
    for number in range(1_000_000):
        if not tally.running:
            return
        key = f"old-{name}-{number}"
        try:
            async with asyncio.timeout(_PATIENCE):
                _judge(tally, "old calls", key, await session.call("work", {"key": key, "steps": _STEPS}))
        except (LookupError, TimeoutError) as error:
            tally.faults.append(f"{key}: {type(error).__name__} {error}")
            session.headers = {}
            await session.begin()


async def _ask(tally: Tally, method: str, params: Json, name: str) -> Json | None:
    """Ask in the newest revision; None where the connection broke, or the status says that nothing was done."""
    meta = {META_VERSION: LATEST.name, META_CAPABILITIES: {"extensions": {TASKS: {}}}}
    headers = {**_ACCEPT, "mcp-protocol-version": LATEST.name, "mcp-method": method, "mcp-name": name}
    body = _message(method, {**params, "_meta": meta}, 1)
    try:
        answer = await tally.http.post(tally.fleet.url, json=body, headers=headers)
    except httpx.HTTPError:
        return None
    async for _, message in _events(answer):
        if message.get("id") == 1:
            return message
    return None if answer.status_code == _TRY_AGAIN else {"error": {"message": f"{answer.status_code} {answer.text}"}}


async def call_anew(tally: Tally, name: str) -> None:
    """Call a tool without a session, again and again."""
    for number in range(1_000_000):
        if not tally.running:
            return
        key = f"new-{name}-{number}"
        params = {"name": "work", "arguments": {"key": key, "steps": 1}}
        _judge(tally, "new calls", key, await _ask(tally, "tools/call", params, "work"))


async def run_tasks(tally: Tally, name: str) -> None:
    """Begin tasks and ask for them, wherever the question arrives, until they have ended."""
    for number in range(1_000_000):
        if not tally.running:
            return
        key = f"task-{name}-{number}"
        begun = await _ask(tally, "tools/call", {"name": "job", "arguments": {"key": key}}, "job")
        if begun is None or "error" in begun:
            tally.counts["tasks not begun, reported"] += 1
            continue
        try:
            async with asyncio.timeout(_PATIENCE):
                await _follow(tally, key, begun["result"]["taskId"])
        except TimeoutError:
            tally.faults.append(f"{key} never ended")


async def _follow(tally: Tally, key: str, task: str) -> None:
    while True:
        await asyncio.sleep(_ASK_AGAIN)
        now = await _ask(tally, "tasks/get", {"taskId": task}, task)
        if now is None:
            continue
        if "error" in now:
            tally.faults.append(f"{key} is not known: {now['error']['message']}")
            return
        if now["result"]["status"] in ("completed", "failed"):
            done = now["result"]["status"] == "completed"
            _judge(tally, "tasks", key, {"result": now["result"]["result"]} if done else {"error": {}})
            return


async def cancel(tally: Tally, name: str) -> None:
    """Begin calls that never end, and cancel them by a notification that arrives anywhere."""
    session = _Session(tally, LATEST_LEGACY.name)
    await session.begin()
    for number in range(1_000_000):
        if not tally.running:
            return
        key = f"held-{name}-{number}"
        calling = asyncio.ensure_future(session.call("hold", {"key": key}))
        try:
            process = await _noted(tally, "ran", key)
            if process is not None and await session.tell("notifications/cancelled", {"requestId": session.number}):
                if await _noted(tally, "cancelled", key) is not None:
                    tally.counts["cancelled"] += 1
                elif tally.fleet.alive(process):
                    tally.faults.append(f"{key} was not cancelled")
        finally:
            calling.cancel()
            await asyncio.wait([calling])


async def _noted(tally: Tally, word: str, key: str) -> int | None:
    """Return the process that wrote a line into the ledger; None when none did for long."""
    for _ in range(75):
        for told, whose, process in tally.ledger():
            if (told, whose) == (word, key):
                return int(process)
        await asyncio.sleep(_ASK_AGAIN)
    return None
