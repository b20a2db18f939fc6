"""What is read of a server's answer over HTTP ends in time, whatever the server sends."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain, repeat
from urllib.parse import urlsplit

import pytest

from mcpfactory_pipeline.checks.evidence import ConcurrentRequests, Evidence, HttpProbeAnswer, Listing
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.checks.transport import http_probes
from mcpfactory_pipeline.checks.transport.authorization_probes import corrupt_credentials, probe_authorization
from mcpfactory_pipeline.checks.transport.http import connected
from mcpfactory_pipeline.checks.transport.http_probes import HttpProbe, HttpProbeSender, _body, _events, probe_http
from tests.subtest_table import parametrize_subtests


class Trickle:
    """A response that has more and more."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def read1(self, _: int) -> bytes:
        return next(self._pieces, b"")


ANSWER = b'data: {"result": 1}\n'


def test_of_a_stream_of_keepalives_a_bounded_part_is_read() -> None:
    assert _events(Trickle(repeat(b": still here\n" * 10_000)))[0] == b""  # type: ignore[arg-type]
    assert _events(Trickle(iter([ANSWER[:-1]])))[0] == ANSWER[5:-1]  # type: ignore[arg-type]  # the end of the stream ends the line
    assert _events(Trickle(chain([b": one\nda"], [ANSWER[2:] + b"\ndata: more"])))[0] == ANSWER[5:-1]  # type: ignore[arg-type]


def test_the_data_of_an_event_may_have_several_lines() -> None:
    event = b': hello\r\n\r\nretry: 3000\r\n\r\nid: 1\r\ndata:{\r\ndata: "result": 1\r\ndata:}\r\n\r\n'
    text, stream = _events(Trickle(iter([event[:40], event[40:]])))  # type: ignore[arg-type]
    assert json.loads(text) == {"result": 1}
    assert stream.ids


def test_if_a_stream_has_no_answer_the_first_event_is_read() -> None:
    assert json.loads(_events(Trickle(iter([b'data: {"ok": true}\n\ndata: 2\n\n'])))[0]) == {"ok": True}  # type: ignore[arg-type]


