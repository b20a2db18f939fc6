"""What a server loads: nothing of tasks before one is called for, and no database before there is a file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROBE = """
import asyncio, sys
from mcpfactory_runtime.testing import connect
from tests.runtime.tasks.sample import make

def loaded():
    found = [name for name in sys.modules if name.startswith("mcpfactory_runtime.server.tasks") or name == "sqlite3"]
    return "tasks" * any("tasks" in name for name in found) + " sqlite3" * ("sqlite3" in found)

async def main():
    async with connect(make({where!r})) as client:
        await client.list_tools()
        await client.request("tools/call", {{"name": "plain", "arguments": {{}}}})
        print("before:", loaded())
        await client.request("tools/call", {{"name": "count", "arguments": {{}}}})
        print("after:", loaded())

asyncio.run(main())
"""


def probe(where: str | None) -> list[str]:
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", PROBE.format(where=where)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_tasks_are_loaded_by_the_first_tool_that_can_be_one_and_sqlite_never_without_a_file() -> None:
    assert probe(None) == ["before: ", "after: tasks"]


def test_a_file_loads_the_database(tmp_path: Path) -> None:
    assert probe(str(tmp_path / "tasks.db")) == ["before: ", "after: tasks sqlite3"]
