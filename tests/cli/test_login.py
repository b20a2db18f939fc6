"""Logging in from the shell: a document with OAuth, a real authorization server, a browser, a call, the doctor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import CliProcess, InProcessCli, WorkspaceCache
from tests.runtime.upstream.provider import Provider, agree, provider
from tests.system import free_port
from tests.timeouts import TIMEOUT


@pytest.fixture(scope="module")
def at() -> Iterator[Provider]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")  # the library refuses http otherwise, also on loopback
        with provider() as running:
            running.now = 2e9  # the server's clock is the real one; tokens do not expire here
            yield running


@pytest.fixture(scope="module")
def things(at: Provider, workspace_cache: WorkspaceCache, tmp_path_factory: pytest.TempPathFactory) -> CliProcess:
    """A workspace with the server `things`, whose API wants a login."""
    folder = tmp_path_factory.mktemp("login") / "ws"
    code = {"authorizationUrl": "/authorize", "tokenUrl": "/token", "scopes": {}}
    scheme = {"type": "oauth2", "description": "Register at https://a.test/apps.", "flows": {"authorizationCode": code}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Things", "version": "1"},
        "servers": [{"url": "https://things.invalid"}],
        "security": [{"auth": ["read"]}],
        "paths": {"/api/things": {"get": {"operationId": "listThings", "responses": {"200": {"description": "ok"}}}}},
        "components": {"securitySchemes": {"auth": scheme}},
    }
    (folder.parent / "things.json").write_text(json.dumps(document))
    workspace_cache.copy(folder, ("--factory", "index"))
    environ = {"MCPFACTORY_BASE_URL": at.url, "MCPFACTORY_TOKEN_STORE": str(folder.parent / "tokens")}
    shell = InProcessCli(folder, environ)
    made = shell("new", "--from-openapi", str(folder.parent / "things.json"), "--name", "things")
    assert made.code == 0, made.err
    return shell


def with_client(shell: CliProcess) -> CliProcess:
    return InProcessCli(shell.folder, {**shell.environ, "MCPF_THINGS_CLIENT_ID": "app"})


def log_in(shell: CliProcess) -> tuple[int, str]:
    """Runs `login --no-browser` and is the person at the browser."""
    command = [sys.executable, "-m", "mcpfactory", "login", "things", "--no-browser", "--port", str(free_port())]
    environ = {**os.environ, **shell.environ}
    with subprocess.Popen(command, cwd=shell.folder, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "Open this page" in process.stdout.readline()
        agree(process.stdout.readline().strip())
        told = process.stdout.read()
        return process.wait(TIMEOUT), told


def test_the_doctor_says_what_is_missing_how_to_get_it_and_where(things: CliProcess) -> None:
    told = things("doctor", "things")
    assert "auth: no access token, and no login to get one; 1 tools cannot be called" in told.out
    assert (
        "export MCPF_THINGS_CLIENT_ID=… and run `mcpfactory login things`, or export MCPF_THINGS_CLIENT_ID=… MCPF_THINGS_CLIENT_SECRET=… MCPF_THINGS_REFRESH_TOKEN=…, or export MCPF_THINGS_TOKEN=…"
        in told.out
    )
    assert "https://a.test/apps" in told.out


def test_a_login_needs_a_registered_client_and_says_so(things: CliProcess) -> None:
    done = things("login", "things", "--no-browser")
    assert done.code == 1
    assert "MCPF_THINGS_CLIENT_ID" in done.err


def test_a_person_logs_in_calls_and_logs_out(things: CliProcess, at: Provider) -> None:
    shell = with_client(things)
    code, told = log_in(shell)
    assert (code, told) == (0, "logged in with auth; scopes: read\n")
    called = shell("call", "things", "list_things")
    assert called.code == 0, called.out + called.err
    assert len(at.calls) == 1
    assert "auth: has what it needs" in shell("doctor", "things").out
    tokens = {*at.tokens, *at.refresh_tokens}
    assert len(tokens) == 2
    assert not any(token in told + called.out + called.err for token in tokens)
    assert "logged out" in shell("login", "things", "--forget").out
    assert shell("call", "things", "list_things").code == 1
    assert "mcpfactory login things" in shell("call", "things", "list_things").out


def test_the_server_alone_can_log_in_without_the_factory(things: CliProcess) -> None:
    source = Path(things.folder, "servers/things/src")
    done = subprocess.run(
        [sys.executable, "-m", "things_mcp", "logout"],
        env={**os.environ, **things.environ, "PYTHONPATH": str(source)},
        capture_output=True, text=True, check=False, timeout=TIMEOUT,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "there was no login for auth\n")


def test_a_server_without_an_api_says_so(empty):
    assert empty("init", "ws", "--factory", "index").code == 0
    cli = empty.at(empty.folder / "ws")
    assert cli("new", "hello", "--template", "minimal").code == 0
    for command in (("login",), ("login", "--forget")):
        done = cli(*command, "hello")
        assert (done.code, done.out) == (1, "")
        assert "hello has no API to log in to" in done.err
        assert "hint:" in done.err