@contextmanager
def dripping(head: bytes) -> Iterator[str]:
    """A server that sends a byte now and then behind `head`, without end: each byte starts the limit of a socket anew."""
    left = threading.Event()

    def drip(peer: socket.socket) -> None:
        with peer:
            try:
                peer.sendall(head)
                while not left.wait(0.01):
                    peer.sendall(b"x")
            except OSError:
                pass

    def serve(listener: socket.socket) -> None:
        while not left.is_set():
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=drip, args=(peer,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            left.set()


LINE = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize("head", [b"", LINE + b"X-Zoo: ", LINE + b"Content-Length: 1000000\r\n\r\n"])
def test_a_server_that_drips_is_left_in_time_before_and_in_its_headers_and_in_its_body(head: bytes) -> None:
    with dripping(head) as url, connected(urlsplit(url), 0.1) as connection:
        connection.request("GET", "/mcp")
        with suppress(OSError, http.client.HTTPException):
            _body(connection.getresponse())


def test_of_a_server_that_never_answers_three_questions_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def refuse(url: object, seconds: float) -> object:
        asked.append((url, seconds))
        raise TimeoutError

    monkeypatch.setattr(http_probes, "connected", refuse)
    assert probe_http("http://127.0.0.1:1/mcp", frozenset({"modern"}), "9999-12-31", lambda: 1.0) == {}
    assert len(asked) == 3


def test_after_the_time_limit_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(http_probes, "connected")
    assert probe_http("http://127.0.0.1:1/mcp", frozenset({"legacy", "modern"}), "9999-12-31", lambda: 0.0) == {}


@parametrize_subtests("missing", [{}, {"http": "the time limit was reached"}])
def test_a_probe_that_was_not_sent_in_time_is_not_checked(missing: dict[str, str]) -> None:
    rule = next(rule for rule in RULES if rule.id == "http.deleted-session")
    evidence = Evidence(transport="http", lifecycles={"legacy"}, http={"begin": answer("begin", 200)}, missing=missing)
    assert rule.check(evidence).unknown == missing.get("http", "")


def answer(probe: str, status: int, url: str = "", **message: object) -> HttpProbeAnswer:
    kind = {"content-type": "application/json"}
    return HttpProbeAnswer(probe, "a request", "POST", {}, {}, status, kind, message, bool(message), url=url)


def weights(name: str, evidence: Evidence) -> list[int]:
    """The severities of the findings of one rule."""
    rule = next(rule for rule in RULES if rule.id == name)
    return [fault.lesser or rule.severity for fault in rule.check(evidence).faults]


@parametrize_subtests("seen, found", [(answer("", 400), []), (answer("", 500), [3]), (answer("", 200, a=1), [3])])
def test_a_server_may_refuse_to_cancel_what_nobody_asked(seen: HttpProbeAnswer, found: list[int]) -> None:
    http = {"notify-canceled": replace(seen, probe="notify-canceled")}
    evidence = Evidence(transport="http", lifecycles={"legacy"}, http=http)
    assert weights("http.notification-status", evidence) == found


@parametrize_subtests("seen, found", [(answer("", 202), []), (answer("", 200), [1]), (answer("", 200, a=1), [3])])
def test_a_notification_is_accepted(seen: HttpProbeAnswer, found: list[int]) -> None:
    evidence = Evidence(transport="http", lifecycles={"legacy"}, http={"notify": replace(seen, probe="notify")})
    assert weights("http.notification-status", evidence) == found


@parametrize_subtests("status, found", [(401, []), (403, [1]), (500, [1]), (200, [5])])
def test_an_invalid_token_is_refused_with_401(status: int, found: list[int]) -> None:
    seen = {"token-1": answer("token-1", status)}
    assert weights("authorization.token", Evidence(transport="http", authorization=seen)) == found


@parametrize_subtests(
    "challenge, of_challenge, of_metadata",
    [
        ('Bearer resource_metadata="https://zoo.example/metadata"', [], [3]),
        ("Bearer", [], [2]),
        ("", [3], [2]),
        ("Basic", [2], []),  # other credentials, which have no such metadata
    ],
)
def test_missing_metadata_weighs_more_if_the_server_names_it(
    challenge: str, of_challenge: list[int], of_metadata: list[int]
) -> None:
    refused = replace(answer("no-credentials", 401), headers={"www-authenticate": challenge})
    seen = {"no-credentials": refused, "metadata": answer("metadata", 404)}
    evidence = Evidence(transport="http", authorization=seen)
    assert weights("authorization.challenge", evidence) == of_challenge
    assert weights("authorization.metadata", evidence) == of_metadata


@parametrize_subtests(
    "challenge, requested",
    [
        ('Bearer resource_metadata="https://other.example/metadata"', []),
        ('Bearer resource_metadata="https://zoo.example/metadata"', ["/metadata"]),
        ("Bearer", ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]),
    ],
)
def test_metadata_is_requested_from_the_origin_of_the_server_only(
    monkeypatch: pytest.MonkeyPatch, challenge: str, requested: list[str]
) -> None:
    asked: list[str] = []

    def refuse(asker: HttpProbeSender, probe: HttpProbe) -> HttpProbeAnswer:
        asked.extend([probe.place(asker)] if probe.verb == "GET" else [])
        seen = answer(probe.name, 404 if probe.verb == "GET" else 401)
        return replace(seen, headers={"www-authenticate": challenge})

    monkeypatch.setattr(HttpProbeSender, "_ask", refuse)
    probe_authorization("https://zoo.example/mcp", {}, (), "9999-12-31", lambda: 1.0)
    assert asked == [f"https://zoo.example{path}" for path in requested]


@parametrize_subtests("value, changed", [("Bearer 0123456789", "Bearer 01AAAAAAAA"), ("Bearer ABA", "Bearer BAB")])
def test_altered_credentials_keep_their_scheme_and_length(value: str, changed: str) -> None:
    assert corrupt_credentials(value) == changed


@parametrize_subtests(
    "resource, url, found",
    [
        ("https://zoo.example", "https://zoo.example/mcp", []),  # a parent
        ("https://zoo.example/m", "https://zoo.example/mcp", [3]),
        ("https://zoo.example/mcp", "https://zoo.example:443/mcp", []),  # the default port
        ("https://zoo.example/mcp", "http://127.0.0.1:8000/mcp", [2]),  # where it is deployed
        ("https://zoo.example/mcp", "https://other.example/mcp", [3]),
        ("https://zoo.example/other", "http://127.0.0.1:8000/mcp", [3]),
        ("http://localhost:99999", "http://127.0.0.1:8000/mcp", [3]),
    ],
)
def test_metadata_is_about_the_server_or_about_another(resource: str, url: str, found: list[int]) -> None:
    served = answer("metadata", 200, authorization_servers=["https://login.example"], resource=resource)
    seen = {"no-credentials": answer("no-credentials", 401, url), "metadata": served}
    assert weights("authorization.metadata", Evidence(transport="http", authorization=seen)) == found


