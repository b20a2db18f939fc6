"""Servers elsewhere from the file of a client: `mcpServers`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime import Server, remote_servers
from mcpfactory_runtime.testing import connect
from tests.runtime.remote.conftest import ELSEWHERE, Elsewhere
from tests.runtime.remote.test_remote import said
from tests.subtest_table import parametrize_subtests
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio


async def test_all_servers_of_a_file_are_parts_under_their_names(
    tmp_path: Path, start_remote_server: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "of-the-environment")
    file = tmp_path / "mcp.json"
    servers = {
        "by command": {
            "type": "stdio",
            "command": ELSEWHERE[0],
            "args": ELSEWHERE[1:],
            "env": {"HAPPENED": os.environ["HAPPENED"], "GIVEN": "${SECRET}"},
        },
        "web": {"type": "http", "url": start_remote_server(), "headers": {"X-Given": "${MISSING:-fallback} ${SECRET}"}},
    }
    file.write_text(json.dumps({"mcpServers": servers, "inputs": []}))
    whole = Server("whole")
    for name, part in remote_servers(file, connect_timeout=TIMEOUT).items():
        whole.mount(part, name)
    async with connect(whole) as client:
        assert await said(client, "by-command_add", a=1) == 3
        assert await said(client, "web_add", a=2) == 4
        assert "GIVEN" in await said(client, "by-command_environment")
        assert (await said(client, "web_heard"))["headers"]["x-given"] == "fallback of-the-environment"


@parametrize_subtests(
    "servers, said",
    [
        (
            {"a": {"command": "x", "url": "https://y"}},
            "mcpServers, a: exactly one of command and url is required\nhint: ",
        ),
        ({"a": {}}, "mcpServers, a: exactly one of command and url"),
        ({"a": {"url": "ftp://y"}}, "mcpServers, a: 'ftp://y' is not a valid URL"),
        ({"a": {"url": "http://["}}, "mcpServers, a: 'http://[' is not a valid URL"),
        ({"a": {"command": "x", "args": [1]}}, "mcpServers, a: 1 is not a string"),
        (
            {"a": {"command": "${NOT_SET}"}},
            "mcpServers, a: the variable NOT_SET is not set\nhint: set the variable, or write ${NOT_SET:-default}",
        ),
        ({"a b": {"command": "x"}, "a/b": {"command": "x"}}, "mcpServers: two servers would have the name 'a-b'"),
        ([], "mcpServers has no mcpServers\nhint: "),
    ],
)
def test_what_cannot_be_is_named_with_what_to_do(servers: Any, said: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the text is compared below
        remote_servers({"mcpServers": servers})
    assert str(error.value).startswith(said)
    assert "hint: " in str(error.value)
