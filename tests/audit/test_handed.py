"""What a server was handed is masked in what it says, at once and no more than that, and only what it got is a leak."""

from __future__ import annotations

import errno
import json
import os
import socket
import ssl
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from mcpfactory_pipeline.audit.accepted import lock_text
from mcpfactory_pipeline.audit.audit import now_accepted
from mcpfactory_pipeline.audit.failures import failure
from mcpfactory_pipeline.audit.handed import Handed, hand
from mcpfactory_pipeline.audit.start import StartRequest
from mcpfactory_pipeline.clients.files import Home
from mcpfactory_runtime.client import ConnectionLostError
from mcpfactory_runtime.unreachable import why_unreachable
from tests.audit.says import evidence_of, read
from tests.audit.test_start import GH, READS, entry, look, place, rules
from tests.clients.configs import home_in
from tests.patience import PATIENCE

__all__ = ["place"]  # the fixture


def handed_to(env: dict[str, str], *, with_secrets: bool) -> Handed:
    text = json.dumps({"mcpServers": {"one": {"command": "./serve", "env": env}}})
    return hand(evidence_of(read("cursor", "user", text)).servers[0].server, {}, with_secrets=with_secrets)


def home_with(tmp_path: Any, **variables: str) -> Home:
    files = home_in(tmp_path)
    return Home("linux", files.home, files.config, files.state, {**os.environ, **variables})


@pytest.mark.parametrize("form", [str, json.dumps, lambda text: quote(text, safe="")], ids=["raw", "JSON", "URL"])
def test_a_value_is_masked_in_each_form(form):
    value = 'a/b "c" é-secret'
    handed = handed_to({"PRIVATE_PASSWORD": value}, with_secrets=True)
    written = form(value).strip('"')
    assert handed.masked(f"before {written} after")[0] == "before … after"


# What a neutral variable holds, and the entry's variable that refers to it.
REFERRED = {
    "token in a URL": (GH, {"DATABASE_URL": "postgres://ada:${WORK}@db.test/"}),
    "token behind a scheme": (GH, {"AUTHORIZATION": "Bearer ${WORK}"}),
    "token in JSON": (GH, {"CONFIG": '{"apiKey": "${WORK}"}'}),
    "token in a text": (GH, {"NOTE": "with ${WORK} in it"}),
    "word as a password": ("bookworm", {"DATABASE_URL": "postgres://ada:${WORK}@db.test/"}),
    "number as a password": ("24681357", {"DATABASE_URL": "postgres://ada:${WORK}@db.test/"}),
    "no word": ("Tr0ub4dor3", {"NOTE": "with ${WORK} in it"}),
    "path with a token": (f"/run/{GH}", {"NOTE": "with ${WORK} in it"}),
}


@pytest.mark.parametrize("what", REFERRED)
def test_a_variable_that_a_longer_value_refers_to_is_handed_to_no_stranger(tmp_path, place, what):
    value, env = REFERRED[what]
    told = entry(place, "told", READS, instructions="$-ENV", env=env)
    for with_secrets in (False, True):
        start = StartRequest(PATIENCE, with_secrets=with_secrets)
        _, evidence = look(home_with(tmp_path, WORK=value), {"one": told}, start=start)
        assert evidence.servers[0].listing is not None
        assert (value[::-1] in evidence.servers[0].listing.instructions) == with_secrets


def test_paths_that_a_value_refers_to_are_handed_over_so_that_a_server_finds_its_programs(tmp_path, place):
    told = entry(place, "told", READS, instructions="$-ENV", env={"MORE": "${WORK}:/opt/more"})
    _, evidence = look(home_with(tmp_path, WORK="/opt/a:/opt/b"), {"one": told})
    assert evidence.servers[0].listing is not None
    assert "/opt/a:/opt/b:/opt/more"[::-1] in evidence.servers[0].listing.instructions


