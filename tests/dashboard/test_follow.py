"""What browsers are told while a run goes on: over real HTTP, with the run noted and recorded as a run does it."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.base.locks import register_run, run_lock
from mcpfactory_pipeline.base.text import escape_invisible
from mcpfactory_pipeline.dashboard.live_updates import (
    LogTail,
    PageSnapshot,
    PageSubscriptions,
    StreamPosition,
    events_since,
    read_log_tail,
)
from mcpfactory_pipeline.dashboard.workspace_files import strip_terminal_codes
from tests.dashboard.conftest import WorkspaceBuilder
from tests.timeouts import TIMEOUT


class Told(NamedTuple):
    """One event as a browser has it."""

    event: str
    data: str
    id: str


class Stream:
    """A browser that follows; `read` waits for the next event, and gives None at the end."""

    def __init__(self, address: str, path: str, last: str = "", cookie: str = "") -> None:
        self._connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=TIMEOUT)
        sent = {"Last-Event-ID": last, "Cookie": cookie}
        self._connection.request("GET", path, headers={name: value for name, value in sent.items() if value})
        self.answer = self._connection.getresponse()

    def read(self) -> Told | None:
        fields: dict[str, list[str]] = {}
        while line := self.answer.readline().decode():
            if line == "\n" and "event" in fields:
                return Told(fields["event"][0], "\n".join(fields["data"]), fields["id"][0])
            name, _, value = line.rstrip("\n").partition(": ")
            fields.setdefault(name, []).append(value)
        return None

    def until(self, event: str) -> Told:
        while (told := self.read()) is not None:
            if told.event == event:
                return told
        raise AssertionError(f"the stream ended without {event}")

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.answer.close()
        self._connection.close()


@pytest.fixture
def followed() -> Iterator[ExitStack]:
    """Streams that end with the test."""
    with ExitStack() as stack:
        yield stack


@contextmanager
def going(builder: WorkspaceBuilder, run: str, server: str, stage: str) -> Iterator[Any]:
    """A run in which a stage is at work; gives the open log of the stage."""
    log = builder.workspace.artifacts / server / "logs" / f"{stage}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    locks = builder.store.locks
    with (
        register_run(locks, run),
        run_lock(locks, server, run, waiting=print, stopped=lambda: False) as announce,
        log.open("w", buffering=1) as stream,
    ):
        announce(builder.starts(server, run, stage))
        yield stream


def test_a_run_is_followed_to_its_end_steps_and_log_lines_as_they_come(
    four_servers: WorkspaceBuilder, address: str, followed: ExitStack
) -> None:
    run = new_id()
    with going(four_servers, run, "weather", "test") as log:
        stream = followed.enter_context(Stream(address, f"/live/runs/{run}/weather/"))
        assert stream.answer.headers["content-type"].startswith("text/event-stream")
        assert "running" in stream.until("state").data
        log.write("first line\n")
        told = json.loads(stream.until("log").data)
        while not told["text"]:  # an empty log is told, too
            told = json.loads(stream.until("log").data)
        assert told == {"step": "weather/test/1", "text": "first line\n", "fresh": False}
        log.write("second <line>\nand a half")
        assert json.loads(stream.until("log").data)["text"] == "second <line>\n"
        four_servers.finished("weather", "test", "failed", run=run, message="2 tests failed")
    while "2 tests failed" not in stream.until("state").data:  # it is told now and then how long it takes
        pass
    assert stream.until("end").id.partition(";")[2] == ""
    assert stream.read() is None


def test_a_browser_that_comes_back_is_told_only_what_it_missed(four_servers: WorkspaceBuilder, address: str) -> None:
    run = new_id()
    with going(four_servers, run, "weather", "test") as log:
        log.write("one\n")
        with Stream(address, f"/live/runs/{run}/") as stream:
            last = stream.until("log").id
        log.write("two\n")
        with Stream(address, f"/live/runs/{run}/", last) as again:
            told = again.until("log")
        assert json.loads(told.data) == {"step": "weather/test/1", "text": "two\n", "fresh": False}


def test_the_page_of_a_run_that_goes_on_shows_what_its_step_prints_without_javascript(
    four_servers: WorkspaceBuilder, address: str
) -> None:
    run = new_id()
    with going(four_servers, run, "weather", "test") as log:
        log.write("what it <b>prints</b>\n")
        page = _get(address, f"/runs/{run}/")
        assert "what it &lt;b&gt;prints&lt;/b&gt;" in page
        assert f'data-source="../../live/runs/{run}/"' in page
    assert "data-source" not in _get(address, f"/runs/{run}/")


def test_what_a_step_prints_has_no_command_of_a_terminal(
    four_servers: WorkspaceBuilder, address: str, followed: ExitStack
) -> None:
    run = new_id()
    with going(four_servers, run, "weather", "test") as log:
        log.write("\x1b[32mgreen\x1b[0m <b>plain\x1b[2K\n")
        for path in (f"/runs/{run}/", f"/runs/{run}/weather/"):
            assert "green &lt;b&gt;plain\n" in _get(address, path)
        stream = followed.enter_context(Stream(address, f"/live/runs/{run}/"))
        assert json.loads(stream.until("log").data)["text"] == "green <b>plain\n"


def test_a_run_that_goes_on_has_taken_until_now_and_says_so_again_and_again(
    four_servers: WorkspaceBuilder, address: str, followed: ExitStack
) -> None:
    run = new_id()
    with going(four_servers, run, "weather", "test"):
        stream = followed.enter_context(Stream(address, f"/live/runs/{run}/"))
        first, second = stream.until("state").data, stream.until("state").data  # no file has changed between
        for state in (first, second, _get(address, f"/runs/{run}/")):
            assert re.search(r"</code> · [\d.]+ s so far", state)
            assert re.search(r'<td class="number">[\d.]+ s so far</td>', state)
            assert re.search(r"running, [\d.]+ s so far</title>", state)
        assert _seconds(second) >= _seconds(first) + 1.5
        four_servers.finished("weather", "test", "passed", run=run)
    assert "so far" not in _get(address, f"/runs/{run}/")


def _seconds(state: str) -> float:
    found = re.search(r"</code> · ([\d.]+) s so far", state)
    assert found is not None
    return float(found[1])


def test_the_board_is_told_when_a_server_changes(four_servers: WorkspaceBuilder, address: str) -> None:
    page = _get(address, "/board/")
    source = page.split('data-source="', 1)[1].split('"', 1)[0].removeprefix("..")
    with Stream(address, source) as stream:
        four_servers.finished("weather", "generate", "passed")
        assert stream.until("state")
    assert ">stale<" not in _get(address, "/board/?q=weather").split("<tbody>", 1)[1]


@pytest.mark.anyio
async def test_fifty_who_follow_one_thing_cost_one_look_at_a_time_and_all_are_told() -> None:
    looks = 0

    def look() -> PageSnapshot | None:
        nonlocal looks
        looks += 1
        return PageSnapshot(str(min(looks, 3)), over=looks >= 3)

    followers = PageSubscriptions()

    async def follow() -> bytes:
        return b"".join([sent async for sent in await followers.join("run", lambda: look, "")])

    told = await asyncio.gather(*(follow() for _ in range(50)))
    assert looks == 3
    assert all(b"data: 3\n" in one and b"event: end" in one for one in told)


@given(st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=8)), max_size=8), st.integers(0, 8))
def test_whoever_applies_the_news_from_any_position_has_the_log(writes: list[tuple[int, bytes]], listened: int) -> None:
    """A reader who is told at some moments only has, at the end, the last bytes of each log."""
    logs: dict[str, bytes] = {}
    had: dict[str, str] = {}
    position = StreamPosition()
    for number, (step, more) in enumerate(writes):
        name = f"s/{step}@,;/1"
        logs[name] = logs.get(name, b"") + more.replace(b"\n", b"").replace(b"\r", b"") + b"\n"
        now = PageSnapshot("x", tuple(LogTail(key, 0, text) for key, text in logs.items()))
        if number < listened or number == len(writes) - 1:
            sent, position = events_since(StreamPosition.read(str(position)), now)
            for event in sent.decode().split("\n\n"):
                if event.startswith("event: log"):
                    told = json.loads(event.split("\n")[1].removeprefix("data: "))
                    had[told["step"]] = told["text"] if told["fresh"] else had[told["step"]] + told["text"]
    assert had == {name: escape_invisible(strip_terminal_codes(text)) for name, text in logs.items()}


def test_the_tail_of_a_log_is_whole_lines_of_its_end(tmp_path: Any) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"".join(b"%05d %s\n" % (number, b"x" * 60) for number in range(1000)) + b"half")
    tail = read_log_tail("s", file)
    assert tail.end == 1000 * 67
    assert len(tail.text) <= 12_000
    assert tail.text.startswith(b"0")
    assert tail.text.endswith(b"x\n")
    assert file.read_bytes()[tail.start : tail.end] == tail.text
    assert read_log_tail("s", tmp_path / "none.log").end == 0


def _get(address: str, path: str) -> str:
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=TIMEOUT)
    connection.request("GET", path, headers={"Accept": "text/html"})
    text = connection.getresponse().read().decode()
    connection.close()
    return text