@parametrize_subtests(
    "first, other, chosen, found",
    [
        ("3f1c07a9be52", "a07d55e1c4f0", "77b29e0d13ca", []),
        ("3f1c07a9", "a07d55e1", "77b29e0d", [3]),  # short, which is one finding
        ("session-of-the-zoo-9", "session-of-the-zoo-10", "3f1c07a9be52", [3]),  # counted
        ("3f1c07a9be52", "3f1c07a9be52", "a07d55e1c4f0", [3]),
        ("3f1c07a9be52", "a07d55e1c4f0", "mine", [3]),  # the client's choice
    ],
)
def test_session_ids_that_can_be_guessed_or_chosen(first: str, other: str, chosen: str, found: list[int]) -> None:
    ids = {"begin": first, "begin-other": other, "begin-chosen": chosen}
    http = {name: replace(answer(name, 200), headers={"mcp-session-id": one}) for name, one in ids.items()}
    http["begin-chosen"] = replace(http["begin-chosen"], sent_headers={"Mcp-Session-Id": "mine"})
    assert weights("http.session-guess", Evidence(transport="http", lifecycles={"legacy"}, http=http)) == found


def call(shown: str | None, **arguments: str) -> WireExchange:
    """A call of a tool, answered with a text, or with nothing."""
    sent = {"method": "tools/call", "params": {"name": "echo", "arguments": arguments}}
    if shown is None:
        return WireExchange(sent, problem="no answer within 5 s")
    return WireExchange(sent, {"result": {"content": [{"type": "text", "text": shown}]}})


@parametrize_subtests(
    "together, again, found",
    [
        (("owl", "emu"), (), []),
        (("emu", "owl"), ("owl", "emu"), [5, 5]),
        (("emu", "owl"), ("emu", "owl"), []),  # the results change without another client
        (("owl", None), ("owl", "emu"), [5]),
        (("owl", None), ("owl", None), []),
    ],
)
def test_each_client_gets_its_own_answer(
    together: tuple[str | None, ...], again: tuple[str | None, ...], found: list[int]
) -> None:
    pair = ConcurrentRequests(*(tuple(map(call, texts)) for texts in (("owl", "emu"), together, again)))
    assert weights("http.request-ids", Evidence(concurrent=[pair])) == found


@parametrize_subtests(
    "sent, second, tools, found",
    [
        ("Ada Lovelace", call("Ada Lovelace was here"), (), [3]),
        ("Ada", call("Ada was here"), (), []),  # a short text may occur by chance
        ("Ada Lovelace", call("Ada Lovelace", name="Ada Lovelace"), (), []),
        ("Ada Lovelace", call("Ada Lovelace was here"), ({"name": "guests", "title": "of Ada Lovelace"},), []),
    ],
)
def test_a_client_does_not_see_what_another_sent(
    sent: str, second: WireExchange, tools: tuple[dict[str, str], ...], found: list[int]
) -> None:
    evidence = Evidence(first_client=[call("", name=sent)], second_client=[second])
    evidence.lists["tools/list"] = Listing("tools/list", tools)
    assert weights("http.client-data", evidence) == found


@parametrize_subtests(
    "origin, rebound, found",
    [
        (403, 403, []),
        (421, 421, [1]),  # refused with another status
        (200, 200, [5]),  # any page may call it
        (200, None, [5]),
        (200, 421, [3]),  # Host is looked at: DNS rebinding does not get there
    ],
)
def test_a_foreign_origin_weighs_less_where_a_foreign_host_is_refused(
    origin: int, rebound: int | None, found: list[int]
) -> None:
    seen = {"origin": answer("origin", origin)}
    seen |= {} if rebound is None else {"dns-rebinding": answer("dns-rebinding", rebound)}
    assert weights("http.origin", Evidence(transport="http", lifecycles={"legacy"}, http=seen)) == found
