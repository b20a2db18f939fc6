"""Servers in the configurations of clients, from the shell: what is written starts, and what is stale is told."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime.client import connect_stdio
from tests.cli import terminal_capture
from tests.cli.conftest import InProcessCli
from tests.cli.recorded_workspaces import finish, make, stage
from tests.timeouts import TIMEOUT


@pytest.fixture
def at_home(shop: InProcessCli, tmp_path: Path) -> InProcessCli:
    """The shop's workspace, and a home folder with nothing in it."""
    return InProcessCli(shop.folder, {**shop.environ, **homes(tmp_path)})


def homes(folder: Path) -> dict[str, str]:
    names = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME")
    return {"HOME": str(folder), **dict.fromkeys(names, "")}


def entry_of(folder: Path) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads((folder / ".claude.json").read_text())["mcpServers"]["bookshop"]
    return entry


@pytest.fixture
def promoted(tmp_path: Path) -> tuple[Workspace, InProcessCli]:
    """A workspace whose server `bookshop` is in staging, in version 1.0."""
    space = make(tmp_path / "ws", "bookshop")
    project = '[project]\nname = "bookshop"\nversion = "3.0"\n[project.scripts]\nbookshop = "bookshop:main"\n'
    (space.root / "servers/bookshop/pyproject.toml").write_text(project)
    stage(space, "bookshop", "wheel")
    return space, InProcessCli(space.root, homes(tmp_path))


async def tools(entry: dict[str, Any], elsewhere: Path) -> list[str]:
    """What a client gets that has the PATH of a desktop, an empty home folder, and stands in another folder."""
    (elsewhere / "empty").mkdir(parents=True)
    bare = {"HOME": str(elsewhere / "empty"), "PATH": "/usr/bin:/bin", **entry["env"]}
    bare |= {name: value for name, value in os.environ.items() if name.startswith(("UV_", "SSL_"))}
    command = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in bare.items())]
    async with connect_stdio([*command, entry["command"], *entry["args"]], cwd=elsewhere, timeout=TIMEOUT) as client:
        return [tool["name"] for tool in await client.list_tools()]


def test_what_a_client_is_told_starts_the_server(at_home, tmp_path):
    done = at_home("install", "bookshop", "--client", "claude-code")
    assert done.code == 0, done.err
    assert "MCPF_BOOKSHOP_API_KEY" in done.err
    entry = entry_of(tmp_path)
    assert entry["env"].pop("MCPF_BOOKSHOP_API_KEY") == "${MCPF_BOOKSHOP_API_KEY:-}"
    assert entry["args"] == ["run", "bookshop", "--workspace", str(at_home.folder)]
    assert "get_book" in asyncio.run(tools(entry, tmp_path / "elsewhere"))


def test_it_is_listed_until_it_is_taken_out(at_home, tmp_path):
    at_home("install", "bookshop", "-c", "codex", "-c", "goose", "--name", "books")
    rows = at_home("install", "--json").data["installed"]
    assert [(row["client"], row["name"], row["server"], row["source"], row["state"]) for row in rows] == [
        ("codex", "books", "bookshop", "source", "current"),
        ("goose", "books", "bookshop", "source", "current"),
    ]
    planned = at_home("uninstall", "books", "-c", "codex", "--dry-run")
    assert (planned.code, "books: would be removed in codex" in planned.out) == (0, True)
    assert (tmp_path / ".codex/config.toml").exists()
    assert at_home("uninstall", "books", "-c", "codex", "-c", "goose").code == 0
    assert at_home("install", "--json").data["installed"] == []
    assert not (tmp_path / ".codex/config.toml").exists()
    assert at_home("uninstall", "books", "-c", "codex").code == 3


def test_a_promoted_server_is_pinned_and_stale_once_another_is_promoted(promoted, tmp_path):
    space, shell = promoted
    assert shell("install", "bookshop", "-c", "claude-code").code == 0
    wheel = next((space.pipeline / "channels/staging/files").glob("*/bookshop-1.0-*.whl"))
    assert entry_of(tmp_path)["args"] == ["--from", f"bookshop @ {wheel.as_uri()}", "bookshop"]
    assert [(row["state"], row["version"]) for row in shell("install", "--json").data["installed"]] == [
        ("current", "1.0")
    ]

    finish(space, "bookshop", "staging", candidate="0" * 16, channel="staging", version="1.1")
    done = shell("install")
    assert done.code == 1
    assert "stale: 1.1 is here" in done.out

    done = shell("install", "bookshop", "-c", "claude-code", "--from", "staging")
    assert done.code == 4  # what the channel offers is on another machine
    assert "does not offer bookshop on this machine" in done.err


