"""A mistake in a server's own code is told as its owner's, wherever it is met: the place, the line, what to do."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from mcpfactory_runtime.client import connect_stdio
from tests.cli.conftest import CliProcess, InProcessCli, WorkspaceCache
from tests.cli.tiny_package import write_server
from tests.subtest_table import parametrize_subtests

SERVER = "servers/notes/src/notes_mcp/server.py"
IMPORT = "import yaml\n"  # the factory has it, the server does not declare it
SYNTAX = "def broken(:\n"
TOLD = {
    IMPORT: (
        f"{SERVER}:1: ModuleNotFoundError: No module named 'yaml'",
        'add "PyYAML" to [project] dependencies in servers/notes/pyproject.toml',
    ),
    SYNTAX: (f"{SERVER}:1: SyntaxError: invalid syntax", "correct the line"),
}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory, workspace_cache: WorkspaceCache) -> InProcessCli:
    folder = tmp_path_factory.mktemp("mistakes") / "ws"
    return InProcessCli(workspace_cache.copy(folder, (), ("new", "notes", "--template", "minimal")))


@parametrize_subtests(
    "mistake, command",
    [
        (IMPORT, ("inspect", "notes", "--start")),
        (IMPORT, ("call", "notes", "where")),
        (SYNTAX, ("run", "notes")),
        (IMPORT, ("validate", "notes")),
        (SYNTAX, ("test", "notes")),
    ],
)
def test_each_command_says_where_and_what_to_do(space: CliProcess, command: tuple[str, ...], mistake: str) -> None:
    write_server(space.folder / "servers/notes", before=mistake)
    tests = space.folder / "servers/notes/tests/declared.yaml"
    tests.write_text("tests:\n  - {name: where it is, tool: where, expect: [{path: $, matches: .}]}\n")
    done = space(*command)
    what, hint = TOLD[mistake]
    assert done.code == 6
    assert f"error: {what}\n    {mistake}" in done.err
    assert f"hint: {hint}" in done.err
    assert "internal error" not in done.err


@parametrize_subtests("before, after, what, hint", [
        ("x = undefined_name\n", "", f"{SERVER}:1: NameError: name 'undefined_name' is not defined", "define or import"),
        ("from .measure import y\n", "", "No module named 'notes_mcp.measure'", "did you mean measures?"),
        ("import fruit_of_nobody\n", "", "fruit_of_nobody", 'the package that has it, perhaps "fruit-of-nobody"'),
        ("", "\n\ndel main\n", "ImportError: cannot import name 'main' from 'notes_mcp.server'", "a function main()"),
        ("", "\n\ndef main() -> None:\n    pass\n", "notes ended before it answered", "main() must call server.run()"),
        ("raise SystemExit('no key')\n", "", "no key", "mcpfactory run notes"),
    ])  # fmt: skip
def test_typical_mistakes(space: CliProcess, before: str, after: str, what: str, hint: str) -> None:
    write_server(space.folder / "servers/notes", before=before, after=after)
    done = space("inspect", "notes", "--start")
    assert (done.code, done.out) == (6, "")
    error, _, told = done.err.partition("hint: ")
    assert what in error
    assert hint in told
    assert str(space.folder) not in done.err


def test_the_doctor_starts_a_server_that_it_is_asked_about(space: CliProcess) -> None:
    write_server(space.folder / "servers/notes")
    assert space("call", "notes", "where").code == 0  # its environment is there
    sound = space("doctor", "notes")
    assert (sound.code, "and lists 1 tool\n" in sound.out) == (0, True)
    write_server(space.folder / "servers/notes", before=SYNTAX)
    broken = space("doctor", "notes")
    assert broken.code == 5
    assert f"error   notes: {TOLD[SYNTAX][0]}" in broken.out
    assert "hint: correct the line" in broken.out
    assert "mcpfactory doctor notes starts it" in space("doctor").out


def test_a_package_without_main_or_of_another_name_is_named(space: CliProcess) -> None:
    write_server(space.folder / "servers/notes")
    package = space.folder / "servers/notes/src/notes_mcp"
    main = package / "__main__.py"
    text = main.read_text()
    main.unlink()
    without = space("inspect", "notes", "--start")
    main.write_text(text)
    assert (without.code, "hint: make servers/notes/src/notes_mcp/__main__.py" in without.err) == (6, True)
    package.rename(package.with_name("other"))
    renamed = space("inspect", "notes", "--start")
    package.with_name("other").rename(package)
    assert (renamed.code, "No module named notes_mcp" in renamed.err) == (6, True)


def test_a_gateway_says_it_to_whoever_calls_and_serves_the_others(space: CliProcess) -> None:
    assert space("new", "others", "--template", "minimal").code == 0
    write_server(space.folder / "servers/notes")
    command = [
        sys.executable,
        "-m",
        "mcpfactory",
        "serve",
        "--server",
        "notes,others",
        "--workspace",
        str(space.folder),
    ]

    async def talk() -> tuple[dict, dict, str, dict]:
        async with connect_stdio(command) as client:  # both are asked what they offer, and lie down again
            names = [tool["name"] for tool in await client.list_tools()]
            write_server(space.folder / "servers/notes", before=IMPORT)
            broken = next(name for name in names if name.startswith("notes"))
            said = await client.call_tool(broken, {})
            other = next(name for name in names if name.startswith("others"))
            fine = await client.call_tool(other, {"text": "one"})
            health = await client.request("resources/read", {"uri": "gateway://health"})
        return said, fine, client.stderr, health

    said, fine, _, health = asyncio.run(talk())
    what, hint = TOLD[IMPORT]
    assert said["isError"]
    text = said["content"][0]["text"]
    assert text.startswith(f"The server notes does not start: {what}\n")
    assert text.splitlines()[-1].startswith(f"hint: {hint}")
    assert not fine.get("isError")
    page = json.loads(health["contents"][0]["text"])
    broken = {row["server"]: row["last_error"] for row in page["servers"] if row["state"] == "broken"}
    assert list(broken) == ["notes"]
    assert broken["notes"].startswith(what)
