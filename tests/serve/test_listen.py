"""Who may reach what `mcpfactory serve` offers: stdio for who starts it, HTTP on this machine, and others with a token."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.serve.factory_server import HttpAddress, make_authorization
from mcpfactory_runtime.client import HttpError, connect_http, connect_stdio
from tests.cli.conftest import InProcessCli
from tests.cli.recorded_workspaces import make
from tests.subtest_table import parametrize_subtests
from tests.timeouts import TIMEOUT

SECRET = "only-the-right-people-know"
LEAK = """
[[pipeline.stages]]
name = "leak"
command = ["{python}", "-c", "import os; print('names:', *os.environ)"]
needs = ["generate"]
reads = ["source"]
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory) -> InProcessCli:
    folder = tmp_path_factory.mktemp("listen") / "ws"
    make(folder, "notes")
    config = folder / "mcpfactory.toml"
    config.write_text(config.read_text() + LEAK.format(python=sys.executable))
    return InProcessCli(folder, {"TOKEN": SECRET, "SHORT": "1234"})


@parametrize_subtests(
    "place, message, hint",
    [
        (HttpAddress(), "requires authorization", "--token env:NAME"),
        (HttpAddress("0.0.0.0"), "requires authorization", "--token env:NAME"),
        (HttpAddress("0.0.0.0", token="env:TOKEN"), "--token requires --public-url", "--public-url https://"),
        (HttpAddress("0.0.0.0", token="env:TOKEN", url="http://mcp.example.com/mcp"), "without encryption", "https"),
        (HttpAddress(token=SECRET), "not a valid reference", "never the token itself"),
        (HttpAddress(token="env:ABSENT"), "the token in env:ABSENT is missing or too short", "16 characters or more"),
        (HttpAddress(token="env:SHORT"), "the token in env:SHORT is missing or too short: 4", "16 characters or more"),
        (HttpAddress(token="file:absent"), "cannot be read", "file:PATH"),
    ],
)
def test_an_address_or_a_token_that_protects_nothing_is_refused(place, message, hint):
    with pytest.raises(ConfigError, match=message) as error:
        make_authorization(place, {"TOKEN": SECRET, "SHORT": "1234"})
    assert hint in error.value.hint
    assert SECRET not in f"{error.value}{error.value.hint}"


def test_there_is_one_authorization():
    issued = {f"MCPFACTORY_AUTH_{name}": "https://login.example.com/x" for name in ("ISSUER", "JWKS_URL", "RESOURCE")}
    assert make_authorization(HttpAddress("0.0.0.0"), issued) is not None
    with pytest.raises(ConfigError, match="are both configured"):
        make_authorization(HttpAddress(token="env:TOKEN"), {**issued, "TOKEN": SECRET})


@pytest.mark.parametrize("what", [[], ["--all"]])
def test_an_open_address_is_refused_by_the_command(shell, what):
    done = shell("serve", "--http", "--port", "0", *what)
    assert done.code == 4
    assert "hint: use --token env:NAME" in done.err


def test_a_token_without_http_is_a_mistake(shell):
    assert shell("serve", "--token", "env:TOKEN").code == 2


def test_a_list_without_a_name_is_not_taken_for_all_servers(shell):
    done = shell("serve", "--server", " ,")
    assert done.code == 2
    assert "--server is empty" in done.err


@pytest.fixture(scope="module")
def guarded(shell) -> Iterator[str]:
    """The URL of the factory's server behind a token."""
    command = [sys.executable, "-m", "mcpfactory", "serve", "--http", "--port", "0", "--token", "env:TOKEN"]
    environ = {**os.environ, "TOKEN": SECRET}
    with subprocess.Popen(command, cwd=shell.folder, env=environ, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        yield process.stderr.readline().split(" at ")[1].strip()
        process.terminate()
        process.stderr.read()


@pytest.mark.anyio
async def test_over_http_only_who_knows_the_token_is_served(guarded):
    async with connect_http(guarded, {"Authorization": f"Bearer {SECRET}"}) as client:
        found = await client.call_tool("list_servers")
        assert found["structuredContent"]["servers"][0]["server"] == "notes"
    with pytest.raises(HttpError) as error:
        async with connect_http(guarded, {"Authorization": "Bearer another-token-entirely"}):
            pass
    assert error.value.status == 401


@pytest.mark.anyio
async def test_no_process_that_a_caller_starts_sees_the_token(guarded):
    async with connect_http(guarded, {"Authorization": f"Bearer {SECRET}"}) as client:
        await client.call_tool("run", {"servers": ["notes"], "until": "leak"}, timeout=TIMEOUT)
        log = await client.call_tool("log", {"server": "notes", "stage": "leak"})
    assert "names: " in log["structuredContent"]["text"]
    assert "TOKEN" not in log["structuredContent"]["text"]


@pytest.mark.anyio
async def test_on_stdio_the_workspace_may_be_named(shell, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    command = [sys.executable, "-m", "mcpfactory", "serve", "--workspace", str(shell.folder)]
    async with connect_stdio(command, cwd=elsewhere) as client:
        assert client.server_info["name"] == "mcpfactory"
        found = await client.call_tool("list_servers")
    assert [row["server"] for row in found["structuredContent"]["servers"]] == ["notes"]
