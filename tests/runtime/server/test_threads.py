"""`def` handlers in worker threads: together, cancelled, failing, over several event loops; and inline ones."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
from typing import Any

import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.server import threads
from mcpfactory_runtime.server.threads import MOST, busy, in_thread
from mcpfactory_runtime.testing import connect

pytestmark = pytest.mark.anyio
PATIENCE = 30.0


def test_as_many_handlers_as_may_run_at_a_time_do_although_each_waits_for_the_others() -> None:
    barrier = threading.Barrier(MOST, timeout=PATIENCE)

    async def meet() -> set[int]:
        await asyncio.gather(*(in_thread(barrier.wait, {}) for _ in range(MOST)))
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


def test_a_call_that_is_cancelled_before_it_begins_never_does() -> None:
    release, ran = threading.Event(), []

    async def call() -> None:
        holding = [in_thread(release.wait, {"timeout": PATIENCE}) for _ in range(MOST)]
        late = in_thread(lambda: ran.append("late"), {})
        last = in_thread(lambda: ran.append("last"), {})
        late.cancel()
        release.set()
        await asyncio.gather(*holding, last)

    asyncio.run(call())
    assert ran == ["last"]


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
    _give_threads(monkeypatch, refusals=MOST + 1, given=1)
    ran = []

    async def call() -> int:
        for _ in range(MOST + 1):
            with pytest.raises(RuntimeError, match="start new thread"):
                in_thread(lambda: ran.append("refused"), {})
            assert not busy()
        return await in_thread(lambda: 3, {})

    assert asyncio.run(call()) == 3
    assert ran == []


def test_where_no_further_thread_can_be_started_those_that_run_do_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    refused, problems = _give_threads(monkeypatch, refusals=0, given=1), []

    async def call() -> list[Any]:
        asyncio.get_running_loop().set_exception_handler(lambda _, problem: problems.append(problem))
        calls = [in_thread(refused.wait, {"timeout": PATIENCE}) for _ in range(5)]
        return await asyncio.gather(*calls)

    assert asyncio.run(call()) == [True] * 5
    assert problems == []


@pytest.mark.parametrize(
    ("raised", "seen"),
    [
        (ValueError("no"), ValueError),
        (StopIteration(3), RuntimeError),
        (asyncio.CancelledError(), asyncio.CancelledError),
    ],
)
def test_what_a_handler_raises_arrives(raised: BaseException, seen: type[BaseException]) -> None:
    def fail() -> None:
        raise raised

    async def call() -> None:
        await in_thread(fail, {})

    with pytest.raises(seen):
        asyncio.run(call())


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


def test_two_event_loops_get_their_own_results() -> None:
    together = threading.Barrier(2, timeout=PATIENCE)
    results: dict[str, list[str]] = {}

    def serve(name: str) -> None:
        async def call() -> list[str]:
            await in_thread(together.wait, {})
            return await asyncio.gather(*(in_thread(lambda n: f"{name}{n}", {"n": n}) for n in range(100)))

        results[name] = asyncio.run(call())

    threads = [threading.Thread(target=serve, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {name: [f"{name}{n}" for n in range(100)] for name in "ab"}


def test_a_result_for_an_event_loop_that_has_ended_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    release, failed = threading.Event(), []
    monkeypatch.setattr(threading, "excepthook", failed.append)

    async def leave() -> None:
        in_thread(release.wait, {"timeout": PATIENCE})

    async def after() -> Any:
        return await in_thread(lambda: "next", {})

    asyncio.run(leave())
    release.set()
    assert asyncio.run(after()) == "next"
    assert failed == []


def test_a_forked_process_has_threads_of_its_own() -> None:
    script = """
import asyncio, os
from mcpfactory_runtime.server.threads import in_thread
async def call(): return await in_thread(os.getpid, {})
asyncio.run(call())
child = os.fork()
if not child:
    os._exit(0 if asyncio.run(call()) == os.getpid() else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=PATIENCE, check=False).returncode == 0


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


def test_inline_is_refused_for_an_async_function() -> None:
    server = Server("threads", version="1")
    with pytest.raises(TypeError, match="hint: `async def` runs on the event loop anyway"):

        @server.tool(inline=True)
        async def wrong() -> None: ...
