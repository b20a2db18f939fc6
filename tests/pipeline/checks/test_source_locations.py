"""A finding points to the line that a person has to change."""

from __future__ import annotations

import subprocess
from pathlib import Path

from mcpfactory_pipeline.checks.report import ValidationReport
from mcpfactory_pipeline.checks.source_validation import find_source_locations, with_locations

SERVER = '''"""A server."""
from mcpfactory_runtime import Server
from .helpers import load

server = Server("zoo")


def add(a: int) -> int:  # no tool: a helper of the same name as one
    return a


@server.tool(name="add")
def add_numbers(a: int) -> int:
    return a


@server.tool("moon-phase")
async def moon() -> str:
    return ""


@server.tool
def plain() -> str:
    return ""


@server.after("get_cage")
def get_cage(result: object) -> object:
    return result


def feed() -> str:
    return ""


def walk() -> str:
    return ""


server.tool(feed, name="feed_all")
for function in (walk,):
    server.tool(function)
'''
MANIFEST = '{"tools": [\n{"name": "get_cage", "description": "x"},\n{"name": "plain"}\n]}\n'


def line(text: str) -> int:
    return SERVER.splitlines().index(text) + 1


def workspace(root: Path, server: str = SERVER) -> dict[str, tuple[str, int]]:
    package = root / "servers/zoo/src/zoo"
    (package / "_generated").mkdir(parents=True)
    (package / "server.py").write_text(server)
    (package / "broken.py").write_text("def add(:\n")
    (package / "_generated/manifest.json").write_text(MANIFEST)
    (root / "servers/zoo/pyproject.toml").write_text("")
    tools = ["add", "moon-phase", "plain", "get_cage", "feed_all", "walk", "unknown"]
    return find_source_locations(root, root / "servers/zoo", tools)


def test_a_tool_is_where_it_is_registered_under_its_name_and_else_in_its_manifest(tmp_path: Path) -> None:
    own = "servers/zoo/src/zoo/server.py"
    assert workspace(tmp_path) == {
        "add": (own, line("def add_numbers(a: int) -> int:")),
        "moon-phase": (own, line("async def moon() -> str:")),
        "plain": (own, line("def plain() -> str:")),
        "get_cage": ("servers/zoo/src/zoo/_generated/manifest.json", 2),  # the function of that name is a hook
        "feed_all": (own, line("def feed() -> str:")),
        "walk": (own, line("def walk() -> str:")),
        "project": ("servers/zoo/pyproject.toml", 1),
        "pyproject.toml": ("servers/zoo/pyproject.toml", 1),
        "": (own, line('server = Server("zoo")')),
    }


def test_a_server_that_no_module_makes_is_its_configuration(tmp_path: Path) -> None:
    assert workspace(tmp_path, "")[""] == ("servers/zoo/mcpfactory.toml", 1)


def test_files_are_relative_to_the_repository_that_contains_the_workspace(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    root = tmp_path / "mcp"
    workspace(root, "")
    report = with_locations(ValidationReport("zoo", 0, passed=False), root, root / "servers/zoo")
    assert report.locations[""] == ("mcp/servers/zoo/mcpfactory.toml", 1)
