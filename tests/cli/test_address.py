"""Each server calls its own API and no other: where that is, who permitted it, and that no key goes astray."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mcpfactory_runtime.client import connect_stdio
from tests.cli.conftest import CliProcess, InProcessCli, WorkspaceCache
from tests.loopback_server import LoopbackHandler, serving
from tests.timeouts import TIMEOUT

KEY = {"one": "key-of-one-c0ffee", "two": "key-of-two-5eed"}


class Api:
    """A small API as its framework would serve it: the document has no `servers`. `asked` has what reached it."""

    def __init__(self, name: str) -> None:
        self.asked: list[tuple[str, str]] = []  # path, key
        api, key = self, {"apiKey": {"type": "apiKey", "in": "header", "name": "X-Key"}}
        done = {"200": {"description": "the name", "content": {"application/json": {"schema": {"type": "object"}}}}}
        get = {"operationId": "who", "security": [{"apiKey": []}], "responses": done}
        self.document = {
            "openapi": "3.1.0",
            "info": {"title": name, "version": "1"},
            "paths": {"/who": {"get": get}},
            "components": {"securitySchemes": key},
        }

        class Handler(LoopbackHandler):
            def get(self) -> None:
                api.asked.append((self.path, self.headers.get("X-Key", "")))
                self.answer(200, api.document if self.path == "/openapi.json" else {"name": name})

        self.handler = Handler

    @contextmanager
    def running(self) -> Iterator[Api]:
        with serving(self.handler) as self.url:
            yield self

    @property
    def keys(self) -> set[str]:
        """The keys that it was shown."""
        return {key for path, key in self.asked if key}


@pytest.fixture(scope="module")
def apis() -> Iterator[dict[str, Api]]:
    with Api("one").running() as one, Api("two").running() as two:
        yield {"one": one, "two": two}


@pytest.fixture(scope="module")
def space(
    tmp_path_factory: pytest.TempPathFactory, workspace_cache: WorkspaceCache, apis: dict[str, Api]
) -> CliProcess:
    """A workspace with a server for each API, made from its URL, and the keys of both in the environment."""
    folder = tmp_path_factory.mktemp("address") / "ws"
    workspace_cache.copy(folder, ("--factory", "index"))
    shell = InProcessCli(folder, {f"MCPF_{name.upper()}_API_KEY": key for name, key in KEY.items()})
    for name, api in apis.items():
        made = shell("new", "--from-openapi", f"{api.url}/openapi.json", "--name", name)
        assert made.code == 0, made.err
        assert f"note: the API is at {api.url}, on this machine; permitted by allow_private" in made.err
    return shell


@pytest.fixture(autouse=True)
def forget(apis: dict[str, Api]) -> None:
    for api in apis.values():
        api.asked.clear()


def test_an_api_is_called_where_its_document_came_from_before_and_after_the_pipeline_made_the_server_anew(
    space: CliProcess, apis: dict[str, Api]
) -> None:
    config = (space.folder / "servers/one/mcpfactory.toml").read_text()
    assert f'allow_private = ["{apis["one"].url.removeprefix("http://")}"]' in config
    for again in ((), ("pipeline", "run", "one", "--until", "generate", "--force"), ("update", "one")):
        assert not again or space(*again).code == 0
        called = space("call", "one", "who")
        assert (called.code, json.loads(called.out)) == (0, {"name": "one"}), called.out
    assert apis["one"].asked[0] == ("/who", KEY["one"])
    assert (space.folder / "servers/one/mcpfactory.toml").read_text() == config


def through_gateway(space: CliProcess, **environ: str) -> dict[str, Any]:
    """What the tools of both servers answer behind one endpoint."""

    async def ask() -> dict[str, Any]:
        command = [
            sys.executable,
            "-m",
            "mcpfactory",
            "serve",
            "--server",
            "one,two",
            "--workspace",
            str(space.folder),
        ]
        async with connect_stdio(command, env={**space.environ, **environ}, timeout=TIMEOUT) as client:
            return {name: (await client.call_tool(f"{name}_who"))["content"][0]["text"] for name in KEY}

    return asyncio.run(ask())


def test_behind_one_endpoint_each_key_reaches_its_own_api_alone(space: CliProcess, apis: dict[str, Api]) -> None:
    answers = through_gateway(space)
    assert {name: json.loads(text)["name"] for name, text in answers.items()} == {"one": "one", "two": "two"}
    assert {name: api.keys for name, api in apis.items()} == {name: {key} for name, key in KEY.items()}


def test_the_address_of_one_server_is_no_others(space: CliProcess, apis: dict[str, Api]) -> None:
    """Its own variable goes before the shared one, and moves nobody else."""
    with Api("elsewhere").running() as elsewhere:
        answers = through_gateway(
            space,
            MCPF_ONE_BASE_URL=elsewhere.url,
            MCPF_TWO_BASE_URL=apis["two"].url,
            MCPFACTORY_BASE_URL="http://127.0.0.1:9",
        )
        assert json.loads(answers["one"])["name"] == "elsewhere"
        assert elsewhere.keys == {KEY["one"]}
    assert (apis["one"].asked, apis["two"].keys) == ([], {KEY["two"]})


@pytest.mark.parametrize(
    "command", [("serve", "--server", "one,two"), ("serve", "--all"), ("call", "two", "who"), ("run", "two")]
)
def test_one_address_for_several_servers_is_refused_before_a_key_is_sent(
    command, space: CliProcess, apis: dict[str, Api]
) -> None:
    shell = InProcessCli(space.folder, {**space.environ, "MCPFACTORY_BASE_URL": apis["one"].url})
    refused = shell(*command)
    assert refused.code == 4
    assert "MCPFACTORY_BASE_URL applies to all servers" in refused.err
    assert "MCPF_TWO_BASE_URL=https://…" in refused.err
    assert apis["one"].asked == apis["two"].asked == []
    assert "MCPFACTORY_BASE_URL applies to all servers" in shell("doctor").out


def test_an_address_that_only_the_document_names_is_not_called_and_that_is_said_at_once(
    tmp_path, workspace_cache: WorkspaceCache, apis: dict[str, Api]
) -> None:
    place = apis["one"].url.removeprefix("http://")
    document = {**apis["one"].document, "servers": [{"url": apis["one"].url}]}
    (tmp_path / "api.json").write_text(json.dumps(document))
    workspace_cache.copy(tmp_path / "ws", ("--factory", "index"))
    shell = InProcessCli(tmp_path / "ws", {"MCPF_ONE_API_KEY": KEY["one"]})
    told = (
        f"the API is at {apis['one'].url}, on this machine, and only the API document says so: calls to it are refused"
    )
    permit = f'allow_private = ["{place}"] below [api] in servers/one/mcpfactory.toml'
    for command in (("new", "--from-openapi", "../api.json", "--name", "one"), ("inspect", "one"), ("doctor", "one")):
        done = shell(*command)
        assert done.code == 0
        assert told in done.out + done.err
        assert permit in done.out + done.err
    assert shell("call", "one", "who").code == 1
    assert apis["one"].asked == []
    config = tmp_path / "ws/servers/one/mcpfactory.toml"
    config.write_text(config.read_text().replace("[api]\n", f'[api]\nallow_private = ["{place}"]\n'))
    assert shell("update", "one").code == 0
    assert json.loads(shell("call", "one", "who").out) == {"name": "one"}
    assert "permitted by allow_private" in shell("doctor", "one").out


def test_title_of_a_document_selects_no_variable_that_is_set_for_something_else(
    tmp_path, workspace_cache: WorkspaceCache
) -> None:
    workspace_cache.copy(tmp_path / "ws", ("--factory", "index"))
    with Api("Github").running() as stranger:
        shell = InProcessCli(tmp_path / "ws", {"GITHUB_API_KEY": KEY["one"], "GITHUB_TOKEN": KEY["one"]})
        made = shell("new", "--from-openapi", f"{stranger.url}/openapi.json")
        assert (made.code, "already set" in made.err) == (0, False)
        assert shell("call", "github", "who").code == 1
        assert stranger.keys == set()
        meant = InProcessCli(tmp_path / "ws", {"MCPF_GITHUB_API_KEY": KEY["two"]})
        assert meant("call", "github", "who").code == 0
        assert stranger.keys == {KEY["two"]}
        (tmp_path / "ws/servers/github").rename(tmp_path / "github")
        again = meant("new", "--from-openapi", f"{stranger.url}/openapi.json")
    assert "already set in this environment: MCPF_GITHUB_API_KEY\n" in again.err


def test_a_document_that_moves_its_api_takes_no_permission_along(
    tmp_path, workspace_cache: WorkspaceCache, apis: dict[str, Api]
) -> None:
    """The permission is for a host: what a document says later is not what a person typed."""
    with Api("one").running() as moved:
        workspace_cache.copy(tmp_path / "ws", ("--factory", "index"))
        shell = InProcessCli(tmp_path / "ws", {"MCPF_ONE_API_KEY": KEY["one"]})
        assert shell("new", "--from-openapi", f"{moved.url}/openapi.json", "--name", "one").code == 0
        moved.document["servers"] = [{"url": apis["two"].url}]
        refused = shell("update", "one")
        assert (refused.code != 0, "--accept-origin" in refused.err) == (True, True)
        updated = shell("update", "one", "--accept-origin")
        assert f"the API is at {apis['two'].url}" in updated.err
        assert "calls to it are refused" in updated.err
        assert "private or local address" in shell("call", "one", "who").out
        assert apis["two"].asked == []
        allowed = InProcessCli(shell.folder, {**shell.environ, "MCPF_ONE_ALLOW_PRIVATE": "1"})
        assert json.loads(allowed("call", "one", "who").out) == {"name": "two"}
