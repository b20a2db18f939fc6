"""The figures of the README's table of servers, each from where it is kept: `python -m benchmarks.codebase.servers` prints them.

The score stands in the tracked state, what questions find in the evaluation report, operations in the generated report; what a list costs is
asked of the server itself, in each of its profiles.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.text import estimate_tokens
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime.client import Client

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLES: Final = frozenset({"bookshop", "everything"})  # named below the table
_READ_ONLY: Final = "read-only"  # a profile of every server, and no cell of the table
_FULL: Final = re.compile(r"^\| full \| (\d+) \| (\d+) \| \S+ \| \S+ \| (\d+)/(\d+) \|", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ServerFigures:
    """What the table says of one server; `lists` are the tools and tokens of each profile, the smallest first."""

    score: int
    lists: Mapping[str, tuple[int, int]]
    operations: int
    found: str

    @property
    def tokens(self) -> str:
        """`daily 9: 3,900; full 15: 5,000`, rounded to hundreds; without names where there is one list."""
        cells = [
            f"{name} {tools}: {round(tokens, -2):,}"
            for name, (tools, tokens) in self.lists.items()
            if name != _READ_ONLY
        ]
        return "; ".join(cells) if len(cells) > 1 else cells[0].removeprefix("full ")


def server_names(root: Path = ROOT) -> list[str]:
    """The servers that the table must show."""
    return sorted(one.parent.name for one in root.glob("servers/*/mcpfactory.toml") if one.parent.name not in EXAMPLES)


def figures(name: str, root: Path = ROOT) -> ServerFigures:
    """The figures of one server, which is started once for each of its profiles."""
    folder = root / "servers" / name
    state = Store(Workspace.find(root)).state(name)
    file = folder / ".mcpfactory/report.json"
    report: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    profiles = report.get("offer", {}).get("profiles", {"full": {}})
    package = next(one.parent.name for one in folder.glob("src/*/server.py"))
    lists = {profile: asyncio.run(_listed(folder, package, profile)) for profile in profiles}
    found = _FULL.search((folder / "evals/report.md").read_text("utf-8"))
    assert found is not None, f"evals/report.md of {name} has no row of the mode full"
    return ServerFigures(
        state.stages["validate"].summary["score"],
        dict(sorted(lists.items(), key=lambda one: one[1])),
        len(report.get("tools", ())),
        f"{found[3]} of {found[4]}",
    )


async def _listed(folder: Path, package: str, profile: str) -> tuple[int, int]:
    environ = {"MCPFACTORY_PROFILE": profile, "MCPFACTORY_MODE": "full", "PYTHONPATH": str(folder / "src")}
    async with Client.connect_stdio([sys.executable, "-m", package], env=environ, timeout=120) as client:
        tools = await client.list_tools()
    return len(tools), sum(map(estimate_tokens, tools))


def table_rows(page: str) -> dict[str, list[str]]:
    """The rows of the README's table of servers, by name: the cells behind the first."""
    rows = re.findall(r"^\| \[([a-z0-9-]+)\]\(servers/\1/README\.md\) \| (.*) \|$", page, re.MULTILINE)
    return {name: cells.split(" | ") for name, cells in rows}


def main() -> Iterator[str]:
    """One line for each server."""
    for name in server_names():
        one = figures(name)
        yield f"{name}: score {one.score}; {one.tokens}; {one.operations} operations; found {one.found}"


if __name__ == "__main__":
    for line in main():
        print(line, flush=True)
