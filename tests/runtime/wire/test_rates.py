"""How often one client may call and be told, on a clock that only the tests move."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.protocol.connection import META_LOG_LEVEL
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, RATE_LIMITED
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, R2025_11_25, REVISIONS, Revision
from mcpfactory_runtime.server.rates import Rates
from tests.runtime.requirements import requirement
from tests.runtime.wire.raw_client import Json, Speaker, notification, request, speak, web
from tests.subtest_table import parametrize_subtests

pytestmark = pytest.mark.anyio

COMPLETING = pytest.mark.parametrize("revision", list(REVISIONS.values())[1:], ids=str)
TOLD: Json = {"progressToken": "p", META_LOG_LEVEL: "debug"}


class Clock:
    """Stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def limited(clock: Clock, **rates: str | None) -> Server:
    server = Server("limited", rates=Rates(rates, clock))

    @server.tool
    async def add(a: int = 1) -> int:
        """Add one."""
        return a + 1

    @server.tool
    async def chatter(ctx: Context) -> str:
        """Say a lot, and tell how far it is each time; five of them in a second."""
        for number in range(1, 11):
            await ctx.info(number)
            await ctx.report_progress(number, 10)
            clock.now += 0.2
        return "done"

    @server.tool
    async def stuck(ctx: Context) -> str:
        """Report more than may be told, and never come to an end."""
        for number in range(1, 6):
            await ctx.report_progress(number)
        await ctx.info("stuck")
        await asyncio.Event().wait()
        return "never"

    @server.prompt
    async def greet(name: str) -> str:
        """Greet."""
        return name

    @server.completion
    async def complete(ref: Any) -> list[str]:
        return [ref.name]

    return server


async def runs_dry(ask: Callable[[], Awaitable[Json]], clock: Clock, kind: str) -> None:
    """At 2/s two may come at once; then the error says when to come back, and keeps its word."""
    for _ in range(2):
        assert "result" in await ask()
    error = (await ask())["error"]
    assert (error["code"], error["data"]) == (RATE_LIMITED, {"retryAfterMs": 500, "limit": kind})
    clock.now += 0.25
    error = (await ask())["error"]
    assert error["data"]["retryAfterMs"] == 250
    clock.now += 0.25
    assert "result" in await ask()
    assert (await ask())["error"]["code"] == RATE_LIMITED
    clock.now += 3600
    for _ in range(2):  # an hour of silence does not make more of it
        assert "result" in await ask()
    assert (await ask())["error"]["code"] == RATE_LIMITED


@requirement("tools.rate-limit")
async def test_calls_beyond_the_rate_are_refused_until_the_time_that_the_error_tells(revision: Revision) -> None:
    clock = Clock()
    async with speak(limited(clock, calls="2/s"), revision) as client:
        await runs_dry(lambda: client.ask("tools/call", {"name": "add"}), clock, "calls")
        assert "result" in await client.ask("tools/list")


@requirement("completion.rate-limit")
@COMPLETING
async def test_completions_have_a_rate_of_their_own(revision: Revision) -> None:
    clock = Clock()
    typed = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}}
    async with speak(limited(clock, completions="2/s"), revision) as client:
        await runs_dry(lambda: client.ask("completion/complete", typed), clock, "completions")
        assert (await client.call("add"))["content"][0]["text"] == "2"


@requirement("task-core.rate-limit")
async def test_asking_for_tasks_has_a_rate_of_its_own() -> None:
    clock = Clock()
    server = limited(clock, tasks="2/s")

    @server.tool(task="optional")
    async def slow() -> str:
        """Take long."""
        return "done"

    async with speak(server, R2025_11_25) as client:
        await runs_dry(lambda: client.ask("tasks/list"), clock, "tasks")


@requirement("logging.rate-limit")
async def test_log_messages_beyond_the_rate_are_dropped(revision: Revision) -> None:
    async with speak(limited(Clock(), logs="2/s"), revision) as client:
        await client.call("chatter", meta={META_LOG_LEVEL: "debug"})
    # two at once, and two in each of the two seconds that it takes
    assert [message["params"]["data"] for message in client.heard] == [1, 2, 4, 6, 9]


@requirement("progress.rate-limit")
async def test_of_progress_beyond_the_rate_the_newest_is_told_and_the_last_always(revision: Revision) -> None:
    async with speak(limited(Clock(), logs=None, progress="2/s"), revision) as client:
        await client.call("chatter", meta={"progressToken": "p"})
    reports = [message for message in client.heard if message["method"] == "notifications/progress"]
    assert [report["params"]["progress"] for report in reports] == [1, 2, 4, 6, 9, 10]


