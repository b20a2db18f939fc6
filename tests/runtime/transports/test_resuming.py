"""Streams and sessions that are taken up again: after a disconnect, and after the death of the process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR
from mcpfactory_runtime.revisions import LATEST_LEGACY, R2025_03_26, R2025_06_18
from tests.runtime.requirements import requirement
from tests.runtime.transports.blocking_http_server import Gate, Web, calling, serving
from tests.runtime.transports.conftest import hello, request
from tests.subtest_table import parametrize_subtests
from tests.timeouts import TIMEOUT

Event = dict[str, str]


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


def events(lines: Any, count: int | None = None) -> list[Event]:
    """The events of a response, or the first ones of a response that goes on."""
    found: list[Event] = []
    event: Event = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        else:
            found.append(event)
            event = {}
            if len(found) == count:
                break
    return found


def resume(web: Web, headers: dict[str, str], after: str) -> httpx.Response:
    return web.http.get("/mcp", headers={**headers, "last-event-id": after})


def texts(found: list[Event]) -> list[Any]:
    messages = [json.loads(event["data"]) for event in found if event.get("data")]
    return [message.get("params", {}).get("data") or message.get("result") or message["error"] for message in messages]


def speaking(gate: Gate, headers: dict[str, str], words: list[str]) -> dict[str, Any]:
    return calling("speak_and_hold", {"gate": gate.path, "words": words}, headers, 7)


def answer_of(found: list[Event]) -> str:
    return str(json.loads(found[-1]["data"])["result"]["content"][0]["text"])


@requirement("resume.replay", "resume.own-stream", "http.disconnect")
def test_a_client_that_left_gets_the_rest_of_that_stream_and_of_no_other(tmp_path: Path, gate: Gate) -> None:
    with serving(tmp_path) as web:
        headers = web.begin()
        with web.http.stream("POST", "/mcp", **speaking(gate, headers, ["one", "two"])) as stream:
            seen = events(stream.iter_lines(), 2)
            gate.wait()
        other = Gate(tmp_path / "other")
        with web.http.stream("POST", "/mcp", **speaking(other, headers, ["other"])) as stream:
            assert texts(events(stream.iter_lines(), 2)) == []  # refused: the same id is in flight
        gate.open("three")
        rest = events(resume(web, headers, seen[-1]["id"]).text.splitlines())
        assert texts(rest)[0] == "two"
        assert answer_of(rest) == "three"
        assert all(event["id"].rpartition("-")[0] == seen[-1]["id"].rpartition("-")[0] for event in rest)


@parametrize_subtests("after", ["x", "1-9999999999999999999999", "99-1"])
def test_ids_that_are_none_are_refused(tmp_path: Path, after: str) -> None:
    with serving(tmp_path) as web:
        headers = {**web.begin(), "last-event-id": after}
        assert web.http.get("/mcp", headers=headers).status_code == 400


@requirement("resume.durable")
@pytest.mark.parametrize("revision", [R2025_03_26, R2025_06_18, LATEST_LEGACY], ids=str)
def test_a_session_outlives_a_killed_process(tmp_path: Path, gate: Gate, database: str, revision: Any) -> None:
    with serving(tmp_path, MCPFACTORY_STORE=database) as web:
        answer = web.http.post("/mcp", json=hello(revision.name))
        headers = {"mcp-session-id": answer.headers["mcp-session-id"]}
        with web.http.stream("POST", "/mcp", **speaking(gate, headers, ["one", "two"])) as stream:
            lines = stream.iter_lines()
            seen = events(lines, 2)
            gate.wait()
            gate.open("three")
            seen += events(lines)
        assert answer_of(seen) == "three"
        web.process.kill()
        web.process.wait(TIMEOUT)
    with serving(tmp_path, MCPFACTORY_STORE=database) as again:
        rest = events(resume(again, headers, seen[0]["id"]).text.splitlines())
        assert rest == seen[1:]  # a finished response is replayed
        batch = again.http.post("/mcp", json=[request("ping")], headers=headers)
        assert batch.status_code == (200 if revision.batches else 400)  # it knows what was negotiated
        assert again.call("who", {}, headers).json()["result"]["content"][0]["text"] == str(again.process.pid)
        new = again.http.post("/mcp", **calling("change", {}, headers), timeout=TIMEOUT)
        assert new.status_code == 200


def test_a_request_that_died_with_the_process_is_answered_with_an_error(
    tmp_path: Path, gate: Gate, database: str
) -> None:
    with serving(tmp_path, MCPFACTORY_STORE=database) as web:
        headers = web.begin()
        with web.http.stream("POST", "/mcp", **speaking(gate, headers, ["one"])) as stream:
            seen = events(stream.iter_lines(), 2)
            gate.wait()
            web.process.kill()
            web.process.wait(TIMEOUT)
    with serving(tmp_path, MCPFACTORY_STORE=database) as again:
        rest = events(resume(again, headers, seen[-1]["id"]).text.splitlines())
        message = json.loads(rest[-1]["data"])
        assert (message["id"], message["error"]["code"]) == (7, INTERNAL_ERROR)
        assert len(rest) == 1


def test_an_ended_session_is_not_revived_and_a_strange_one_does_not_exist(tmp_path: Path, database: str) -> None:
    with serving(tmp_path, MCPFACTORY_STORE=database) as web:
        headers = web.begin()
        assert web.http.delete("/mcp", headers=headers).status_code == 200
        web.process.terminate()
        assert web.process.wait(TIMEOUT) == 0
    with serving(tmp_path, MCPFACTORY_STORE=database) as again:
        assert again.call("who", {}, headers).status_code == 404
        assert again.call("who", {}, {"mcp-session-id": "guessed"}).status_code == 404
