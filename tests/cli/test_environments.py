"""A server runs in an environment of its own, which has its dependencies and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mcpfactory_runtime.revisions import LATEST_LEGACY
from tests.cli.conftest import CliProcess, InProcessCli, WorkspaceCache
from tests.cli.tiny_package import NAME, declare, fruit_wheel, write_server
from tests.timeouts import TIMEOUT

MAKING = "creating the environment of notes …"
USES_FRUIT = "\n\n@server.tool\ndef fruit() -> str:\n    from fruit_of_tests import kind\n\n    return kind\n"


@pytest.fixture
def space(tmp_path: Path, workspace_cache: WorkspaceCache) -> InProcessCli:
    """A workspace with the server `notes`, and a folder of environments in which there is none."""
    fruit_wheel(tmp_path / "links")
    shell = InProcessCli(
        tmp_path / "ws", {"MCPFACTORY_CACHE_DIR": str(tmp_path / "cache"), "UV_FIND_LINKS": str(tmp_path / "links")}
    )
    workspace_cache.copy(tmp_path / "ws", (), ("new", "notes", "--template", "minimal"))
    write_server(shell.folder / "servers/notes")
    return shell


def environments(space: InProcessCli) -> list[Path]:
    return [mark.parent for mark in (space.folder.parent / "cache/environments").glob("*/ready.json")]


def test_a_package_works_once_it_is_declared_and_is_not_there_before_and_after(space: InProcessCli) -> None:
    folder = space.folder / "servers/notes"
    write_server(folder, after=USES_FRUIT)
    without = space("call", "notes", "fruit")
    assert without.code == 1
    assert "No module named 'fruit_of_tests'" in without.err
    assert "hint: add the package that has it to [project] dependencies in servers/notes/pyproject.toml" in without.err
    declare(folder, NAME)
    found = space("call", "notes", "fruit")
    assert (found.code, found.out, found.err) == (0, "apple 1.0\n", f"{MAKING}\n")
    again = space("call", "notes", "fruit")
    assert (again.out, again.err) == ("apple 1.0\n", "")
    declare(folder)
    assert space("call", "notes", "fruit").code == 1


def test_validate_and_the_declared_tests_use_the_same(space: InProcessCli) -> None:
    folder = space.folder / "servers/notes"
    declare(folder, NAME)
    write_server(
        folder, before="from fruit_of_tests import kind\n", after="\n\nserver.tool(name='fruit')(lambda: kind)\n"
    )
    judged = space("validate", "notes", "--json")
    assert [one["rule"] for one in judged.data["findings"] if one["gate"]] == []
    (folder / "tests/fruit.yaml").write_text("tests:\n  - {name: a fruit, tool: fruit, expect: [{text: apple}]}\n")
    done = space("test", "notes")
    assert done.code in {0, 4}, done.err


def test_servers_that_need_the_same_share_one_and_an_edit_works_at_once(space: InProcessCli) -> None:
    assert space("new", "others", "--template", "minimal").code == 0
    write_server(space.folder / "servers/others")
    first, second = space("call", "notes", "where"), space("call", "others", "where")
    assert (first.err, second.err) == (f"{MAKING}\n", "")
    assert first.out == second.out
    assert [str(one) for one in environments(space)] == [first.out.strip()]
    write_server(space.folder / "servers/notes", after="\nserver.tool(name='new')(lambda: 'here')\n")
    assert space("call", "notes", "new").out == "here\n"


def test_two_that_start_at_once_make_one(space: InProcessCli) -> None:
    each = CliProcess(space.folder, space.environ)  # two processes
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: each("call", "notes", "where"), range(2)))
    assert [one.code for one in done] == [0, 0]
    assert len({one.out for one in done}) == len(environments(space)) == 1


def test_on_stdio_only_mcp_goes_to_stdout_while_the_environment_is_made(space: InProcessCli) -> None:
    hello = {"protocolVersion": LATEST_LEGACY.name, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    sent = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n"
    done = subprocess.run(
        [sys.executable, "-m", "mcpfactory", "run", "notes"],
        cwd=space.folder, env=os.environ | space.environ, input=sent, capture_output=True, text=True, timeout=TIMEOUT, check=True,
    )  # fmt: skip
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]
    assert done.stderr == f"{MAKING}\n"


def test_a_persons_own_environment_is_used_where_it_has_what_is_needed(space: InProcessCli) -> None:
    folder = space.folder / "servers/notes"
    (folder / ".venv").symlink_to(sys.prefix)  # it has the runtime
    assert Path(space("call", "notes", "where").out.strip()).resolve() == Path(sys.prefix).resolve()
    assert environments(space) == []
    declare(folder, NAME)
    done = space("call", "notes", "where")
    assert f"servers/notes/.venv is not used, because it lacks {NAME}" in done.err
    assert [str(one) for one in environments(space)] == [done.out.strip()]


def test_to_serve_over_http_there_is_what_that_needs(space: InProcessCli) -> None:
    command = [sys.executable, "-m", "mcpfactory", "run", "notes", "--http", "--port", "0"]
    with subprocess.Popen(
        command, cwd=space.folder, env=os.environ | space.environ, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(2)]
        process.terminate()
    assert said[0] == f"{MAKING}\n"
    assert "http://127.0.0.1:" in said[1]


@pytest.mark.parametrize(
    ("dependencies", "words"),
    [
        ((f"{NAME}>=9",), f"you require {NAME}>=9"),
        (("fruit => 1",), "dependency 'fruit => 1' cannot be read"),
    ],
)
def test_a_wrong_dependency_is_the_owners_to_correct(
    space: InProcessCli, dependencies: tuple[str, ...], words: str
) -> None:
    declare(space.folder / "servers/notes", *dependencies)
    for command in (
        ("inspect", "notes", "--start"),
        ("call", "notes", "where"),
        ("run", "notes"),
        ("validate", "notes"),
    ):
        done = space(*command)
        assert (done.code, done.out) == (6, "")
        assert "error: servers/notes/pyproject.toml: " in done.err
        assert words in done.err
        assert "hint: " in done.err
    assert environments(space) == []
    left = [one.name for one in (space.folder.parent / "cache").glob("environments/*") if one.is_dir()]
    assert left == []


def test_a_python_that_the_server_leaves_out_is_named(space: InProcessCli) -> None:
    file = space.folder / "servers/notes/pyproject.toml"
    file.write_text(file.read_text().replace('requires-python = ">=3.11"', 'requires-python = ">=3.11,<3.11.1"'))
    done = space("inspect", "notes", "--start")
    assert done.code == 6
    assert "requires-python >=3.11,<3.11.1 excludes Python" in done.err


def test_without_an_index_mcpfactorys_own_environment_serves_if_it_has_all_and_else_it_is_said(
    space: InProcessCli,
) -> None:
    nowhere = {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0", "UV_FIND_LINKS": ""}
    cut_off = InProcessCli(space.folder, {**space.environ, **nowhere, "UV_CACHE_DIR": str(space.folder.parent / "uv")})
    done = cut_off("call", "notes", "where")
    assert (done.code, done.out.strip()) == (0, sys.prefix)
    assert "notes runs in mcpfactory's own environment, which has all its dependencies" in done.err
    declare(space.folder / "servers/notes", NAME)
    done = cut_off("call", "notes", "where")
    assert done.code == 5
    assert f"does not contain {NAME}" in done.err
    assert "hint: make the package index reachable" in done.err


def test_a_folder_that_cannot_be_written_is_named_with_the_variable_that_moves_it(space: InProcessCli) -> None:
    declare(space.folder / "servers/notes", NAME)
    (space.folder.parent / "taken").write_text("a file is where the folder should be")
    done = InProcessCli(space.folder, {**space.environ, "MCPFACTORY_CACHE_DIR": str(space.folder.parent / "taken")})(
        "inspect", "notes", "--start"
    )
    assert done.code == 5
    assert f"hint: make {space.folder.parent}/taken/environments writable" in done.err
    assert "MCPFACTORY_CACHE_DIR" in done.err
