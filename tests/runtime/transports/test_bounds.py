"""What waits for a client that does not read is bounded, on every transport; so is what one client may ask at once."""

from __future__ import annotations

import fcntl
import struct
import sys
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from mcpfactory_runtime.protocol.connection import MAX_IN_FLIGHT
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR
from tests.runtime.transports.blocking_http_server import GATED, Gate, Web, calling, most_memory, serving
from tests.runtime.transports.conftest import Process, hello, request
from tests.skip_conditions import needs
from tests.timeouts import TIMEOUT, wait_until

pytestmark = needs("linux")
MIB = 1 << 20
FLOOD = 600  # messages of 100 kB


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


@pytest.fixture
def gated() -> Iterator[Process]:
    server = Process(GATED)
    with server.process:
        server.ask(hello(elicitation={}))
        yield server
        server.process.kill()


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with serving(tmp_path) as running:
        yield running


# -- stdio -------------------------------------------------------------------------------------------------------


def test_log_messages_are_dropped_while_nobody_reads_and_the_answer_comes(gated: Process, gate: Gate) -> None:
    before = most_memory(gated.process.pid)
    flood = {"count": FLOOD, "size": 100_000, "gate": gate.path}
    gated.say(request("tools/call", {"name": "flood", "arguments": flood}, "flood"))
    gate.wait()  # the flood is over, and nothing was read
    assert most_memory(gated.process.pid) - before < 20 * MIB
    gate.open("over")
    heard = 0
    while (message := gated.hear()).get("id") != "flood":
        heard += 1
    assert message["result"]["structuredContent"] == {"result": "over"}
    assert 0 < heard < FLOOD / 10


def waits_with_input(server: Process) -> bool:
    """The process sleeps although there is something to read: it does not want it."""
    unread = struct.unpack("i", fcntl.ioctl(server.stdin, termios.FIONREAD, b"\0" * 4))[0]
    state = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return bool(state == "S" and unread)


def test_nothing_more_is_read_from_a_client_that_does_not_read(gated: Process) -> None:
    before = most_memory(gated.process.pid)
    calls = [request("tools/call", {"name": "large", "arguments": {"size": MIB}}, number) for number in range(200)]
    padding = b" " * 300_000 + b"\n"  # more than is read at once, so that calls do not come together

    def ask() -> None:
        for call in calls:
            gated.say(call, padding)

    writer = threading.Thread(target=ask)
    writer.start()
    wait_until(lambda: waits_with_input(gated) and most_memory(gated.process.pid) - before > 8 * MIB)
    assert most_memory(gated.process.pid) - before < 40 * MIB
    assert [gated.hear()["id"] for _ in calls] == list(range(200))
    writer.join(TIMEOUT)


def test_more_requests_at_once_than_allowed_are_refused_each(gated: Process) -> None:
    for number in range(MAX_IN_FLIGHT):
        gated.say(request("tools/call", {"name": "ask"}, number + 1))
        assert gated.hear()["method"] == "elicitation/create"
    answer = gated.ask(request("ping", id="one too many"))
    assert (answer["id"], answer["error"]["code"]) == ("one too many", INTERNAL_ERROR)
    gated.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    assert gated.ask(request("ping", id="again"))["result"] == {}


# -- HTTP --------------------------------------------------------------------------------------------------------


def test_a_stream_whose_client_does_not_read_is_ended_and_the_session_lives(web: Web) -> None:
    headers, name = web.begin(), "x" * 100_000
    subscribe = request("resources/subscribe", {"uri": f"count://{name}"})
    assert web.http.post("/mcp", json=subscribe, headers=headers).status_code == 200
    before = most_memory(web.process.pid)
    with web.http.stream("GET", "/mcp", headers=headers) as unread:
        assert web.call("touch", {"name": name, "times": FLOOD}, headers).json()["result"]
        assert most_memory(web.process.pid) - before < 80 * MIB
        with pytest.raises(httpx.RemoteProtocolError):
            unread.read()
    assert web.call("who", {}, headers).status_code == 200


def test_over_http_more_requests_of_a_session_than_allowed_are_refused_each(tmp_path: Path) -> None:
    program = (
        "import mcpfactory_runtime.protocol.connection as connection; connection.MAX_IN_FLIGHT = 1\n"
        "from tests.runtime.transports.blocking_server import server; server.run()"
    )
    with serving(tmp_path, command=[sys.executable, "-c", program]) as web:
        headers = web.begin(elicitation={})
        with web.http.stream("POST", "/mcp", **calling("ask", {}, headers)) as asking:
            assert any("elicitation/create" in line for line in asking.iter_lines())
            answer = web.http.post("/mcp", **calling("who", {}, headers, 2)).json()
            assert (answer["id"], answer["error"]["code"]) == (2, INTERNAL_ERROR)
            assert web.call("who", {}, web.begin()).json()["result"]  # other sessions are not concerned
