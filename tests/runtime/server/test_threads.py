"""`def` handlers in worker threads: together, cancelled, failing, over several event loops; and inline ones."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.server import threads
from mcpfactory_runtime.server.threads import MAX_THREADS, has_running_calls, in_thread
from mcpfactory_runtime.testing import connect

pytestmark = pytest.mark.anyio
PATIENCE = 30.0


def test_as_many_handlers_as_may_run_at_a_time_do_although_each_waits_for_the_others() -> None:
    barrier = threading.Barrier(MAX_THREADS, timeout=PATIENCE)

    async def meet() -> set[int]:
        await asyncio.gather(*(in_thread(barrier.wait, {}) for _ in range(MAX_THREADS)))
        return set(await asyncio.gather(*(in_thread(threading.get_ident, {}) for _ in range(3))))

    assert threading.get_ident() not in asyncio.run(meet())


def test_one_that_waits_lets_others_go_on() -> None:
    release = threading.Event()

    async def call() -> list[int]:
        slow = in_thread(release.wait, {"timeout": PATIENCE})
        quick = [await in_thread(lambda n: n, {"n": n}) for n in range(5)]
        release.set()
        assert await slow is True
        return quick

    assert asyncio.run(call()) == [0, 1, 2, 3, 4]


def _give_threads(monkeypatch: pytest.MonkeyPatch, *, refusals: int, given: int) -> threading.Event:
    """Let so many threads not start, then so many start, then none. Returns what is set at a refusal."""
    refused, start, left = threading.Event(), threading.Thread.start, [False] * refusals + [True] * given

    def start_or_refuse(thread: threading.Thread) -> None:
        if not left or not left.pop(0):
            refused.set()
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threads, "_workers", threads._Workers())
    monkeypatch.setattr(threading.Thread, "start", start_or_refuse)
    return refused


def test_calls_without_any_thread_fail_and_are_not_made_and_later_ones_are(monkeypatch: pytest.MonkeyPatch) -> None:
    _give_threads(monkeypatch, refusals=MAX_THREADS + 1, given=1)
    ran = []

    async def call() -> int:
        for _ in range(MAX_THREADS + 1):
            with pytest.raises(RuntimeError, match="start new thread"):
                in_thread(lambda: ran.append("refused"), {})
            assert not has_running_calls()
        return await in_thread(lambda: 3, {})

    assert asyncio.run(call()) == 3
    assert ran == []


def test_handlers_see_context_variables_and_keep_their_changes_to_themselves() -> None:
    variable = contextvars.ContextVar("variable", default="")

    def change() -> str:
        seen = variable.get()
        variable.set("theirs")
        return seen

    async def call() -> tuple[str, str]:
        variable.set("ours")
        return await in_thread(change, {}), variable.get()

    assert asyncio.run(call()) == ("ours", "ours")


# -- inline ----------------------------------------------------------------------------------------------------------


async def test_an_inline_tool_runs_on_the_event_loop_and_another_one_does_not() -> None:
    server = Server("threads", version="1")

    @server.tool(inline=True)
    def here() -> bool:
        return threading.get_ident() == loop_thread

    @server.tool
    def there() -> bool:
        return threading.get_ident() == loop_thread

    loop_thread = threading.get_ident()
    async with connect(server) as client:
        assert (await client.call_tool("here"))["structuredContent"]["result"] is True
        assert (await client.call_tool("there"))["structuredContent"]["result"] is False


async def test_handlers_that_wait_for_other_handlers_do_not_block_each_other() -> None:
    server = Server("waits")
    calls = MAX_THREADS + 5

    @server.tool
    def inner() -> str:
        return "done"

    @server.tool
    def outer(ctx: Context) -> str:
        answer: str = ctx.wait(ctx.call("inner"))["result"]
        return answer

    async with connect(server) as client:
        async with asyncio.timeout(PATIENCE):
            results = await asyncio.gather(*(client.call_tool("outer") for _ in range(calls)))
    assert all(result["content"][0]["text"] == "done" for result in results)