@pytest.mark.parametrize("value", ["us-east-1", "en_US.UTF-8", "gpt-4o-mini", "2024-11-05"])
def test_what_is_no_secret_is_neither_masked_nor_a_leak_and_locks_of_two_machines_agree(tmp_path, place, value):
    told = entry(
        place,
        "told",
        {**READS, "description": f"Lists what is in {value}."},
        env={"AREA": "${AREA}", "IN": "x-${AREA}"},
    )
    locks = []
    for area in (value, "somewhere-else-2"):
        for with_secrets in (False, True):
            start = StartRequest(PATIENCE, with_secrets=with_secrets)
            report, evidence = look(home_with(tmp_path, AREA=area), {"one": told}, start=start, accepted={})
            assert "tools.leak" not in rules(report)["one"]
            locks.append(lock_text(now_accepted(evidence)))
    assert len(set(locks)) == 1
    assert value in locks[0]


def test_a_value_that_a_server_did_not_get_is_masked_and_no_leak(tmp_path, place):
    described = {**READS, "description": "Lists books. Default user is bookworm12."}
    told = entry(place, "told", described, env={"DB_PASSWORD": "bookworm12"})
    for with_secrets in (False, True):
        start = StartRequest(PATIENCE, with_secrets=with_secrets)
        report, evidence = look(home_in(tmp_path), {"one": told}, start=start)
        assert ("tools.leak" in rules(report).get("one", set())) == with_secrets
        assert "bookworm12" not in lock_text(now_accepted(evidence))


def test_members_whose_names_are_masked_are_all_kept_and_judged(tmp_path, place):
    poison = {"description": "Adds.\U000e0041"}
    properties = {"${API_KEY}": poison, "…": {"type": "string"}, "%22${API_KEY}": {}}
    tool = {**READS, "inputSchema": {"type": "object", "properties": properties}}
    told = entry(place, "told", tool, env={"API_KEY": GH})
    report, evidence = look(home_in(tmp_path), {"one": told})
    assert evidence.servers[0].listing is not None
    kept = evidence.servers[0].listing.tools[0]["inputSchema"]["properties"]
    assert kept == {"…2": poison, "…": {"type": "string"}, "%22…": {}}
    assert "tools.hidden-text" in rules(report)["one"]


# What a connection failed by, and how the hint begins.
SSL_ERROR = ssl.SSLCertVerificationError(1, "certificate verify failed")
SSL_ERROR.verify_message = "self-signed certificate"
CONNECTIONS = [
    (SSL_ERROR, "have its certificate mended"),
    (ssl.SSLError(1, "wrong version number"), "have its certificate mended"),
    (UnicodeEncodeError("ascii", "\xe9", 0, 1, "ordinal not in range(128)"), "correct the headers"),
    (ValueError("Invalid URL in location header: URL too long."), "read what it says"),
    (OSError(errno.ECONNREFUSED, "refused"), "start what serves this address"),
    (OSError(errno.ECONNRESET, "reset"), "start what serves this address"),
    (OSError(errno.EHOSTUNREACH, "no route"), "start what serves this address"),
    (httpx.ConnectTimeout(""), "start what serves this address"),
    (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "correct the host"),
]


@pytest.mark.parametrize(("cause", "hints"), CONNECTIONS)
def test_the_hint_for_a_connection_fits_what_it_failed_by(cause, hints):
    error = ConnectionLostError(f"no connection to db.test:443: {why_unreachable(cause)}")
    _, hint = failure(error, Handed(), url=True, apart=False, seconds=1)
    assert hint.startswith(hints)


def test_real_values_are_named_before_the_sandbox_where_a_server_did_not_get_them():
    error = ConnectionLostError(
        "the server ended with exit code 1; it last wrote to stderr:\nError: EPERM token missing"
    )
    for kept_back in (True, False):
        _, hint = failure(error, Handed(kept_back=kept_back), url=False, apart=True, seconds=1)
        assert hint.startswith("--with-secrets") == kept_back
        assert "--isolation none" in hint


def test_a_file_that_a_server_does_not_find_is_not_its_program(tmp_path):
    for words in ("cannot start books: config.json: No such file or directory", "cannot start " * 20_000):
        error = ConnectionLostError(f"the server ended with exit code 1; it last wrote to stderr:\n{words}")
        _, hint = failure(error, Handed(), url=False, apart=True, seconds=1)
        assert hint.startswith("start it by hand")
    made = {"command": "/opt/none/server"}
    for level in ("auto", "none"):
        report, _ = look(home_in(tmp_path), {"one": made}, start=StartRequest(PATIENCE, level))
        hint = next(one.hint for one in report.findings if one.rule == "tools.start-failed")
        assert hint.startswith("install it, or correct the path")