def test_a_server_that_a_channel_offers_no_longer_is_broken(promoted):
    space, shell = promoted
    shell("install", "bookshop", "-c", "claude-code")
    name = "servers/bookshop/mcpfactory.toml"
    (space.root / "mcpfactory.toml").write_text(
        '[workspace]\nname = "ws"\n[[pipeline.channels]]\nname = "canary"\n', encoding="utf-8"
    )
    assert (space.root / name).exists()
    assert [row["state"] for row in shell("install", "--json").data["installed"]] == ["broken"]
    assert shell("install", "bookshop", "-c", "claude-code", "--from", "staging").code == 3
    assert shell("install", "bookshop", "-c", "claude-code", "--from", "canary").code == 4


def test_a_project_is_told_nothing_of_this_machine(promoted):
    space, shell = promoted
    done = shell("install", "bookshop", "-c", "claude-code", "-c", "vscode", "--project")
    assert done.code == 0, done.err
    assert "everybody needs mcpfactory on the PATH" in done.err
    entries = [
        json.loads((space.root / file).read_text())[key]["bookshop"]
        for file, key in ((".mcp.json", "mcpServers"), (".vscode/mcp.json", "servers"))
    ]
    assert [entry["command"] for entry in entries] == ["mcpfactory", "mcpfactory"]
    assert [entry["args"][-1] for entry in entries] == [".", "${workspaceFolder}"]
    assert [(row["scope"], row["source"]) for row in shell("install", "--json").data["installed"]] == [
        ("project", "source")
    ] * 2
    refused = shell("install", "bookshop", "-c", "claude-code", "--project", "--from", "staging")
    assert refused.code == 4
    assert "exists only on this machine" in refused.err


def test_a_project_in_the_workspace_names_its_own_folder(promoted):
    space, shell = promoted
    cli = InProcessCli(space.root / "servers/bookshop", shell.environ)
    printed = cli("install", "bookshop", "-c", "gemini", "--project", "--print").data
    assert printed["mcpServers"]["bookshop"]["args"][-1] == "."


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("bookshop", "-c", "nobody"), 3),
        (("nothing", "-c", "cursor"), 3),
        (("bookshop", "-c", "windsurf", "--project"), 4),
        (("bookshop", "-c", "cursor", "--env", "MCPF_BOOKSHOP_API_KEY=hunter2"), 4),
        (("bookshop", "-c", "cursor", "--env", "no name"), 4),
        (("bookshop", "-c", "cursor", "--name", "a b"), 4),
        (("bookshop", "-c", "cursor", "--token-variable", "TOKEN"), 2),
        (("https://me:hunter2@shop.test/mcp", "-c", "cursor"), 4),
        (("https://shop.test/mcp", "-c", "claude-desktop"), 4),
        (("https://shop.test/mcp", "-c", "cursor", "--token-variable", "hunter2-x"), 4),
        (("https://shop.test/mcp", "-c", "cursor", "--from", "index"), 2),
        (("ftp://shop.test/mcp", "-c", "cursor"), 4),
    ],
)
def test_what_cannot_be_done_is_refused_and_no_secret_is_repeated(at_home, tmp_path, command, code):
    done = at_home("install", *command)
    assert done.code == code, done.err
    assert "hint:" in done.err or code == 2
    assert "hunter2" not in done.err + done.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "theirs", [{"command": "npx", "args": ["other"], "env": {"A": "b"}}, {"url": "https://a.test"}]
)
def test_an_entry_of_another_server_is_not_replaced_without_force(theirs, at_home, tmp_path):
    file = tmp_path / ".claude.json"
    before = json.dumps({"mcpServers": {"bookshop": theirs}})
    file.write_text(before)
    done = at_home("install", "bookshop", "-c", "claude-code")
    assert (done.code, "--force" in done.err, file.read_text()) == (4, True, before)
    assert at_home("install", "bookshop", "-c", "claude-code", "--force").code == 0
    assert entry_of(tmp_path)["args"][:2] == ["run", "bookshop"]
    assert "A" not in entry_of(tmp_path)["env"]
    again = at_home("install", "bookshop", "-c", "claude-code")  # now it is ours
    assert (again.code, "unchanged" in again.out) == (0, True)