@requirement("progress.rate-limit")
async def test_of_a_cancelled_request_no_progress_is_told_any_more() -> None:
    async with speak(limited(Clock(), progress="2/s"), LATEST_LEGACY) as client:
        message = client.make("tools/call", {"name": "stuck"}, TOLD)
        await client.say(message)
        await client.until("notifications/message")
        client.heard.clear()
        await client.say(notification("notifications/cancelled", {"requestId": message["id"]}))
        await client.stream.session.wait_idle()
        assert await client.silence() == []


async def calls_until_refused(ask: Callable[[], Awaitable[Json]]) -> int:
    """How many calls are answered."""
    count = 0
    while "result" in await ask():
        count += 1
    return count


async def test_each_session_has_its_own_allowance() -> None:
    async with web(limited(Clock(), calls="3/h")) as served:
        for _ in range(2):
            session = await served.begin(LATEST_LEGACY)

            async def ask(session: str = session) -> Json:
                reply = await served.post(request("tools/call", {"name": "add"}), mcp_session_id=session)
                assert reply.status == 200
                return (await reply.messages())[-1]  # type: ignore[no-any-return] # - JSON

            assert await calls_until_refused(ask) == 3


async def test_each_address_has_its_own_allowance_where_there_is_no_session() -> None:
    async with web(limited(Clock(), calls="3/h")) as served:

        async def ask() -> Json:
            reply = await served.ask(LATEST, "tools/call", {"name": "add"})
            assert reply.status == 200
            return await reply.json()  # type: ignore[no-any-return] # - JSON

        for served.address in ("127.0.0.1", "10.0.0.2", "::1"):
            assert await calls_until_refused(ask) == 3
        served.address = "127.0.0.1"
        assert await calls_until_refused(ask) == 0


@parametrize_subtests(
    "rates, hint",
    [
        ({"cals": "1/s"}, "calls, completions"),
        *(({"calls": rate}, "600/m") for rate in ("", "1", "0/s", "-1/s", "1.5/s", "1/d", "1/ s", "³/s", "x/s")),
    ],
)
def test_what_is_no_rate_is_refused_with_a_hint(rates: dict[str, str], hint: str) -> None:
    with pytest.raises(ValueError, match=rf"hint: .*{hint}"):
        Server("wrong", rates=rates).rates  # noqa: B018 - read when it is first needed
    told = ",".join(f"{kind}={rate}" for kind, rate in rates.items())
    with pytest.raises(ValueError, match=rf"MCPFACTORY_RATES: [^\n]*\nhint: .*{hint}"):
        Rates().replace(told)


async def test_the_operator_replaces_rates_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPFACTORY_RATES", "logs=off, calls=1/h,")
    async with speak(limited(Clock(), calls="5/h", completions="7/h"), LATEST) as client:
        assert await calls_until_refused(lambda: client.ask("tools/call", {"name": "add"})) == 1
        allowance = client.stream.session.allowance
    assert allowance.logs is None
    assert allowance.completions is not None
    assert sum(allowance.completions.take() for _ in range(10)) == 7


# -- questions have a time, and requests without a session a number ---------------------------------------------------


def asking(**options: Any) -> Server:
    server = Server("asking", **options)

    @server.tool
    async def ask(ctx: Context) -> str:
        """Ask which places there are."""
        return str(await ctx.roots())

    return server


async def unanswered(client: Speaker) -> tuple[Json, Json, Json]:
    """A question, what withdraws it, and the answer to the call."""
    message = client.make("tools/call", {"name": "ask"})
    await client.say(message)
    question = await client.until("roots/list")
    withdrawn = await client.until("notifications/cancelled")
    return question, withdrawn, await client.answer(message["id"])


@requirement("initialize.request-timeouts")
@pytest.mark.parametrize("revision", [one for one in REVISIONS.values() if not one.modern], ids=str)
async def test_a_question_that_nobody_answers_in_time_is_withdrawn(revision: Revision) -> None:
    async with speak(asking(question_timeout=0), revision, roots={}) as client:
        question, withdrawn, answer = await unanswered(client)
        assert withdrawn["params"]["requestId"] == question["id"]
        assert answer["error"]["code"] == INTERNAL_ERROR
        assert "roots/list within 0 seconds" in answer["error"]["message"]
        await client.say({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})  # too late, and harmless
        assert await client.silence() == []


@requirement("initialize.request-timeouts")
async def test_a_question_waits_for_an_hour_unless_told_otherwise() -> None:
    assert Server("default").question_timeout == 3600
    for limit in (3600, None):
        async with speak(asking(question_timeout=limit), LATEST_LEGACY, roots={}) as client:
            message = client.make("tools/call", {"name": "ask"})
            await client.say(message)
            question = await client.until("roots/list")
            await client.say({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
            assert (await client.answer(message["id"]))["result"]["structuredContent"] == {"result": "[]"}
