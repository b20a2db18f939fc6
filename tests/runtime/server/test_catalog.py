"""Which generated tools are offered: modes and profiles, by manifest, environment, command line and program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime import Context, McpError, Server
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS
from mcpfactory_runtime.server.generated.catalog import CatalogError
from mcpfactory_runtime.server.generated.manifest import ManifestError
from tests.runtime.server.generated_package import BOOKS, listed, package, use
from tests.timeouts import TIMEOUT

ALL = [tool["name"] for tool in BOOKS]
READING = ["get_book", "list_books", "list_orders"]
SEARCH = ["search_tools", "describe_tools", "call_tool"]
CURATED = {"profiles": {"curated": ["create_book", "get_book"]}}


def made(folder: Path) -> Server:
    server = Server("books")
    server.mount_manifest(folder)
    return server


@pytest.mark.parametrize(
    ("manifest", "environ", "names"),
    [
        ({}, {}, ALL),
        ({}, {"MCPFACTORY_PROFILE": "read-only"}, READING),
        (CURATED, {"MCPFACTORY_PROFILE": "curated"}, ["get_book", "create_book"]),
        ({**CURATED, "profile": "curated"}, {}, ["get_book", "create_book"]),
        ({**CURATED, "profile": "curated"}, {"MCPFACTORY_PROFILE": "full"}, ALL),
        ({"profiles": {"read-only": ["list_books"]}, "profile": "read-only"}, {}, ["list_books"]),
        ({"mode": "search"}, {}, SEARCH),
        ({"mode": "search"}, {"MCPFACTORY_MODE": "full"}, ALL),
        ({}, {"MCPFACTORY_MODE": "search", "MCPFACTORY_PROFILE": "read-only"}, SEARCH),
    ],
)
def test_the_manifest_says_what_is_offered_and_the_environment_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, manifest: Any, environ: Any, names: list[str]
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert listed(made(package(tmp_path, monkeypatch, **manifest))) == names


def test_what_is_offered_can_be_changed_while_clients_are_connected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = made(package(tmp_path, monkeypatch))

    @server.tool
    async def mine() -> None:
        """A tool of one's own."""

    async def task(client: Any) -> list[list[str]]:
        seen = []
        before = ("full", "full")
        for choice in ({"mode": "search"}, {"profile": "read-only"}, {"mode": "full"}, {"profile": "full"}):
            assert server.offer(**choice) == before
            before = (choice.get("mode", before[0]), choice.get("profile", before[1]))
            seen.append([tool["name"] for tool in await client.list_tools()])
        return seen

    own = ["mine"]
    assert use(server, task) == [SEARCH + own, SEARCH, READING, ALL + own]


def writing_and_reading(server: Server) -> None:
    @server.tool(annotations={"readOnlyHint": True})
    async def count(ctx: Context) -> int:
        """Read, by way of a tool that the profile may leave out."""
        return int((await ctx.call("empty"))["result"])

    @server.tool(annotations={"readOnlyHint": False})
    async def empty() -> int:
        """Write."""
        return 0

    @server.tool
    def unknown() -> None:
        """Say nothing of what it does."""


@pytest.mark.parametrize("mode", ["full", "search"])
def test_read_only_has_of_own_tools_those_that_only_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("MCPFACTORY_PROFILE", "read-only")
    server = made(package(tmp_path, monkeypatch, mode=mode))
    writing_and_reading(server)
    assert listed(server) == [*(READING if mode == "full" else SEARCH), "count"]

    async def task(client: Any) -> tuple[Any, list[int]]:
        refused = []
        for name in ("empty", "unknown"):
            with pytest.raises(McpError, match="Unknown tool") as caught:
                await client.call_tool(name, {})
            refused.append(caught.value.code)
        return (await client.call_tool("count", {}))["structuredContent"], refused

    assert use(server, task) == ({"result": 0}, [INVALID_PARAMS] * 2)
    server.remove_tool("empty")
    server.offer(profile="full")
    assert listed(server)[-2:] == ["count", "unknown"]


def test_a_part_offers_to_the_whole_what_its_profile_offers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = made(package(tmp_path, monkeypatch))
    writing_and_reading(part)
    whole = Server("whole")
    whole.mount(part, prefix="books")

    async def task(client: Any) -> list[set[str]]:
        seen = []
        for profile in ("read-only", "full"):
            part.offer(profile=profile)
            seen.append({tool["name"] for tool in await client.list_tools()} & {"books_count", "books_empty"})
        return seen

    assert use(whole, task) == [{"books_count"}, {"books_count", "books_empty"}]


def test_a_tool_that_was_taken_away_stays_away_in_every_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = made(package(tmp_path, monkeypatch, mode="search"))
    server.remove_tool("delete_book")
    server.offer("full")
    assert listed(server) == [name for name in ALL if name != "delete_book"]


@pytest.mark.parametrize("choice", [{"mode": "loud"}, {"profile": "curated"}])
def test_an_unknown_choice_is_refused_with_those_that_there_are_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: Any
) -> None:
    folder = package(tmp_path, monkeypatch)
    server = made(folder)
    with pytest.raises(CatalogError, match=r"hint: .*full"):
        server.offer(**choice)
    assert listed(server) == ALL
    with pytest.raises(ManifestError, match=r"manifest\.json"):
        made(package(tmp_path, monkeypatch, **choice))
    with pytest.raises(ValueError, match="hint:"):
        Server("plain").offer("search")


SERVE = "from mcpfactory_runtime import Server; s = Server('b'); s.mount_manifest({folder!r}); s.run()"


@pytest.mark.parametrize(
    ("arguments", "profile", "outcome"),
    [
        (["--mode", "search", "--profile", "read-only"], "", (0, "")),
        (["--mode", "loud"], "", (2, "full or search")),
        (["--profile", "curated"], "", (2, "full, read-only")),
        ([], "curated", (2, "MCPFACTORY_PROFILE")),
    ],
)
def test_the_command_line_chooses_and_tells_wrong_choices_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], profile: str, outcome: tuple[int, str]
) -> None:
    monkeypatch.setenv("MCPFACTORY_PROFILE", profile)
    code = SERVE.format(folder=str(package(tmp_path, monkeypatch)))
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=TIMEOUT
    )
    assert done.returncode == outcome[0], done.stderr
    assert outcome[1] in done.stderr
    assert "Traceback" not in done.stderr
