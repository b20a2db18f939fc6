"""Causes of invalid lines on stdout, and findings that follow from them."""

from __future__ import annotations

import json

from mcpfactory_pipeline.checks.evidence import Session
from mcpfactory_pipeline.checks.transport.stdio import pollution_cause, pollution_hint
from tests.pipeline.checks.test_rules import judged, observed
from tests.subtest_table import parametrize_subtests

PING = {"jsonrpc": "2.0", "id": 1, "result": {}}


@parametrize_subtests(
    "line, cause",
    [
        (b"Server started", "text"),
        (b"\x1b[32mServer started\x1b[0m", "text"),  # colours are no binary data
        (b"GIF89a\x01\x00\x01", "binary data"),
        ("Bär".encode("latin-1"), "text that is not UTF-8"),
        (json.dumps(PING).encode("utf-16"), "UTF-16"),
        (json.dumps(PING).encode() * 2, "two messages on a line"),
        (b"Content-Length: 40", "headers as of the Language Server Protocol"),
        (b'{"level": "info"}', "JSON that is not a JSON-RPC 2.0 message"),
        (
            b'{"jsonrpc": "2.0", "id": 1, "result": {"mean": NaN}}',
            "a message with NaN or Infinity, which JSON does not have",
        ),
        (b"{", "a message over several lines"),
        (b'  "jsonrpc": "2.0",', "a message over several lines"),
        (b"[" * 300 + b"]" * 300, "JSON that is nested too deeply to be read"),
    ],
)
def test_a_line_that_is_no_message_has_its_cause_and_what_to_do(line: bytes, cause: str) -> None:
    assert pollution_cause(line) == cause
    assert bool(pollution_hint((cause,))) is (cause != "text")  # the rule's own hint speaks of stray prints


def test_of_a_server_that_says_nothing_but_noise_one_finding_tells_what_it_said() -> None:
    loud = Session("session 2000", answered=False, pollution=["\x00"], pollution_causes={"binary data": None})
    evidence = observed(
        sessions=(loud,), lifecycles=frozenset(), revisions=(), handshakes={}, lists={}, probes={}, calls=()
    )
    (finding,) = judged(evidence).findings
    assert finding.rule == "process.starts"
    assert "no answer came; stdout has other text than JSON-RPC messages: binary data" in finding.message
    assert "base64" in finding.hint