URL = "http://127.0.0.1:8642/v1"


def test_what_the_shell_has_set_is_reported_and_never_a_secret(at_home, tmp_path):
    environ = {"MCPF_BOOKSHOP_BASE_URL": URL, "MCPF_BOOKSHOP_TIMEOUT": "5", "OTHER_TIMEOUT": "1"}
    shell = InProcessCli(at_home.folder, {**at_home.environ, **environ})
    done = shell("install", "bookshop", "--client", "claude-code")
    assert done.code == 0, done.err
    assert f"hint: --env MCPF_BOOKSHOP_BASE_URL={URL} --env MCPF_BOOKSHOP_TIMEOUT=5" in done.err
    assert "only the API document says so: calls to it are refused" in done.err
    entry = entry_of(tmp_path)["env"]
    assert not [name for name in entry if "_TIMEOUT" in name or "BASE_URL" in name]
    assert "bookworm" not in (tmp_path / ".claude.json").read_text()


def test_on_a_terminal_each_setting_of_the_shell_is_asked_for(at_home, tmp_path):
    environ = {
        **at_home.environ,
        "MCPF_BOOKSHOP_BASE_URL": URL,
        "MCPF_BOOKSHOP_TIMEOUT": "5",
        "MCPFACTORY_ACTOR": "tester",
    }
    command = ("install", "bookshop", "--client", "claude-code")
    done = terminal_capture.run(command, at_home.folder, terminal=True, typed="y\nn\n", **environ)
    assert done.code == 0
    assert "Write MCPF_BOOKSHOP_TIMEOUT=5 into the configuration? [Y/n]" in done.text
    entry = entry_of(tmp_path)["env"]
    assert (entry["MCPF_BOOKSHOP_BASE_URL"], "MCPF_BOOKSHOP_TIMEOUT" in entry) == (URL, False)


@pytest.mark.parametrize("options", [(), ("--env", "MCPF_BOOKSHOP_BASE_URL=https://ada:lovelace@api.test")])
def test_a_password_in_an_address_is_a_secret(options, at_home, tmp_path):
    shell = InProcessCli(at_home.folder, {**at_home.environ, "MCPF_BOOKSHOP_BASE_URL": "https://ada:lovelace@api.test"})
    done = shell("install", "bookshop", "--client", "claude-code", *options)
    assert done.code == (4 if options else 0)
    assert not (tmp_path / ".claude.json").exists() or "lovelace" not in (tmp_path / ".claude.json").read_text()


def test_what_looks_like_a_secret_is_written_where_somebody_says_so(at_home, tmp_path):
    def told(*options: str) -> tuple[int, str]:
        done = at_home("install", "bookshop", "-c", "claude-code", *options)
        return done.code, done.out + done.err

    for pair in ("GITHUB_TOKEN=hunter2", "DB_PASSWORD=hunter2", "MY_KEY=hunter2", "NOTE=ghp_hunter2hunter2hunter2"):
        code, said = told("--env", pair)
        assert (code, "--literal" in said, "hunter2" in said) == (4, True, False)
    assert list(tmp_path.iterdir()) == []
    assert told("--env", "GITHUB_TOKEN=hunter2", "--env", "CA_KEY_FILE=/a.pem", "--literal")[0] == 0
    assert entry_of(tmp_path)["env"]["GITHUB_TOKEN"] == "hunter2"
    assert (tmp_path / ".claude.json").stat().st_mode & 0o777 == 0o600


def test_several_clients_are_changed_all_or_none(at_home, tmp_path):
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").write_text("a = ")
    assert at_home("install", "bookshop", "-c", "claude-code", "-c", "codex").code == 4
    assert not (tmp_path / ".claude.json").exists()


def test_a_file_that_cannot_be_read_is_named_and_not_touched(at_home, tmp_path):
    (tmp_path / ".claude.json").write_text('{"mcpServers": {,}')
    done = at_home("install", "bookshop", "-c", "claude-code")
    assert done.code == 4
    assert ".claude.json" in done.err
    assert "hint:" in done.err
    assert (tmp_path / ".claude.json").read_text() == '{"mcpServers": {,}'
    assert [row["state"] for row in at_home("install", "--json").data["installed"]] == ["unreadable"]
