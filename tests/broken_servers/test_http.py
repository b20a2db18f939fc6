"""Servers at a URL, and URLs behind which there is no server at all."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from mcpfactory_pipeline.checks.exchange import CREDENTIALS, HANDSHAKES, MODERNS, ValidationTarget
from mcpfactory_pipeline.checks.report import ValidationReport
from mcpfactory_pipeline.checks.validation import validate
from tests.broken_servers.catalog import servers
from tests.broken_servers.healthy import Json, SampleServer
from tests.broken_servers.http_server import handler_of
from tests.loopback_server import LoopbackHandler, serving
from tests.timeouts import TIMEOUT

SERVERS = servers()


def kept(name: str) -> SampleServer:
    return SERVERS[name](list(HANDSHAKES), list(MODERNS))


def examined(url: str, *, timeout: float = TIMEOUT, headers: Mapping[str, str] | None = None) -> ValidationReport:
    return asyncio.run(validate(ValidationTarget(url=f"{url}/mcp", headers=headers or {}), timeout=timeout))


@pytest.mark.parametrize("events", [False, True], ids=["json", "events"])
@pytest.mark.parametrize("name", ["HealthyBase", "HealthyElder", "HealthyYoungster"])
def test_healthy_servers_at_a_url_get_no_finding(name: str, events: bool) -> None:
    with serving(handler_of(kept(name), events=events)) as url:
        report = examined(url)
    assert report.findings == (), report.to_text()
    assert report.not_checked == ()
    assert (report.score, report.passed) == (100, True)
    assert {"process.stdout", "process.exits-on-eof", "security.secret-exposure"} <= set(report.not_applicable)


def test_a_healthy_server_behind_a_redirect_of_its_own_origin_gets_no_finding() -> None:
    with serving(handler_of(kept("HealthyBase"), moved="/new")) as url:
        report = examined(url)
    assert report.findings == (), report.to_text()


class Protected(SampleServer):
    credentials = "Bearer key-of-the-zoo-1234567890"


def test_a_protected_server_without_credentials_is_neither_passed_nor_accused() -> None:
    with serving(handler_of(Protected(list(HANDSHAKES), list(MODERNS)))) as url:
        report = examined(url)
    assert report.findings == (), report.to_text()
    assert report.verdict == "not shown"
    assert {"authorization.challenge", "authorization.metadata", "authorization.token"} == set(report.checked)
    assert {one.reason for one in report.not_checked} == {CREDENTIALS}
    assert len(report.to_text().splitlines()) < 12


def test_a_protected_server_with_credentials_is_examined_and_they_are_masked() -> None:
    headers = {"Authorization": Protected.credentials}
    with serving(handler_of(Protected(list(HANDSHAKES), list(MODERNS)))) as url:
        report = examined(url, headers=headers)
        untokened = examined(url, headers={"Authorization": "Bearer of-another-zoo-0987654321"})
    assert (report.findings, report.passed) == ((), True), report.to_text()
    assert "authorization.token" in report.checked
    assert untokened.verdict == "not shown"
    text = json.dumps(report.to_json())
    assert "1234567890" not in text


class Disclosing(Protected):
    """Reads the first characters of credentials only, and answers a DELETE of a session by ending all."""

    amiss = frozenset({"prefix", "other-session"})


def test_neither_short_credentials_nor_most_of_long_ones_are_in_the_report() -> None:
    headers = {"Authorization": Protected.credentials, "X-Zoo": "sesame"}
    with serving(handler_of(Disclosing(list(HANDSHAKES), list(MODERNS)))) as url:
        report = examined(url, headers=headers)
    assert {finding.rule for finding in report.findings} == {"authorization.token", "http.other-session"}
    told = json.dumps(report.to_json())
    assert "key-of-the-zoo" not in told
    assert "sesame" not in told


@pytest.mark.parametrize(
    "challenge",
    [
        'Basic realm="zoo", Bearer resource_metadata="{place}"',
        'Bearer resource_metadata="http://[zoo"',
        'Bearer resource_metadata="{place}/é"',
    ],
)
def test_a_challenge_may_have_several_schemes_and_an_odd_url_ends_nothing(challenge: str) -> None:
    handler = handler_of(Protected(list(HANDSHAKES), list(MODERNS)))
    with serving(handler, challenge=challenge) as url:
        report = examined(url)
    assert report.findings == (), report.to_text()


def test_a_user_may_see_what_the_same_user_sent() -> None:
    with serving(handler_of(kept("Tattler"))) as url:
        report = examined(url, headers={"X-User": "of-the-zoo"})
    assert {finding.rule for finding in report.findings} == {"tool-calls.side-effects"}


class Ordering(SampleServer):
    """Has a tool that changes something."""

    orders = 0

    def tools(self) -> list[Json]:
        order = {"name": "order", "description": "Order a ticket for the zoo.", "inputSchema": {"type": "object"}}
        return [order, *super().tools()]

    def call(self, name: str, arguments: Json) -> Json:
        self.orders += name == "order"
        return super().call(name, arguments)


def test_a_call_that_a_person_gave_is_made_once(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_text('[{"tool": "order", "arguments": {}}]')
    sample = Ordering(list(HANDSHAKES), list(MODERNS))
    with serving(handler_of(sample)) as url:
        asyncio.run(validate(ValidationTarget(url=f"{url}/mcp", examples=file), timeout=TIMEOUT))
    assert sample.orders == 1


@pytest.mark.parametrize(
    "name",
    [
        "Stranger",
        "Translator",
        "Untyped",
        "Unresponsive",
        "Boaster",
        "Misspelled",
        "NotImplementedServer",
        "Liar",
        "Ghostwriter",
        "Replacing",
        "StillEchoing",
    ],
)
def test_broken_servers_at_a_url_are_caught_by_the_same_rules(name: str) -> None:
    kind = SERVERS[name]
    with serving(handler_of(kept(name))) as url:
        report = examined(url)
    assert {finding.rule for finding in report.findings} == {kind.rule, *kind.companions}, report.to_text()


class Redirecting(LoopbackHandler):
    def post(self) -> None:
        self.answer(307, Location="http://169.254.169.254/latest/meta-data")


class Website(LoopbackHandler):
    def post(self) -> None:
        self.answer(200, b"<html>It works!</html>", "text/html")


class Dripping(LoopbackHandler):
    """Sends a stream of comments and never an answer."""

    def post(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        try:
            while True:
                self.wfile.write(b": still here\n\n" * 1_000)
        except OSError:
            self.close_connection = True  # the client has had enough


class Trickling(LoopbackHandler):
    """Sends one byte of a long answer at a time, so that no single wait is long."""

    def post(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        try:
            while not threading.Event().wait(0.05):  # being slow is what is tested
                self.wfile.write(b" ")
        except OSError:
            self.close_connection = True


@pytest.mark.parametrize(
    ("handler", "told", "limit"),
    [
        (Redirecting, "which is another origin and not followed", TIMEOUT),
        (Website, "the answer is not a JSON-RPC message", TIMEOUT),
        (Dripping, "no answer within", 2.0),  # both would go on for hours
        (Trickling, "no answer within", 2.0),
    ],
)
def test_what_is_no_server_is_told_as_such_and_in_time(
    handler: type[BaseHTTPRequestHandler], told: str, limit: float
) -> None:
    with serving(handler) as url:
        report = examined(url, timeout=limit)
    assert not report.passed
    assert "process.starts" in report.failed_gates
    assert any(told in finding.message for finding in report.findings), report.to_text()


def test_a_port_where_nobody_listens_is_told_as_such() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    report = examined(f"http://127.0.0.1:{port}")
    assert not report.passed
    assert any("the connection failed" in finding.message for finding in report.findings)
